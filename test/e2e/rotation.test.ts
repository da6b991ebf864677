import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Home, type Ended } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { startRecordingRelay } from "../support/recording-relay.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
afterEach(() => account.clear());

const live = async (): Promise<string[]> => (await account.live()).map(({ id }) => id);

async function homeWithClient(
  endpoint = ["--token-endpoint", service.us.token_endpoint],
): Promise<{ at: Home; id: string }> {
  const at = homeOfTest();
  const words = ["profiles", "add", "p", "--region", "us", "--base-url", service.us.base_url, "--api-key-stdin"];
  await integHere(at, [...words, ...endpoint], { input: service.us.api_key });
  const created = await integHere(at, creationWords(service, "--secret-file", "old.secret", "--json"));
  return { at, id: (JSON.parse(created.stdout) as { id: string }).id };
}

function rotate(at: Home, id: string, ...more: string[]): Promise<Ended> {
  return at.integ(["oauth-clients", "rotate", id, "--json", ...more]);
}

interface Shown {
  readonly id: string;
  readonly operation: string;
  readonly state: string;
  readonly next_step: string;
  readonly resource_id: string;
  readonly due_at?: string;
}

async function entries(at: Home): Promise<Shown[]> {
  return JSON.parse((await integHere(at, ["journal", "list", "--all", "--json"])).stdout).data;
}

async function unfinishedEntries(at: Home): Promise<Shown[]> {
  return JSON.parse((await integHere(at, ["journal", "list", "--json"])).stdout).data;
}

describe("oauth-clients rotate", () => {
  it("reports the destination that a claim delivered to, after the claim and at the end", async () => {
    const { at, id } = await homeWithClient();
    expect((await rotate(at, id, "--secret-command", "exit 1")).code).toBe(12);
    const [kept] = await unfinishedEntries(at);
    const claimed = await integHere(at, ["journal", "claim", kept!.id, "--secret-file", "new.secret"]);
    expect(claimed.code).toBe(0);
    const place = `The secret is in ${at.path("new.secret")}, readable by you alone.`;
    expect(claimed.stderr).toContain(place);
    expect(claimed.stderr).toMatch(/^ *Next: integ journal recover [0-9a-z]+$/m);
    expect(claimed.stdout).toContain(service.us.service_account_id);
    const recovered = await integHere(at, ["journal", "recover", "--accept-unproven"]);
    expect(recovered.code).toBe(0);
    expect(recovered.stderr).toContain(`The secret was delivered to ${at.path("new.secret")}.`);
    expect(recovered.stderr).not.toContain("given to the command");
    expect(await live()).not.toContain(id);
  });

  it.each([
    ["one destination", ["--secret-command", "exit 1"], ["--secret-file", "new.secret"]],
    [
      "several",
      ["--secret-file", "one.secret", "--secret-command", "exit 1"],
      ["--secret-command", "cat > new.secret"],
    ],
  ])("a claim of %s leads to recovery, which finishes the rotation", async (_what, broken, claim) => {
    const { at, id } = await homeWithClient();
    expect((await rotate(at, id, ...broken)).code).toBe(12);
    const rotation = (await unfinishedEntries(at)).find(({ operation }) => operation === "oauth_client.rotate")!;
    expect([rotation.state, rotation.next_step]).toEqual(["undelivered", `integ journal claim ${rotation.id}`]);
    const claimed = await integHere(at, ["journal", "claim", rotation.id, ...claim]);
    expect(claimed.code, claimed.stderr).toBe(0);
    const next = `integ journal recover ${rotation.id}`;
    expect(claimed.stderr).toContain(`Next: ${next}`);
    const shown = JSON.parse((await integHere(at, ["journal", "show", rotation.id, "--json"])).stdout) as Shown;
    const { data: rows } = JSON.parse((await integHere(at, ["status", "--json"])).stdout) as {
      data: { name: string; state: string; next_step: string }[];
    };
    const row = rows.find(({ name }) => name === rotation.id)!;
    for (const { state, next_step } of [...(await unfinishedEntries(at)), shown, row])
      expect([state, next_step]).toEqual(["pending", next]);
    expect(await live()).toContain(id);
    const recovered = await integHere(at, [...next.split(" ").slice(1), "--accept-unproven"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(await unfinishedEntries(at)).toEqual([]);
    expect(await live()).not.toContain(id);
  });

  it("proves the new client and revokes the old one", async () => {
    const { at, id } = await homeWithClient();
    const { code, stdout } = await rotate(at, id, "--secret-file", "new.secret");
    expect(code).toBe(0);
    const receipt = JSON.parse(stdout) as Record<"id" | "client_id", string>;
    expect(await live()).toEqual([receipt.id]);
    expect(await unfinishedEntries(at)).toEqual([]);
    const token = await at.integ(
      ["oauth-clients", "token", "--client-id", receipt.client_id, "--client-secret-stdin", "--json"],
      {
        input: readFileSync(at.path("new.secret"), "utf8"),
      },
    );
    expect(JSON.parse(token.stdout)).toMatchObject({ token_type: expect.stringMatching(/bearer/i) });
  });

  it("--keep-old leaves both, and names the old one", async () => {
    const { at, id } = await homeWithClient();
    const { code, stderr } = await rotate(at, id, "--keep-old", "--secret-file", "new.secret");
    expect(code).toBe(0);
    expect(stderr).toContain(id);
    expect(await live()).toHaveLength(2);
  });

  it("a long overlap is success and keeps both; recover waits for its end, or ends it with --now", async () => {
    const { at, id } = await homeWithClient();
    const waiting = await rotate(at, id, "--overlap", "36h", "--secret-file", "new.secret");
    // A recovery would do nothing during the overlap, so the table shows only the due time.
    const [, shown = ""] = (await integHere(at, ["journal", "list"])).stdout.split("\n");
    expect(shown).toMatch(/ waiting .*\dZ +-$/);
    expect(waiting.code, waiting.stderr).toBe(0);
    const [entry] = await unfinishedEntries(at);
    const { due_at } = entry!;
    expect(Date.parse(due_at!) - Date.now()).toBeGreaterThan(35.9 * 3_600_000);
    // The receipt must have the client id, without which the secret is useless.
    const receipt = { client_id: expect.any(String), client_secret: null, status: "active", due_at };
    expect(JSON.parse(waiting.stdout)).toMatchObject(receipt);
    const note = new RegExp(
      `To revoke ${id}, run integ journal recover ${entry!.id} after the overlap, which ends in 36 hours \\(\\d+ [A-Z][a-z]{2} \\d\\d:\\d\\d\\)`,
    );
    expect(waiting.stderr).toMatch(note);
    expect(entry).toMatchObject({ operation: "oauth_client.rotate", state: "waiting" });
    const doctor = (await integHere(at, ["doctor", "--json"])).stdout;
    const row = (JSON.parse(doctor) as { data: Record<string, string>[] }).data.find(
      ({ check }) => check === "unfinished changes",
    );
    const waits = `1 rotation waits (the old client can be revoked at ${due_at})`;
    expect([row?.status, row?.message]).toEqual(["ok", waits]);
    const left = await integHere(at, ["journal", "recover", "--json"]);
    expect([left.code, JSON.parse(left.stdout).data]).toMatchObject([0, [{ state: "waiting", due_at }]]);
    expect(left.stderr).toMatch(note);
    for (const place of [[], ["--secret-file", "new.secret"]]) {
      const same = await integHere(at, ["oauth-clients", "rotate", id, "--overlap", "36h", ...place]);
      expect([same.code, same.stderr], same.stderr).toEqual([0, expect.stringMatching(note)]);
    }
    expect(await live()).toHaveLength(2);
    for (const [words, what] of [
      [[], "--now needs the ids"],
      [[(await entries(at)).find(({ state }) => state === "done")!.id], "has no running overlap"],
    ] as const) {
      const refused = await integHere(at, ["journal", "recover", "--now", ...words]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(what)]);
    }
    expect((await integHere(at, ["journal", "recover", "--now", entry!.id])).code).toBe(0);
    expect([await live(), await unfinishedEntries(at)]).toEqual([[entry!.resource_id], []]);
  });

  it("is refused with both values if it is resumed with other options", async () => {
    const { at, id } = await homeWithClient();
    await rotate(at, id, "--overlap", "36h", "--secret-file", "new.secret");
    for (const other of [["--keep-old"], ["--overlap", "1s"]]) {
      const { code, stderr } = await at.integ(["oauth-clients", "rotate", id, ...other]);
      expect(code).toBe(2);
      expect(stderr).toContain("--overlap was 129600s, and is ");
    }
    // The secret is already delivered, so integ refuses another destination.
    const { code, stderr } = await rotate(at, id, "--overlap", "36h", "--secret-file", "other.secret");
    expect([code, stderr]).toEqual([2, expect.stringContaining("new.secret")]);
    expect(stderr).toContain("other.secret");
    expect(existsSync(at.path("other.secret"))).toBe(false);
    expect(await live()).toHaveLength(2);
  });

  it("of a client that was already rotated names its successor, and rotates that", async () => {
    const { at, id } = await homeWithClient();
    expect((await rotate(at, id, "--secret-file", "new.secret")).code).toBe(0);
    const [successor] = await live();
    const { code, stderr } = await rotate(at, id, "--secret-file", "third.secret");
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${id} was rotated; its successor is ${successor}.`)]);
    expect(stderr).toMatch(/^Warning: .*integ rotates the successor\.$/m);
    expect(stderr).toMatch(/^Note: The secret is in /m);
    expect(await live()).toHaveLength(1);
    expect(await live()).not.toContain(successor);
  });

  it("of a revoked client sends nothing, and names the creation that replaces it", async () => {
    const { at, id } = await homeWithClient();
    expect((await at.integ(["oauth-clients", "revoke", id, "--yes"])).code).toBe(0);
    const { code, stderr } = await rotate(at, id, "--secret-file", "new.secret");
    expect([code, stderr]).toEqual([13, expect.stringContaining(`The client ${id} is revoked: it cannot be rotated.`)]);
    expect(stderr).toContain("integ oauth-clients create --service-account sa_us_automation");
    expect([existsSync(at.path("new.secret")), await live()]).toEqual([false, []]);
  });

  it("says which secret stands if the response to the revocation is lost", async () => {
    const { at, id } = await homeWithClient();
    await service.fault("DELETE /v1/oauth_clients/* status=503 times=1");
    const ended = await rotate(at, id, "--secret-file", "new.secret", "--retry-for", "0");
    expect([ended.code, ended.stderr]).toEqual([
      7,
      expect.stringContaining("The secret of the new client is delivered."),
    ]);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await live()).not.toContain(id);
  });

  it("never revokes the old client if the new one cannot be proven", async () => {
    const { at, id } = await homeWithClient();
    await service.fault("POST /oauth/token status=401");
    const { code, stderr } = await rotate(at, id, "--secret-file", "new.secret");
    expect(code).toBe(8);
    expect(stderr).toContain(`oauth-clients revoke ${id}`);
    expect(await live()).toContain(id);
    await service.calm();
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await live()).not.toContain(id);
    expect(await live()).toHaveLength(1);
  });

  it("without a token endpoint names the setting that proves the new client, and recover proves it then", async () => {
    const { at, id } = await homeWithClient([]);
    const way = "To prove it: integ profiles edit p --token-endpoint <url>";
    const { code, stderr } = await rotate(at, id, "--secret-file", "new.secret");
    expect([code, stderr]).toEqual([8, expect.stringContaining(`${way}.`)]);
    expect(stderr).toContain(`${way}, then integ journal recover `);
    await integHere(at, ["profiles", "edit", "p", "--token-endpoint", service.us.token_endpoint]);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await live()).not.toContain(id);
  });

  it("a lost response leaves the old client working; recovery with consent ends with one live client", async () => {
    const { at, id } = await homeWithClient();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const lost = await rotate(at, id, "--retry-for", "0", "--secret-file", "new.secret");
    expect(lost.code).toBe(7);
    expect(await live()).toContain(id);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(9);
    expect(await live()).toContain(id);
    const replaced = await integHere(at, ["journal", "recover", "--replace-lost-secret"]);
    expect([replaced.code, replaced.stderr]).toEqual([0, expect.stringContaining("Recovered: 1 done, 1 created.")]);
    expect(await live()).toHaveLength(1);
    expect(await live()).not.toContain(id);
    expect(existsSync(at.path("new.secret"))).toBe(true);
  });

  it("a client that can no longer be proven: the message has the command that continues without proof", async () => {
    const { at, id } = await homeWithClient();
    await service.fault("POST /oauth/token status=500");
    // A secret that a command received cannot be read again for a proof.
    await rotate(at, id, "--retry-for", "0", "--secret-command", "cat > new.secret");
    await service.calm();
    const { code, stderr } = await integHere(at, ["journal", "recover"]);
    expect(code, stderr).toBe(8);
    const next = /Next: integ (journal recover \S+ --accept-unproven)/.exec(stderr)?.[1];
    expect(next, stderr).toBeDefined();
    expect((await at.integ(next!.split(" "))).code).toBe(0);
    expect(await live()).toHaveLength(1);
  });

  it("at 20 of 20 slots nothing is revoked, and exit 5 names clients to revoke", async () => {
    const { at, id } = await homeWithClient();
    for (let i = 1; i < 20; i++)
      expect((await at.integ(creationWords(service, "--secret-file", `s${i}`))).code).toBe(0);
    const full = await rotate(at, id, "--secret-file", "new.secret");
    expect(full.code).toBe(5);
    expect(full.stderr).toMatch(/you can revoke one of these: oac_/);
    expect(full.stderr).toContain("The old client was not revoked");
    expect(await live()).toHaveLength(20);
    expect(existsSync(at.path("new.secret"))).toBe(false);
    // A creation without slots never suggests a revoked client, which uses its slot until its cleanup is confirmed.
    await service.fault("DELETE /v1/oauth_clients/* cleanup=open times=1");
    expect((await at.integ(["oauth-clients", "revoke", id, "--yes"])).code).toBe(0);
    const expired = (await live())[3]!;
    await service.control("POST", `/oauth_clients/${expired}`, { status: "expired" });
    const more = await at.integ(creationWords(service, "--secret-file", "more", "--json"));
    const { error } = JSON.parse(more.stderr.trim().split("\n").at(-1)!) as { error: Record<string, string> };
    // No command is printed: the clients may be in use, and revoking one is final.
    expect([more.code, error.next_command]).toEqual([5, undefined]);
    expect(more.stderr).toContain(`one of these: ${expired} (expired), `);
    expect(more.stderr).not.toContain(id);
    const list = await at.integ(["oauth-clients", "list"]);
    expect(list.stderr).toContain("at least 19 of 20 slots used");
    expect(list.stderr).toContain("1 revoked client may use slots too");
  });
});

describe("oauth-clients list", () => {
  it("shows the journal's clients with their current state, and notes that these may not be all", async () => {
    const { at, id } = await homeWithClient();
    await service.control("POST", `/oauth_clients/${id}`, { status: "disabled" });
    const now = await at.integ(["oauth-clients", "list", "--json"]);
    expect(JSON.parse(now.stdout).data).toMatchObject([{ id, status: "disabled" }]);
    expect(now.stderr).toContain("journal");
    const before = await at.integ(["oauth-clients", "list", "--offline", "--json"]);
    expect(JSON.parse(before.stdout).data).toMatchObject([{ id, status: "active" }]);
  });
});

describe("oauth-clients list without the service", () => {
  it("names a way to see all clients", async () => {
    const { at, id } = await homeWithClient();
    await service.fault("GET /v1/oauth_clients/* status=503");
    const { code, stderr } = await at.integ(["oauth-clients", "list", "--retry-for", "0"]);
    expect(code, stderr).toBe(1);
    const next = /Next: integ (oauth-clients list --offline)/.exec(stderr)?.[1];
    const shown = await at.integ([...next!.split(" "), "--json"]);
    expect(JSON.parse(shown.stdout).data).toMatchObject([{ id }]);
  });
});

describe("two simultaneous rotations of one client", () => {
  it.each([
    ["the old one revoked", [], 1],
    ["the old one kept", ["--keep-old"], 2],
  ])("%s: the first creates the new client, the second names the first one's entry", async (_what, words, left) => {
    const { at, id } = await homeWithClient();
    const relay = await startRecordingRelay(service.us.base_url);
    const moved = await integHere(
      at,
      ["profiles", "edit", "p", "--base-url", relay.through(service.us.base_url), "--api-key-stdin"],
      {
        input: service.us.api_key,
      },
    );
    expect(moved.code, moved.stderr).toBe(0);
    const hold = relay.hold(/^POST .*oauth_clients/);
    const first = rotate(at, id, "--accept-unproven", "--secret-file", "one.secret", ...words);
    await hold.arrived;
    const second = await rotate(at, id, "--secret-file", "two.secret", ...words);
    hold.letGo();
    const { code, stderr } = await first;
    await relay.close();
    expect(code, stderr).toBe(0);
    expect(second.code, second.stderr).toBe(5);
    const { error } = JSON.parse(second.stderr.trimEnd().split("\n").at(-1)!) as { error: Record<string, string> };
    expect(error).toMatchObject({ kind: "conflict", message: expect.stringContaining(id) });
    const shown = await at.integ([...error.next_command!.split(" ").slice(1), "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ operation: "oauth_client.rotate", state: "done" });
    expect((await live()).length).toBe(left);
    expect([existsSync(at.path("one.secret")), existsSync(at.path("two.secret"))]).toEqual([true, false]);
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it("one after the other, they do not conflict while the old client works", async () => {
    const { at, id } = await homeWithClient();
    expect((await rotate(at, id, "--secret-file", "one.secret", "--keep-old")).code).toBe(0);
    expect((await rotate(at, id, "--secret-file", "two.secret", "--keep-old")).code).toBe(0);
    expect((await live()).length).toBe(3);
  });
});
