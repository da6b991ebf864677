// `policy check`, `policy init` and `schema policy`, and both audits with --fix.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Ended, Home } from "../support/program.ts";
import { homeWithProfile } from "../crash/policy-scenes.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";
import { Account } from "../support/account.ts";

const service = await serviceOfFile();
let home: Home;
const integ = (...words: string[]): Promise<Ended> => integHere(home, words);
const write = (text: string, file = "integ.yaml"): void => writeFileSync(home.path(file), text);

beforeAll(async () => {
  const { us } = service;
  home = new Home({ ...service.env, INTEG_ACCESS_TOKEN: us.access_token, INTEG_TOKEN_ENDPOINT: us.token_endpoint });
});
afterAll(() => home?.remove());

const policy = (items = "", secret = "{ file: a.secret }"): string =>
  `version: 1\nid: pol_of_this_test\noauth_clients:\n  a:\n    service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    rotate: { every: 60d }\n    secret: ${secret}\n${items}`;

describe("integ policy check", () => {
  it("accepts a valid file, and runs none of its commands", async () => {
    write(
      policy(
        'access_keys:\n  k:\n    type: service_account\n    scopes: ["*"]\n    rotate: { every: 60d }\n    secret: { command: "touch ran" }\n',
      ),
    );
    expect(await integ("policy", "check")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("integ.yaml is valid: 2 items."),
    });
    expect(() => readFileSync(home.path("ran"))).toThrow();
  });

  it("reports valid but probably unintended settings, exit 10", async () => {
    write(
      policy(
        'access_keys:\n  k:\n    type: service_account\n    scopes: ["*"]\n    secret: { file: no/such/folder }\n',
        "unknown",
      ),
    );
    const { code, stdout } = await integ("policy", "check", "--json");
    const rules = (JSON.parse(stdout) as { data: { id: string }[] }).data.map(({ id }) => id);
    expect({ code, rules }).toEqual({ code: 10, rules: ["secret_unknown:a", "no_rotation:k", "destination:k"] });
    const offline = await integ("policy", "check", "--json", "--offline");
    expect((JSON.parse(offline.stdout) as { data: unknown[] }).data).toHaveLength(2);
  });

  it("needs neither a profile nor the network with --offline", async () => {
    write("version: [1\n");
    expect((await integ("policy", "check")).stderr).toMatch(/Fix: Correct the file, then check it again\.\n +exit 2/);
    write(policy());
    const env = {
      INTEG_BASE_URL: "",
      INTEG_API_KEY: "",
      INTEG_ACCESS_TOKEN: "",
      INTEG_REGION: "",
      INTEG_ORGANIZATION_ID: "",
      INTEG_TOKEN_ENDPOINT: "",
    };
    expect(await integHere(home, ["policy", "check", "--offline"], { env })).toMatchObject({ code: 0 });
  });
});

it("refuses a pipe in place of a policy or plan without waiting for it", async () => {
  execFileSync("mkfifo", [home.path("pipe")]);
  write(policy());
  for (const words of [
    ["policy", "check", "-f", "pipe"],
    ["plan", "-f", "pipe"],
    ["apply", "pipe", "--yes"],
  ])
    expect(await integ(...words)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it is not a regular file"),
    });
});

it("refuses a plan for a missing folder before it sends a request", async () => {
  write(policy());
  const env = { INTEG_BASE_URL: "http://127.0.0.1:1", INTEG_ACCESS_TOKEN: "" };
  const ended = await integHere(home, ["plan", "--out", "no-folder/plan.json"], { env });
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining("mkdir -p no-folder") });
});

it.each<[string, string, string]>([
  ["policy init -f", "a-file", "a-file was not written: it exists."],
  ["policy init -f", "", "--file names no policy file."],
  ["policy init -f", "a-folder", "--file: a-folder is a folder."],
  ["policy init -f", "no-folder/integ.yaml", "--file: the folder no-folder does not exist."],
  ["policy init -f", "a-file/integ.yaml", "--file: a-file is not a folder."],
  ["plan --out", "a-folder", "--out: a-folder is a folder."],
  ["plan --out", "a-file/plan.json", "--out: a-file is not a folder."],
])("%s %s is refused before a request", async (words, path, message) => {
  write(policy());
  write("a file", "a-file");
  mkdirSync(home.path("a-folder"), { recursive: true });
  await service.calm();
  const { code, stderr } = await integ(...words.split(" "), path);
  expect([code, stderr]).toEqual([2, expect.stringContaining(`Error: ${message}\n`)]);
  expect(await service.control("GET")).toMatchObject({ requests: [] });
});

describe("integ policy check", () => {
  it("finds a profile that does not exist, as integ plan does, and says that a policy has no items", async () => {
    writeFileSync(home.path("nope.yaml"), "version: 1\nid: pol_of_no_profile\nprofile: nope\n");
    const [checked, planned] = [
      await integ("policy", "check", "-f", "nope.yaml"),
      await integ("plan", "-f", "nope.yaml"),
    ];
    expect(checked).toEqual({ ...planned, code: 2, stderr: expect.stringContaining('Profile "nope" not found') });
    const offline = await integ("policy", "check", "-f", "nope.yaml", "--offline");
    expect([offline.code, offline.stderr]).toEqual([0, expect.stringContaining("no items, and nothing is compared")]);
  });
});

describe("integ policy init", () => {
  it("writes existing credentials to a valid file, and never overwrites a file", async () => {
    const made = await integ(...creationWords(service, "--secret-file", "made.secret", "--json"));
    const { id } = JSON.parse(made.stdout) as { id: string };
    expect(await integ("policy", "init", "-f", "first.yaml")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/Next: integ adopt --all -f first\.yaml\n$/),
    });
    const text = readFileSync(home.path("first.yaml"), "utf8");
    const { oauth_clients, access_keys } = parse(text) as Record<
      string,
      Record<string, { secret: unknown; scopes: unknown }>
    >;
    expect(text).toMatch(/^id: pol_[0-9a-f]{16} /m);
    expect(text).toContain(`: # ${id}\n`);
    expect(Object.values(oauth_clients!).map(({ secret, scopes }) => ({ secret, scopes }))).toEqual([
      { secret: { file: "made.secret" }, scopes: ["entity:read"] },
    ]);
    expect(Object.keys(access_keys!).length).toBeGreaterThan(0);
    expect((await integ("policy", "check", "-f", "first.yaml", "--offline")).code).toBe(10);
    const planned = JSON.parse((await integ("plan", "-f", "first.yaml", "--json")).stdout) as { data: object[] };
    expect(planned.data.length).toBeGreaterThan(1);
    expect(JSON.stringify(planned.data)).not.toContain("does not exist yet");
    expect(text).not.toContain("ak_us_expired");
    // A secret that integ delivered stays in place, and its client is not created again.
    const kept = readFileSync(home.path("made.secret"), "utf8");
    const client = Object.keys(oauth_clients!)[0]!;
    const applied = await integ("apply", "-f", "first.yaml", "--only", client, "--yes");
    expect({ code: applied.code, kept: readFileSync(home.path("made.secret"), "utf8") }).toEqual({ code: 10, kept });
    // A second policy omits the items of the first policy, and keeps the form of a list of destinations.
    const adoption = ["adopt", "oauth-client", id, "--name", client];
    expect((await integ(...adoption, "-f", "first.yaml", "--yes")).code).toBe(0);
    const to = ["--secret-file", "list.secret", "--secret-file", "list.copy"];
    await integ(...creationWords(service, "--new", ...to));
    const more = await integ("policy", "init", "-f", "second.yaml");
    const [, policyId] = /^id: (\S+)/m.exec(text) ?? [];
    expect([more.code, more.stderr]).toEqual([
      0,
      expect.stringContaining(`left out: they belong to policy ${policyId}`),
    ]);
    const second = readFileSync(home.path("second.yaml"), "utf8");
    expect(second).not.toContain(id);
    expect(second).toContain(`[ {"file":"list.secret"}, {"file":"list.copy"} ]`);
    expect(await integ(...adoption, "-f", "second.yaml", "--yes")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`is the item ${client} of another policy, ${policyId}`),
    });
    const again = await integ("policy", "init", "-f", "first.yaml");
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("it exists");
    expect(readFileSync(home.path("first.yaml"), "utf8")).toBe(text);
  });
});

describe("integ schema policy", () => {
  it("is a JSON Schema that accepts a valid policy and rejects a defective one", async () => {
    const { code, stdout } = await integ("schema", "policy");
    expect(code).toBe(0);
    const validate = new Ajv2020({ strict: false }).compile(JSON.parse(stdout));
    expect(validate(parse(policy()))).toBe(true);
    expect(validate(parse(`${policy()}extra: 1\n`))).toBe(false);
  });

  it("of an unknown name is exit 2", async () => {
    expect(await integ("schema", "__proto__")).toMatchObject({ code: 2 });
  });
});

describe("docs/policy.md", () => {
  it("shows a policy that is valid", async () => {
    const text = readFileSync(new URL("../../docs/policy.md", import.meta.url), "utf8");
    const [, block = ""] = /```yaml\n(version: 1[^`]*)```/.exec(text) ?? [];
    write(block, "shown.yaml");
    expect(await integ("policy", "check", "-f", "shown.yaml", "--offline")).toMatchObject({ code: 0 });
  });
});

describe("oauth-clients audit --fix", () => {
  const create = async (name: string): Promise<{ id: string }> => {
    const made = await integ(...creationWords(service, "--json", "--secret-file", `${name}.secret`, "--new"));
    return JSON.parse(made.stdout) as { id: string };
  };

  it("rotates old clients to the destination that the journal knows, and prints no secret", async () => {
    const account = new Account(service);
    const made = [await create("old-1"), await create("old-2")];
    const before = readFileSync(home.path("old-1.secret"), "utf8");
    await new Promise((done) => setTimeout(done, 2100));
    const words = ["oauth-clients", "audit", "--fix", "--max-age", "1s", "--json"];
    const trial = await integ(...words, "--dry-run");
    expect(trial.stdout).toContain(`${made[0]!.id}: create`);
    const asked = await integ(...words);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringMatching(/rotate .*old-1\.secret.*valid for 24h\?/)]);
    expect(readFileSync(home.path("old-1.secret"), "utf8")).toBe(before);
    const fixed = await integ(...words, "--yes");
    const after = readFileSync(home.path("old-1.secret"), "utf8");
    expect(after).not.toBe(before);
    expect(fixed.stdout + fixed.stderr).not.toContain(after);
    const rows = (JSON.parse(fixed.stdout) as { data: { client_id: string; client_secret: unknown }[] }).data;
    expect(rows.length).toBeGreaterThanOrEqual(2);
    expect(new Set(rows.map(({ client_secret }) => client_secret))).toEqual(new Set([null]));
    const opened = await Promise.all(rows.map(({ client_id }) => account.opens(client_id, after)));
    expect(opened.filter(Boolean)).toHaveLength(1);
    const ids = (await account.live()).map(({ id }) => id);
    for (const { id } of made) expect(ids).toContain(id);
  });

  it("prints no new secret to the log of GitHub Actions", async () => {
    for (const name of ["masked", "taken"]) await create(name);
    writeFileSync(home.path("taken.secret"), "other");
    await new Promise((done) => setTimeout(done, 2100));
    const words = ["oauth-clients", "audit", "--fix", "--max-age", "1s", "--json", "--yes"];
    const before = readFileSync(home.path("masked.secret"), "utf8");
    const fixed = await home.integ(words, { env: { GITHUB_ACTIONS: "true" } });
    const after = readFileSync(home.path("masked.secret"), "utf8");
    expect(after, fixed.stderr).not.toBe(before);
    expectHidden(after, fixed);
    expect(fixed.stderr).toMatch(
      /taken.secret: the file already exists.*"next_command":"integ oauth-clients rotate oac/,
    );
    expect(fixed.stderr).not.toContain("--force");
  });
});

function expectHidden(secret: string, { stdout, stderr }: { readonly stdout: string; readonly stderr: string }): void {
  const hidden = secret.trimEnd();
  expect(hidden).not.toBe("");
  expect(stdout + stderr.replaceAll(`::add-mask::${hidden}\n`, "")).not.toContain(hidden);
}

describe("keys audit --fix", () => {
  const words = ["keys", "audit", "--fix", "--json"];
  const activeKeys = async (): Promise<string[]> => {
    const keys = (await service.control("GET", "/access_keys")) as { id: string; status: string }[];
    return keys.filter(({ status }) => status === "active").map(({ id }) => id);
  };

  it("asks, and revokes no key that the caller may authenticate with", async () => {
    expect((await integ(...words)).stderr).toContain("revoke ak_us_expired (expired, idle or never used)?");
    const trial = await integ(...words, "--dry-run");
    expect((JSON.parse(trial.stdout) as { data: { what: string }[] }).data.map(({ what }) => what)).toEqual([
      "revoke ak_us_expired",
    ]);
    expect(await activeKeys()).toContain("ak_us_expired");
    const fixed = await integ(...words, "--yes");
    expect(fixed.code).toBe(10);
    expect(fixed.stdout).toContain("ak_us_expired");
    expect(await activeKeys()).not.toContain("ak_us_expired");
    expect(await activeKeys()).toContain("ak_us_idle");
  });

  it("revokes every unused key if it knows its own, and lists the others with their remedy", async () => {
    const { us } = service;
    const own = homeOfTest();
    const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
    const endpoints = ["--access-token-endpoint", us.access_token_endpoint, "--api-key-id", us.access_key_id];
    const add = ["profiles", "add", "prod", ...address, ...endpoints, "--api-key-stdin", "--use"];
    const added = await integHere(own, add, { input: us.access_key_secret });
    expect(added.code, added.stderr).toBe(0);
    // A key that is used between the consent and the revocation must stay.
    await service.calm();
    await service.fault("DELETE /api/v1/access-keys/* status=429 retry-after=2 times=1");
    const firstRun = integHere(own, [...words, "--yes"]);
    const isDeletion = ({ method }: { method: string }): boolean => method === "DELETE";
    const requests = async () => ((await service.control("GET")) as { requests: { method: string }[] }).requests;
    await expect.poll(async () => (await requests()).some(isDeletion), { timeout: 20_000 }).toBe(true);
    await service.control("POST", "/access_keys/ak_us_forgotten", { lastUsedAt: Date.now() });
    const first = await firstRun;
    expect([first.code, first.stderr]).toEqual([
      5,
      expect.stringContaining("ak_us_forgotten has changed since the question"),
    ]);
    await service.control("POST", "/access_keys/ak_us_forgotten", { lastUsedAt: Date.now() - 365 * 86_400_000 });
    const fixed = await integHere(own, [...words, "--yes"]);
    expect(fixed.code, fixed.stderr).toBe(10);
    const { data } = JSON.parse(first.stdout) as { data: { id: string }[] };
    const revoked = [...data, JSON.parse(fixed.stdout) as { id: string }].map(({ id }) => id);
    expect(revoked.sort()).toEqual(["ak_us_forgotten", "ak_us_idle"]);
    expect(fixed.stderr).toMatch(/ak_us_ending .*\n/);
    const ending = await integHere(own, [...words, "--dry-run", "-p", "prod"]);
    expect(ending.stderr).toMatch(/integ keys rotate ak_us_ending [^\n]* -p prod\n/);
    expect(fixed.stderr).toMatch(/The audit has 5 findings on 2 keys: /);
    const active = await activeKeys();
    expect(active).toContain(us.access_key_id);
    for (const id of revoked) expect(active).not.toContain(id);
  });

  it("replaces old keys at the destination that the journal knows, with an overlap", async () => {
    const { us } = service;
    const own = await homeWithProfile(service, { names: [] });
    try {
      const made = ["keys", "create", "--name", "aged", "--type", "service_account", "--scope", "push-ingest:*"];
      const created = await integHere(own, [...made, "--expires-in", "200d", "--secret-file", "aged.secret", "--json"]);
      const { id } = JSON.parse(created.stdout) as { id: string };
      const [now, day] = [Date.now(), 86_400_000];
      const aged = { createdAt: now - 400 * day, lastUsedAt: now - day };
      await service.control("POST", `/access_keys/${id}`, aged);
      const before = readFileSync(own.path("aged.secret"), "utf8");
      const trial = await integHere(own, [...words, "--dry-run"]);
      expect(trial.stdout).toContain(`${id}: create the key`);
      expect((await integHere(own, words)).code).toBe(2);
      expect(readFileSync(own.path("aged.secret"), "utf8")).toBe(before);
      const fixed = await integHere(own, [...words, "--yes"]);
      const after = readFileSync(own.path("aged.secret"), "utf8");
      expect(after).not.toBe(before);
      expect(fixed.stdout + fixed.stderr).not.toContain(after);
      expect(fixed.stderr).toContain("--fix replaces it, with an overlap of 1d.");
      for (const secret of [before, after]) {
        const body = JSON.stringify({ secret });
        const headers = { "content-type": "application/json" };
        expect((await fetch(us.access_token_endpoint, { method: "POST", headers, body })).status).toBe(200);
      }
      const keys = (await service.control("GET", "/access_keys")) as { name: string; scopes: string[] }[];
      // Each key has a marker of its own: the second key does not inherit the marker of the first.
      const alike = keys.filter(({ name }) => /^aged-[0-9a-f]{12}$/.test(name)).map(({ scopes }) => scopes);
      expect(alike).toEqual([["push-ingest:*"], ["push-ingest:*"]]);
    } finally {
      own.remove();
    }
  });

  it("prints no new secret to the log of GitHub Actions", async () => {
    const own = await homeWithProfile(service, { names: [] });
    try {
      const made = ["keys", "create", "--name", "masked", "--type", "service_account", "--scope", "push-ingest:*"];
      const file = ["--expires-in", "200d", "--secret-file", "masked.secret", "--json"];
      const created = await integHere(own, [...made, ...file]);
      const { id } = JSON.parse(created.stdout) as { id: string };
      const [now, day] = [Date.now(), 86_400_000];
      await service.control("POST", `/access_keys/${id}`, { createdAt: now - 400 * day, lastUsedAt: now - day });
      const before = readFileSync(own.path("masked.secret"), "utf8");
      const fixed = await integHere(own, [...words, "--yes"], { env: { GITHUB_ACTIONS: "true" } });
      const after = readFileSync(own.path("masked.secret"), "utf8");
      expect(after, fixed.stderr).not.toBe(before);
      expectHidden(after, fixed);
    } finally {
      own.remove();
    }
  });
});
