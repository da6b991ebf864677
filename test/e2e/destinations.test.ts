import { statSync, chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type ReadEntry, readJournal } from "../support/journal-file.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
afterEach(() => account.clear());

const live = async (): Promise<string[]> => (await account.live()).map(({ id }) => id);

async function home(): Promise<Home> {
  const at = homeOfTest();
  const { base_url, api_key, token_endpoint } = service.us;
  for (const name of ["p", "target"]) {
    const words = ["profiles", "add", name, "--region", "us", "--base-url", base_url, "--api-key-stdin"];
    await integHere(at, [...words, "--token-endpoint", token_endpoint], { input: api_key });
  }
  return at;
}

function create(at: Home, ...more: string[]): Promise<Ended> {
  return integHere(at, creationWords(service, "--json", ...more));
}

async function oldClient(at: Home): Promise<string> {
  return (JSON.parse((await create(at)).stdout) as { id: string }).id;
}

const text = (at: Home, name: string): string => readFileSync(at.path(name), "utf8");
const secret = /^sbx_us_cs_\w+$/;

function creationIn(at: Home): ReadEntry & { readonly destination: { readonly places: readonly Place[] } } {
  const made = readJournal(at.path("state", "journal.ndjson")).findLast(
    ({ operation }) => operation === "oauth_client.create",
  );
  return made as ReturnType<typeof creationIn>;
}

interface Place {
  readonly state: string;
  readonly at: { readonly kind: string; readonly proof?: unknown };
}

const states = (at: Home): string[] => creationIn(at).destination.places.map(({ state }) => state);

async function secretInAll(at: Home): Promise<string> {
  const value = text(at, "a.secret");
  expect([value, text(at, "b.secret")]).toEqual([expect.stringMatching(secret), value]);
  const shown = JSON.parse((await integHere(at, ["profiles", "show", "target", "--json"])).stdout) as {
    credential: { client_id: string };
  };
  const [newest] = (await account.clients()).filter(({ client_id }) => client_id === shown.credential.client_id);
  expect(newest?.status).toBe("active");
  const exchanged = await integHere(at, ["oauth-clients", "token", "--from-profile", "-p", "target", "--json"]);
  expect(exchanged.code).toBe(0);
  return value;
}

describe("the bytes of a secret", () => {
  it.each<[string, readonly string[], (s: string) => RegExp]>([
    ["raw", [], () => /^(sbx_us_cs_\w+)$/],
    ["line", ["--secret-format", "line"], () => /^(sbx_us_cs_\w+)\n$/],
    ["json-string", ["--secret-format", "json-string"], () => /^"(sbx_us_cs_\w+)"$/],
    ["env, named", ["--secret-env", "ID=client_id,TOKEN=secret"], () => /^ID=\S+\nTOKEN=(sbx_us_cs_\w+)\n$/],
    [
      "a template",
      ["--secret-format", 'template:{"t":"{secret}","a":"{service_account}","p":"{profile}-{region}","x":{}}'],
      (account) => new RegExp(`^\\{"t":"(sbx_us_cs_\\w+)","a":"${account}","p":"p-us","x":\\{\\}\\}$`),
    ],
  ])("are the same in a file and for a command: %s", async (_name, words, pattern) => {
    const at = await home();
    const { code, stdout } = await create(at, "--secret-file", "a", ...words, "--secret-command", "cat > b", ...words);
    expect([code, (JSON.parse(stdout) as { client_secret: unknown }).client_secret]).toEqual([0, null]);
    expect(text(at, "a")).toMatch(pattern(service.us.service_account_id));
    expect(text(at, "b")).toBe(text(at, "a"));
  });

  it("reach a command, with variables that name their owner; a command that is too slow is stopped", async () => {
    const at = await home();
    const created = await create(at, "--secret-command", "env | grep ^INTEG_ > variables; cat > /dev/null");
    const { id, client_id } = JSON.parse(created.stdout) as { id: string; client_id: string };
    for (const line of [
      `INTEG_RESOURCE_ID=${id}`,
      `INTEG_OAUTH_CLIENT_ID=${client_id}`,
      `INTEG_SERVICE_ACCOUNT=${service.us.service_account_id}`,
      "INTEG_PROFILE_NAME=p",
      `INTEG_ENTRY=${creationIn(at).id}`,
    ])
      expect(text(at, "variables").split("\n")).toContain(line);
    const slow = ["--secret-command", "cat >/dev/null; sleep 60", "--secret-command-timeout", "1s"];
    const late = await create(at, "--new", ...slow);
    expect([late.code, late.stderr]).toEqual([12, expect.stringContaining("within 1 s")]);
  });
});

describe("proof of a delivery", () => {
  it("fails if a store keeps other content: exit 12, the old client stays, a claim repairs it", async () => {
    const at = await home();
    const id = await oldClient(at);
    const keep = "tr -d 0-9 > kept";
    const check = ["--secret-check-command", "cat kept"];
    const failed = await integHere(at, ["oauth-clients", "rotate", id, "--secret-command", keep, ...check]);
    expect([failed.code, failed.stderr]).toEqual([12, expect.stringContaining("something other than the secret")]);
    expect(failed.stderr).not.toMatch(/sbx_us_cs_\w+/);
    expect(await live()).toContain(id);
    const claim = ["journal", "claim", creationIn(at).id, "--secret-command", "cat > kept", ...check];
    const refused = await integHere(at, claim);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("integ did not deliver what its check prints"),
    ]);
    const claimed = await integHere(at, [...claim, "--force"]);
    expect([claimed.code, text(at, "kept")]).toEqual([0, expect.stringMatching(secret)]);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await live()).not.toContain(id);
  });

  it("is the check's exit code 0 with --secret-check exit", async () => {
    const at = await home();
    const check = ["--secret-check-command", "test -s kept", "--secret-check", "exit"];
    expect((await create(at, "--secret-command", "cat > kept", ...check)).code).toBe(0);
    const wrong = ["--secret-check-command", "test -s missing", "--secret-check", "exit"];
    expect((await create(at, "--new", "--secret-command", "cat > kept", ...wrong, "--force")).code).toBe(12);
  });

  it("without a check is only the command's exit: another client's secret behind it is not overwritten", async () => {
    const at = await home();
    expect((await create(at, "--secret-command", "cat > kept")).code).toBe(0);
    const first = text(at, "kept");
    expect((await create(at, "--new", "--secret-command", "cat > kept")).code).toBe(2);
    expect(text(at, "kept")).toBe(first);
    expect((await create(at, "--new", "--secret-command", "cat > kept", "--force")).code).toBe(0);
    const ofEach = ["--new", "--secret-command", 'cat > "$INTEG_RESOURCE_ID"'];
    expect([(await create(at, ...ofEach)).code, (await create(at, ...ofEach)).code]).toEqual([0, 0]);
  });

  it("for a file is a recorded digest, compared with the file's content", async () => {
    const at = await home();
    const id = await oldClient(at);
    expect((await integHere(at, ["oauth-clients", "rotate", id, "--secret-file", "new.secret"])).code).toBe(0);
    const { destination } = creationIn(at) as unknown as { destination: { proof?: string } };
    expect(destination.proof).toMatch(/^[0-9a-f]{8}\.[\w-]{43}$/);
  });
});

describe("journal show", () => {
  interface Row {
    readonly address: string;
    readonly state: string;
    readonly proof: string | null;
    readonly at: string | null;
  }
  async function shown(at: Home, id: string): Promise<Row[]> {
    const { stdout } = await integHere(at, ["journal", "show", id, "--json"]);
    return (JSON.parse(stdout) as { destinations: Row[] }).destinations;
  }

  it("shows state, proof and time of each destination, also of a rotation, before and after a claim", async () => {
    const at = await home();
    const id = await oldClient(at);
    const check = ["--secret-check-command", "cat kept"];
    const to = ["--secret-file", "a.secret", "--secret-command", "exit 1", ...check, "--secret-profile", "target"];
    expect((await integHere(at, ["oauth-clients", "rotate", id, ...to])).code).toBe(12);
    const { parent } = creationIn(at);
    const before = await shown(at, parent!);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(before).toEqual([
      { address: at.path("a.secret"), state: "delivered", proof: "written and synced", at: time },
      { address: "a command", state: "failed", proof: null, at: time },
      { address: "profile target", state: "delivered", proof: "stored", at: time },
    ]);
    const claimed = await integHere(at, ["journal", "claim", parent!, "--secret-command", "cat > kept", ...check]);
    expect(claimed.code, claimed.stderr).toBe(0);
    const after = await shown(at, parent!);
    expect(after.map(({ state, proof }) => [state, proof])).toEqual([
      ["delivered", "written and synced"],
      ["delivered", "the check printed the secret"],
      ["delivered", "stored"],
    ]);
    expect([after[0]!.at, after[2]!.at]).toEqual([before[0]!.at, before[2]!.at]);
    expect(after[1]!.at! > before[1]!.at!).toBe(true);
    const table = (await integHere(at, ["journal", "show", parent!, "-o", "table"])).stdout;
    expect(table).toMatch(/\n\nDESTINATION +DELIVERY +PROOF +AT\n/);
    expect(table).toMatch(new RegExp(`${at.path("a.secret")} +delivered +written and synced +${before[0]!.at}`));
    expect(table).toMatch(/a command +delivered +the check printed the secret/);
  });

  it("shows a single destination as pending, failed or delivered, and no destination for a change without a secret", async () => {
    const at = await home();
    await service.fault("POST /v1/oauth_clients status=503");
    expect((await create(at, "--secret-file", "a.secret", "--retry-for", "0")).code).toBe(7);
    const { id } = creationIn(at);
    expect(await shown(at, id)).toMatchObject([{ state: "pending", proof: null, at: null }]);
    await service.calm();
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect(await shown(at, id)).toMatchObject([{ state: "delivered", proof: "written and synced" }]);
    const failed = await create(at, "--new", "--secret-command", "exit 1");
    expect(failed.code).toBe(12);
    expect(await shown(at, creationIn(at).id)).toMatchObject([{ address: "a command", state: "failed" }]);
    const { resource_id } = creationIn(at);
    expect((await integHere(at, ["oauth-clients", "revoke", resource_id!, "--yes"])).code).toBe(0);
    const revocation = readJournal(at.path("state", "journal.ndjson")).at(-1)!;
    expect(await shown(at, revocation.id)).toEqual([]);
  });
});

describe("a file that lost the delivered secret", () => {
  it("keeps the old client until a person revokes it by name", async () => {
    const at = await home();
    const id = await oldClient(at);
    const file = at.path("a.secret");
    const to = ["--secret-file", "a.secret", "--secret-command", "exit 1"];
    expect((await integHere(at, ["oauth-clients", "rotate", id, ...to])).code).toBe(12);
    writeFileSync(file, "x".repeat(statSync(file).size));
    const claimed = await integHere(at, ["journal", "claim", creationIn(at).id, "--secret-command", "cat > b.secret"]);
    expect(claimed.code, claimed.stderr).toBe(0);
    const recovered = await integHere(at, ["journal", "recover", "--accept-unproven"]);
    expect([recovered.code, recovered.stderr]).toEqual([8, expect.stringContaining(`was delivered to ${file}`)]);
    expect(await live()).toContain(id);
    expect(recovered.stderr).toMatch(/^ {2}Next: integ journal recover \S+$/m);
    expect((await integHere(at, ["oauth-clients", "revoke", id, "--yes"])).code).toBe(0);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
  });

  it("gets the secret again from a claim that names the file", async () => {
    const at = await home();
    const to = ["--secret-file", "a.secret", "--secret-command", "exit 1"];
    expect((await create(at, ...to)).code).toBe(12);
    rmSync(at.path("a.secret"));
    const entry = creationIn(at).id;
    const both = ["--secret-file", "a.secret", "--secret-command", "cat > b"];
    const claimed = await integHere(at, ["journal", "claim", entry, ...both]);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect([text(at, "a.secret"), states(at)]).toEqual([text(at, "b"), ["delivered", "delivered"]]);
    expect(claimed.stderr).toContain(`The secret is in ${at.path("a.secret")}, readable by you alone.`);
  });
});

describe("several destinations", () => {
  it("one fails: the others get the secret, the old client stays, a claim delivers only to the missing one", async () => {
    const at = await home();
    const id = await oldClient(at);
    mkdirSync(at.path("store"));
    chmodSync(at.path("store"), 0o500);
    const store = "cat > b.tmp; mv b.tmp store/b 2>/dev/null && cp store/b b.secret";
    const words = ["--secret-file", "a.secret", "--secret-command", store, "--secret-profile", "target"];
    const isRoot = process.getuid?.() === 0;
    if (isRoot) renameSync(at.path("store"), at.path("away"));
    const failed = await integHere(at, ["oauth-clients", "rotate", id, ...words]);
    expect([failed.code, failed.stderr]).toEqual([12, expect.stringContaining("2 of 3 destinations have it")]);
    expect([states(at), (await live()).includes(id)]).toEqual([["delivered", "failed", "delivered"], true]);
    // Only a claim can continue the rotation: the recovery leaves the old client.
    expect((await integHere(at, ["journal", "recover", "--yes"])).code).toBe(12);
    expect(await live()).toContain(id);
    const before = text(at, "a.secret");
    if (isRoot) renameSync(at.path("away"), at.path("store"));
    chmodSync(at.path("store"), 0o700);
    const incomplete = await integHere(at, ["journal", "claim", creationIn(at).id]);
    expect([incomplete.code, incomplete.stderr]).toEqual([12, expect.stringContaining("pass --secret-command again")]);
    const claimed = await integHere(at, ["journal", "claim", creationIn(at).id, "--secret-command", store]);
    expect([claimed.code, claimed.stdout.includes("sbx_us_cs_")]).toEqual([0, false]);
    expect(await secretInAll(at)).toBe(before);
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect([await live(), states(at)]).toEqual([[creationIn(at).resource_id], ["delivered", "delivered", "delivered"]]);
  });

  it("one that cannot take a secret stops the command before anything is sent", async () => {
    const at = await home();
    const before = (await account.clients()).length;
    writeFileSync(at.path("taken"), "mine");
    for (const words of [
      ["--secret-file", "a.secret", "--secret-file", "taken"],
      ["--secret-file", "a.secret", "--secret-profile", "nobody"],
      ["--secret-file", "a.secret", "--secret-file", "missing/b"],
    ]) {
      expect((await create(at, ...words)).code).toBe(2);
      expect(existsSync(at.path("a.secret"))).toBe(false);
    }
    expect((await account.clients()).length).toBe(before);
    expect(text(at, "taken")).toBe("mine");
  });
});

describe("a profile with a list of destinations", () => {
  it("delivers to no other destination until the list is emptied", async () => {
    const at = await home();
    const allow = (...places: string[]): Promise<Ended> =>
      integHere(at, ["profiles", "edit", "p", "--no-verify", "--allow-destination", ...places]);
    expect((await allow(`file:${at.folder}/kept-*`, "profile:target")).code).toBe(0);
    const refused = await create(at, "-p", "p", "--secret-file", "other.secret");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("profile p does not name it")]);
    expect(await live()).toHaveLength(0);
    expect((await create(at, "-p", "p", "--secret-file", "kept-1.secret")).code).toBe(0);
    // A profile's list of allowed destinations does not restrict other profiles.
    expect((await create(at, "-p", "target", "--new", "--secret-file", "other.secret")).code).toBe(0);
    expect((await allow("")).code).toBe(0);
    expect((await create(at, "-p", "p", "--new", "--secret-file", "another.secret")).code).toBe(0);
  });
});
