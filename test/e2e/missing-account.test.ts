import { cpSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
afterEach(() => service.calm());

interface Row {
  readonly id: string;
  readonly state: string;
  readonly next_step: string | null;
  readonly needs?: string;
}

/** Each function leaves an unfinished entry of the operation and state in its key. */
const changes: Readonly<Record<string, (at: Home, as: readonly string[]) => Promise<void>>> = {
  "oauth_client.create unknown": async (at, as) => {
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    await at.integ([...createWords(), "--secret-file", "s1", ...as]);
  },
  "oauth_client.create secret_lost": async (at, as) => {
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    await at.integ([...createWords(), "--new", "--secret-file", "s2", ...as]);
    const open = (await rows(at)).find(({ state }) => state === "unknown")!;
    await at.integ(["journal", "recover", open.id, "--no-input"]);
  },
  "oauth_client.rotate waiting": async (at, as) => {
    const { stdout } = await at.integ([...createWords(), "--new", "--secret-file", "s3", "--json", ...as]);
    const { id } = JSON.parse(stdout) as { id: string };
    const agreed = ["--yes", "--accept-unproven"];
    await at.integ(["oauth-clients", "rotate", id, "--secret-file", "s4", "--overlap", "24h", ...agreed, ...as]);
  },
  "oauth_client.revoke unknown": async (at, as) => {
    const { stdout } = await at.integ([...createWords(), "--new", "--secret-file", "s5", "--json", ...as]);
    const { id } = JSON.parse(stdout) as { id: string };
    await service.fault("DELETE /v1/oauth_clients/* drop=before times=1");
    await at.integ(["oauth-clients", "revoke", id, "--yes", "--retry-for", "0", ...as]);
  },
  "access_key.create unknown": async (at, as) => {
    await service.fault("POST /api/v1/access-keys drop=before times=1");
    await at.integ([...keyWords("one"), "--secret-file", "s6", ...as]);
  },
  "access_key.rotate unknown": async (at, as) => {
    await service.fault("POST /api/v1/access-keys/*/rotate drop=before times=1");
    const to = ["--secret-file", "s7", "--yes", "--retry-for", "0"];
    await at.integ(["keys", "rotate", await madeKey(at, as), ...to, ...as]);
  },
  "access_key.revoke unknown": async (at, as) => {
    const key = await madeKey(at, as);
    await service.fault("DELETE /api/v1/access-keys/* drop=before times=1");
    await at.integ(["keys", "revoke", key, "--yes", "--retry-for", "0", ...as]);
  },
};

function createWords(): string[] {
  return creationWords(service, "--retry-for", "0");
}

function keyWords(name: string): string[] {
  return ["keys", "create", "--name", name, "--scope", "push-ingest:*", "--expires-in", "90d", "--retry-for", "0"];
}

async function madeKey(at: Home, as: readonly string[]): Promise<string> {
  const to = ["--secret-file", crypto.randomUUID(), "--json"];
  const { stdout } = await at.integ([...keyWords(crypto.randomUUID()), ...to, ...as]);
  return (JSON.parse(stdout) as { id: string }).id;
}

async function rows(at: Home, env: Readonly<Record<string, string>> = {}): Promise<Row[]> {
  const { stdout } = await at.integ(["journal", "list", "--json"], { env });
  return (JSON.parse(stdout) as { data: Row[] }).data;
}

/** The entries belong to the environment's profile, or to the stored profile that `as` names. */
async function homeWithEntries(
  env: Readonly<Record<string, string>>,
  as: readonly string[],
  before?: (at: Home) => Promise<unknown>,
) {
  const at = new Home(env);
  await before?.(at);
  for (const leave of Object.values(changes)) {
    await leave(at, as);
    await service.calm();
  }
  const all = await rows(at);
  expect(all.map(({ state }) => state).toSorted()).toEqual(
    Object.keys(changes)
      .map((name) => name.split(" ")[1]!)
      .toSorted(),
  );
  expect(all.filter(({ next_step, needs }) => next_step === null || needs !== undefined)).toEqual([]);
  return { at, all };
}

/** Commands must name what each entry needs, and send no request. @returns the number of entries whose recovery failed */
async function expectNeedsShown(at: Home, env: Readonly<Record<string, string>>, needs: () => RegExp): Promise<number> {
  const requests = async () => ((await service.control("GET")) as { requests: unknown[] }).requests.length;
  const before = await requests();
  let checked = 0;
  for (const row of await rows(at, env)) {
    if (row.state === "waiting" && row.needs === undefined) continue;
    expect(row.needs).toMatch(needs());
    const shown = JSON.parse((await at.integ(["journal", "show", row.id, "--json"], { env })).stdout) as Row;
    expect([shown.next_step, shown.needs]).toEqual([row.next_step, row.needs]);
    // The next step must not be a recovery, which would fail here too.
    expect(row.next_step ?? "integ journal forget").toMatch(
      /^integ (?:journal (?:claim|forget|show)|profiles edit|help profiles)/,
    );
    const { code, stdout, stderr } = await at.integ(["journal", "recover", row.id, "--no-input", "--json"], { env });
    if (row.state === "waiting" && code === 0) continue;
    expect(code).not.toBe(0);
    const { error } = JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as { error: { hint?: string; message: string } };
    expect(`${error.message} ${error.hint ?? ""}`).toMatch(needs());
    const [after] = (JSON.parse(stdout) as { data: Row[] }).data;
    expect([after!.state, after!.next_step]).toEqual([row.state, row.next_step]);
    checked += 1;
  }
  expect(await requests()).toBe(before);
  return checked;
}

describe("entries of the environment's profile", () => {
  it("name the variables that they need", async () => {
    const { at } = await homeWithEntries({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token }, []);
    const none = Object.fromEntries([...Object.keys(service.env), "INTEG_ACCESS_TOKEN"].map((name) => [name, ""]));
    const of = (): RegExp =>
      new RegExp(`INTEG_BASE_URL=${service.us.base_url} INTEG_REGION=us INTEG_ORGANIZATION_ID=\\S+ and INTEG_A`);
    const elsewhere = { INTEG_BASE_URL: "http://127.0.0.1:9" };
    const other = { INTEG_ORGANIZATION_ID: "00000000-0000-4000-8000-000000000000" };
    expect(await expectNeedsShown(at, none, of)).toBe(7);
    expect(await expectNeedsShown(at, elsewhere, of)).toBe(7);
    expect(await expectNeedsShown(at, { INTEG_ORGANIZATION_ID: "" }, of)).toBe(7);
    expect(await expectNeedsShown(at, other, of)).toBe(7);
    at.remove();
  });

  it("name the credential that they need, and others continue", async () => {
    const { at } = await homeWithEntries({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token }, []);
    const shown = await rows(at, { INTEG_ACCESS_TOKEN: "" });
    expect(shown.filter(({ needs }) => needs !== undefined).map(({ needs }) => needs)).toEqual(
      Array.from({ length: 3 }, () => expect.stringMatching(/ and INTEG_ACCESS_TOKEN\.$/)),
    );
    expect(shown.filter(({ needs }) => needs === undefined)).toHaveLength(4);
    // Skips a running overlap, which needs no credential yet.
    for (const { id, state } of shown.filter((row) => row.state !== "waiting")) {
      const env = { INTEG_ACCESS_TOKEN: "", INTEG_API_KEY: "" };
      const { code, stderr } = await integHere(at, ["journal", "recover", id, "--no-input"], { env });
      expect([code, stderr], state).toEqual([
        state === "secret_lost" ? 9 : 7,
        expect.stringMatching(/Fix: .*INTEG_A[CP][\w ]+\./),
      ]);
    }
    expect(await rows(at, { INTEG_ACCESS_TOKEN: "" })).toEqual(shown);
    at.remove();
  });
});

describe("items of a policy", () => {
  const policy = [
    "version: 1",
    "id: pol_of_this_test",
    "unmanaged: ignore",
    "oauth_clients:",
    "  a:",
    "    service_account: sa_us_automation",
    "    scopes: [entity:read]",
    "    rotate: { every: 60d, overlap: 0s }",
    "    secret: { file: a.secret }",
    "access_keys:",
    "  deploy:",
    "    type: service_account",
    "    scopes: ['push-ingest:*']",
    "    expires_in: 30d",
    "    rotate: { every: 20d, overlap: 0s }",
    "    secret: { file: deploy.secret }",
    "",
  ].join("\n");

  it("name the credential that they need, count as no failure, and stop no other item", async () => {
    const at = homeOfTest({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token });
    writeFileSync(at.path("integ.yaml"), policy);
    const env = { INTEG_API_KEY: "" };
    const errorOf = ({ stderr }: Ended) =>
      (JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as { error: { hint: string; next_command: string } }).error;
    const planned = await integHere(at, ["plan", "--json", "--exit-code"], { env });
    expect([planned.code, planned.stderr]).toEqual([10, expect.stringContaining("Set INTEG_API_KEY.")]);
    for (const deploy of ["done", "none", "none", "none"]) {
      const applied = await integHere(at, ["apply", "--yes", "--json"], { env });
      expect([applied.code, errorOf(applied).hint]).toEqual([3, "Set INTEG_API_KEY."]);
      const { data } = JSON.parse(applied.stdout) as { data: unknown[] };
      expect(data).toMatchObject([
        { name: "a", result: "failed", entry: null },
        { name: "deploy", result: deploy },
      ]);
    }
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    expect((await integHere(at, ["apply", "--yes", "--retry-for", "0"])).code).toBe(7);
    const [left] = await rows(at);
    const again = await integHere(at, ["apply", "--yes", "--json"], { env });
    expect([again.code, errorOf(again).hint]).toEqual([7, expect.stringMatching(/and INTEG_API_KEY\.$/)]);
    expect(await rows(at)).toEqual([left]);
    // A typed creation is another request. It is refused until the item's entry, which has the same file, is finished.
    const typed = await integHere(at, [...createWords(), "--secret-file", "a.secret", "--json"], { env });
    expect([typed.code, errorOf(typed)]).toEqual([
      8,
      expect.objectContaining({ next_command: `integ journal recover ${left!.id}` }),
    ]);
    const status = await integHere(at, ["status", "--json"], { env });
    expect(status.stderr).toContain("a: Profile env has no credential for /v1. Set INTEG_API_KEY.");
    expect((JSON.parse(status.stdout) as { data: unknown[] }).data).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ topic: "journal", next_step: null }),
        expect.objectContaining({ topic: "policy", name: "a", next_step: null }),
      ]),
    );
    expect((await integHere(at, ["apply", "--yes"])).code).toBe(0);
  });
});

describe("entries of a stored profile", () => {
  const add = (at: Home, name: string): Promise<unknown> => {
    const { base_url, organization_id, access_token_endpoint, access_key_secret } = service.us;
    const where = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id, "--no-verify"];
    const credential = ["--api-key-stdin", "--access-token-endpoint", access_token_endpoint];
    return at.integ(["profiles", "add", name, ...where, ...credential], { input: access_key_secret });
  };

  it("explain what happened to the profile", async () => {
    const { at } = await homeWithEntries({}, ["-p", "k"], (home) => add(home, "k"));
    const kept = at.path("kept");
    cpSync(at.path("config"), kept, { recursive: true });
    const profileChanges: readonly [of: RegExp, change: () => Promise<unknown>][] = [
      [
        /profile "k", which requested it, no longer exists|forget/,
        () => at.integ(["profiles", "remove", "k", "--yes"]),
      ],
      [
        /Put the profile back/,
        async () => {
          await at.integ(["profiles", "remove", "k", "--yes"]);
          await add(at, "k");
        },
      ],
      [
        /points at|Put the profile back/,
        () => at.integ(["profiles", "edit", "k", "--base-url", "http://127.0.0.1:9", "--yes", "--no-verify"]),
      ],
    ];
    for (const [of, change] of profileChanges) {
      await change();
      expect(await expectNeedsShown(at, {}, () => of)).toBe(7);
      rmSync(at.path("config"), { recursive: true });
      cpSync(kept, at.path("config"), { recursive: true });
    }
    at.remove();
  });
});
