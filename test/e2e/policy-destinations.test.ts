import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest(tokenEnv(service));
});

const integ = (...words: string[]): Promise<Ended> => integHere(home, words);
const apply = (...words: string[]): Promise<Ended> => integ("apply", "--yes", "--json", "-q", ...words);
const format = "json";

/** Destinations as a policy writes them. Each puts the secret into `a.json`. */
const destinations: Readonly<Record<string, string>> = {
  file: `{ file: a.json, format: ${format} }`,
  "list of two": `[{ file: b.json, format: ${format} }, { file: a.json, format: ${format} }]`,
  command: `{ command: "cat > a.json", format: ${format} }`,
};

const itemText = (name: string, to: string, scopes: string, overlap: string): string =>
  `  ${name}:\n    service_account: ${service.us.service_account_id}\n    scopes: [${scopes}]\n    rotate: { every: 60d, overlap: ${overlap} }\n    secret: ${to}\n`;
const write = (
  to: string,
  { name = "a", file = "integ.yaml", id = "pol_of_this_test", scopes = "entity:read", overlap = "0s" } = {},
): void =>
  writeFileSync(
    home.path(file),
    `version: 1\nid: ${id}\nunmanaged: ignore\noauth_clients:\n${itemText(name, to, scopes, overlap)}`,
  );
const writeKey = (to: string): void =>
  writeFileSync(
    home.path("integ.yaml"),
    `version: 1\nid: pol_of_this_test\nunmanaged: ignore\naccess_keys:\n  k:\n    type: service_account\n    scopes: ["push-ingest:*"]\n    expires_in: 30d\n    secret: ${to}\n`,
  );

interface Row {
  readonly action: string;
  readonly result: string;
  readonly message: string;
}
const rowOf = ({ stdout }: Ended): Row => (JSON.parse(stdout) as { data: Row[] }).data[0]!;

async function opens(file = "a.json"): Promise<boolean> {
  const credential = JSON.parse(readFileSync(home.path(file), "utf8")) as Record<"client_id" | "client_secret", string>;
  return account.opens(credential.client_id, credential.client_secret);
}

describe("a file with a client's secret", () => {
  beforeEach(async () => {
    write(destinations["file"]!);
    expect((await apply()).code).toBe(0);
  });

  it("is not overwritten with a key's secret", async () => {
    writeKey("{ file: a.json }");
    const ended = await apply();
    expect([ended.code, rowOf(ended)]).toEqual([10, expect.objectContaining({ action: "create", result: "left" })]);
    expect(ended.stderr).toContain("Name another destination for k in the policy file, or revoke the client");
    expect(await opens()).toBe(true);
  });

  it("is overwritten once the client is revoked, or the file is moved away", async () => {
    write(destinations["file"]!, { name: "b" });
    expect((await apply()).code).toBe(10);
    renameSync(home.path("a.json"), home.path("kept.json"));
    expect(rowOf(await apply())).toMatchObject({ action: "create", result: "done" });
    expect([await opens(), await opens("kept.json")]).toEqual([true, true]);
    write(destinations["file"]!, { name: "c" });
    const credential = JSON.parse(readFileSync(home.path("a.json"), "utf8")) as { client_id: string };
    const newest = (await account.live()).find(({ client_id }) => client_id === credential.client_id);
    expect(rowOf(await apply())).toMatchObject({ action: "adopt", result: "left" });
    expect((await integ("oauth-clients", "revoke", newest!.id, "--yes")).code).toBe(0);
    expect(rowOf(await apply())).toMatchObject({ action: "create", result: "done" });
  });

  it("is not overwritten by a plan that was saved while the file was missing", async () => {
    renameSync(home.path("a.json"), home.path("away.json"));
    write(destinations["file"]!, { name: "b" });
    expect((await integ("plan", "--exit-code", "--out", "plan.json")).code).toBe(10);
    renameSync(home.path("away.json"), home.path("a.json"));
    const ended = await apply("plan.json");
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("Changed: b")]);
  });
});

describe("the end of an overlap looks again at a command's destination", () => {
  const edit = { "another secret": "x", "no secret": "" } as const;

  it.each([
    ["has the new secret", undefined, 0],
    ...Object.entries(edit).map(([what, text]) => [`has ${what}`, text, 8] as const),
    ["cannot be read", null, 8],
    ["has no check", undefined, 0],
  ] as const)("which %s", async (what, text, code) => {
    const isChecked = what !== "has no check";
    const to = isChecked ? '{ command: "cat > a", check: "cat a" }' : '{ command: "cat > a" }';
    write(to);
    expect((await apply()).code).toBe(0);
    write(to, { scopes: "entity:read, organization:read", overlap: "900ms" });
    expect(rowOf(await apply())).toMatchObject({ action: "change_scopes", result: "waiting" });
    const secret = readFileSync(home.path("a"));
    if (text === null) renameSync(home.path("a"), home.path("away"));
    else if (text !== undefined) writeFileSync(home.path("a"), text);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const ended = await integ("apply", "--yes", "--json");
    expect([ended.code, ended.stderr.includes("a: Unverified")], ended.stderr).toEqual([code, !isChecked]);
    expect((await account.live()).length, what).toBe(code === 0 ? 1 : 2);
    writeFileSync(home.path("a"), secret);
    expect((await apply()).code).toBe(0);
    expect((await account.live()).length).toBe(1);
  });
});

it("a run never replaces its own credential with one that it creates", async () => {
  const { base_url, token_endpoint, api_key } = service.us;
  const words = ["--base-url", base_url, "--region", "us", "--token-endpoint", token_endpoint, "--api-key-stdin"];
  expect((await integHere(home, ["profiles", "add", "prod", ...words], { input: api_key })).code).toBe(0);
  write("{ profile: prod }");
  const ended = await apply("-p", "prod");
  expect([ended.code, rowOf(ended)]).toEqual([10, expect.objectContaining({ action: "create", result: "left" })]);
  expect(ended.stderr).toContain("Name another destination for a in the policy file.");
  const plan = await integ("plan", "--exit-code", "-p", "prod");
  expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining("Plan: 1 to decide, 0 unchanged.")]);
  const dry = await integ("apply", "--dry-run", "-p", "prod");
  expect([dry.code, dry.stderr]).toEqual([0, expect.stringContaining("Nothing would be changed.")]);
});

it("what a command's check prints is replaced only if integ delivered it", async () => {
  const to = '{ command: "cat > a", check: "cat a" }';
  write(to);
  expect((await apply()).code).toBe(0);
  const [client] = await account.live();
  writeFileSync(home.path("a"), "a person's only copy\n");
  write(to, { scopes: "entity:read, organization:read" });
  const ended = await apply();
  expect([ended.code, ended.stderr]).toEqual([
    2,
    expect.stringContaining("integ did not deliver what its check prints"),
  ]);
  expect([readFileSync(home.path("a"), "utf8"), await account.live()]).toEqual(["a person's only copy\n", [client]]);
  renameSync(home.path("a"), home.path("kept"));
  expect((await apply()).code).toBe(0);
  expect((await account.live()).length).toBe(1);
});

it.each([
  [
    "the command is corrected",
    '{ command: "cat > a", check: "cat a" }',
    '{ command: "umask 077; cat > a", check: "cat a" }',
  ],
  ["a check is added", '{ command: "cat > a" }', '{ command: "cat > a", check: "cat a" }'],
])("what a command stored for an item is replaced after %s", async (_what, first, then) => {
  write(first);
  expect((await apply()).code).toBe(0);
  write(then, { scopes: "entity:read, organization:read" });
  expect(rowOf(await apply())).toMatchObject({ action: "change_scopes", result: "done" });
});

it("a command that stored the secret and failed is run again", async () => {
  write('{ command: "cat > a && test ! -e fail", check: "cat a" }');
  writeFileSync(home.path("fail"), "");
  expect((await apply()).code).toBe(12);
  renameSync(home.path("fail"), home.path("corrected"));
  expect((await apply()).code).toBe(0);
  expect((await account.live()).length).toBe(1);
});

it("a rotation is proven before a delivery that no one can read back: a claim leaves nothing to decide", async () => {
  const to = '{ command: "test ! -e fail && cat > a" }';
  write(to);
  expect((await apply()).code).toBe(0);
  writeFileSync(home.path("fail"), "");
  write(to, { scopes: "entity:read, organization:read" });
  expect((await apply()).code).toBe(12);
  const { data } = JSON.parse((await integ("journal", "list", "--json")).stdout) as { data: Record<string, string>[] };
  const { id } = data.find(({ operation }) => operation === "oauth_client.create")!;
  expect((await integ("journal", "claim", id!, "--secret-command", "cat > a")).code).toBe(0);
  renameSync(home.path("fail"), home.path("corrected"));
  expect((await apply()).code).toBe(0);
  expect((await account.live()).length).toBe(1);
});

it("--force covers what a check printed when it was typed, also for the claim", async () => {
  writeFileSync(home.path("a"), "old");
  const to = ["--secret-command", "test ! -e fail && cat > a", "--secret-check-command", "cat a"];
  const create = creationWords(service);
  writeFileSync(home.path("fail"), "");
  expect((await integ(...create, ...to, "--force")).code).toBe(12);
  renameSync(home.path("fail"), home.path("corrected"));
  const [entry] = JSON.parse((await integ("journal", "list", "--json")).stdout).data as { id: string }[];
  writeFileSync(home.path("a"), "another's");
  expect((await integ("journal", "claim", entry!.id, ...to)).code).toBe(2);
  writeFileSync(home.path("a"), "old");
  expect((await integ("journal", "claim", entry!.id, ...to)).code).toBe(0);
});

it("a check that names the client reads no place before the client has an id", async () => {
  writeFileSync(home.path("s-prod"), "a person's only copy\n");
  write('{ command: "cat > s-$INTEG_RESOURCE_ID", check: "cat s-$INTEG_RESOURCE_ID*" }');
  expect((await apply()).code).toBe(0);
  write('{ command: "cat > s-prod", check: "cat s-${INTEG_ENTRY:+prod}" }', {
    scopes: "entity:read, organization:read",
  });
  expect((await apply()).code).toBe(12);
  expect(readFileSync(home.path("s-prod"), "utf8")).toBe("a person's only copy\n");
});

it("a rotation into a command with a check is proven by a later run if the first proof was interrupted", async () => {
  const to = '{ command: "cat > a", check: "cat a" }';
  write(to);
  expect((await apply()).code).toBe(0);
  write(to, { scopes: "entity:read, organization:read" });
  await service.fault("POST /oauth/token status=503 times=2");
  expect((await apply("--retry-for", "0")).code).toBe(8);
  expect((await account.live()).length).toBe(2);
  expect((await apply()).code).toBe(0);
  expect((await account.live()).length).toBe(1);
});

it.each(["disabled", "not found"])("a client that is %s is not replaced, because it may work again", async (status) => {
  write(destinations["file"]!);
  expect((await apply()).code).toBe(0);
  const [client] = await account.live();
  const before = readFileSync(home.path("a.json"), "utf8");
  if (status === "disabled") await service.control("POST", `/oauth_clients/${client!.id}`, { status });
  else await service.fault("GET /v1/oauth_clients/* status=404 body=html times=1");
  const ended = await apply();
  expect([ended.code, ended.stderr]).toEqual([10, expect.stringContaining(`is ${status} and may work again`)]);
  expect(ended.stderr).toContain(`integ oauth-clients get ${client!.id}`);
  expect(readFileSync(home.path("a.json"), "utf8")).toBe(before);
  await service.calm();
  await service.control("POST", `/oauth_clients/${client!.id}`, { status: "active" });
  expect((await apply()).code).toBe(0);
  expect(await account.live()).toMatchObject([{ id: client!.id }]);
});

it("a profile keeps a credential that integ did not deliver, until a person types the creation and adopts it", async () => {
  const { base_url, token_endpoint, second_api_key, service_account_id } = service.us;
  const words = ["--base-url", base_url, "--region", "us", "--token-endpoint", token_endpoint, "--api-key-stdin"];
  await integHere(home, ["profiles", "add", "ci", ...words], { input: second_api_key });
  const profiles = async (): Promise<string> => (await integ("profiles", "list", "--json")).stdout;
  const before = await profiles();
  write("{ profile: ci }");
  const refused = await apply();
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("with --secret-profile ci,")]);
  expect([await profiles(), await account.live()]).toEqual([before, []]);
  const create = ["oauth-clients", "create", "--service-account", service_account_id, "--scope", "entity:read"];
  const created = await integ(...create, "--secret-profile", "ci", "--json");
  const { id } = JSON.parse(created.stdout) as { id: string };
  expect((await integ("adopt", "oauth-client", id, "--name", "a")).code).toBe(0);
  write("{ profile: ci }", { scopes: "entity:read, organization:read" });
  expect(rowOf(await apply())).toMatchObject({ action: "change_scopes", result: "done" });
  const [left, ...more] = await account.live();
  expect([more, left?.id === id]).toEqual([[], false]);
});

it("of two simultaneous runs with one destination, only one delivers its secret", async () => {
  const file = destinations["command"]!;
  write(file, { name: "a", file: "a.yaml" });
  write(file, { name: "b", file: "b.yaml" });
  const ended = await Promise.all(
    ["a", "b"].map((name) => home.spawned(["apply", "--yes", "--json", "-f", `${name}.yaml`])),
  );
  const codes = ended.map(({ code }) => code).sort((one, other) => one! - other!);
  // Exit 5: both runs planned before either had an entry. Exit 10: one run planned later.
  expect(codes[0]).toBe(0);
  expect([5, 10]).toContain(codes[1]);
  expect([await opens(), (await account.live()).length]).toEqual([true, 1]);
});

it("a plan shows a changed command in full although nothing is due, and a saved plan is refused", async () => {
  write(destinations["command"]!);
  expect((await apply()).code).toBe(0);
  await integ("plan", "--out", "plan.json");
  write(`{ command: "cat > elsewhere.json", format: ${format} }`);
  const { code, stdout } = await integ("plan");
  expect([code, stdout]).toEqual([0, expect.stringMatching(/cat > elsewhere\.json.*changed since the last delivery/s)]);
  const ended = await apply("plan.json");
  expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("Changed: a")]);
});
