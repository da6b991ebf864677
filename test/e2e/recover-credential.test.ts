// A recovery of many entries requests its credential once, and again only after a change, a failure or a refusal.
import { readFileSync, writeFileSync } from "node:fs";
import { beforeEach, expect, it } from "vitest";
import { Account, type CreatedClient } from "../support/account.ts";
import { Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;
let client: CreatedClient;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest();
  client = await account.make(["service_account:manage", "entity:read", "organization:read"]);
});

async function expectExit(code: number, words: readonly string[], input = ""): Promise<void> {
  const ended = await home.integ(words, { input });
  expect(ended.code, ended.stderr).toBe(code);
}

async function addProfile(words: readonly string[], input?: string): Promise<void> {
  const { base_url, token_endpoint } = service.us;
  const place = ["--region", "us", "--base-url", base_url, "--token-endpoint", token_endpoint];
  await expectExit(0, ["profiles", "add", "nightly", ...place, "--client-id", client.client_id, ...words], input);
}

async function interrupt(words: readonly string[]): Promise<void> {
  await service.fault("POST /v1/oauth_clients drop=before times=1");
  await expectExit(7, [...words, "-p", "nightly", "--retry-for", "0"]);
}

const creation = (name: string): string[] => creationWords(service, "--secret-file", home.path(name));

async function tokens(): Promise<number> {
  return (await account.requests()).filter(({ path }) => path === "/oauth/token").length;
}

async function recoverAll(code: number): Promise<{ readonly states: readonly string[]; readonly notes: string }> {
  const ended = await home.integ(["journal", "recover", "--json"]);
  expect(ended.code, ended.stderr).toBe(code);
  const { data } = JSON.parse(ended.stdout) as { data: { operation: string; state: string }[] };
  return { states: data.map(({ operation, state }) => `${operation} ${state}`), notes: ended.stderr };
}

it("requests the credential of five creations once, and fetches one token", async () => {
  const runsFile = home.path("asked");
  await addProfile(["--client-secret-command", `echo run >> '${runsFile}'; echo '${client.client_secret}'`]);
  for (const name of ["a", "b", "c", "d", "e"]) await interrupt([...creation(name), "--new"]);
  const runs = (): number => readFileSync(runsFile, "utf8").trimEnd().split("\n").length;
  const [runsBefore, tokensBefore] = [runs(), await tokens()];
  expect((await recoverAll(0)).states).toEqual(Array.from({ length: 5 }, () => "oauth_client.create done"));
  expect([runs() - runsBefore, (await tokens()) - tokensBefore]).toEqual([1, 1]);
});

it("continues with the new credential after it rotated the profile's own", async () => {
  await addProfile(["--client-secret-stdin"], client.client_secret);
  await interrupt(creation("before"));
  await interrupt(["oauth-clients", "rotate", client.id, "--secret-profile", "nightly", "--yes"]);
  await interrupt([...creation("after"), "--new"]);
  const tokensBefore = await tokens();
  const [first, rotation, last] = ["oauth_client.create done", "oauth_client.rotate done", "oauth_client.create done"];
  const { states, notes } = await recoverAll(0);
  expect(states).toEqual([first, rotation, last]);
  expect(notes).toMatch(/^Note: \w+: .*profile nightly/m);
  expect((await account.clients()).find(({ id }) => id === client.id)?.status).toBe("revoked");
  // One token each for the first creation, the rotation, the proof, and the last creation with the new client.
  expect((await tokens()) - tokensBefore).toBe(4);
});

it("continues with another token if the service revokes one early", async () => {
  const runsFile = home.path("asked");
  await addProfile(["--client-secret-command", `echo run >> '${runsFile}'; echo '${client.client_secret}'`]);
  for (const name of ["a", "b", "c", "d", "e", "f"]) await interrupt([...creation(name), "--new"]);
  writeFileSync(runsFile, "");
  const tokensBefore = await tokens();
  await service.fault("POST /v1/oauth_clients status=401 after=1 times=1");
  const { states } = await recoverAll(0);
  expect(states).toEqual(Array.from({ length: 6 }, () => "oauth_client.create done"));
  // Three tokens: for the first four entries together, for the entry whose token was refused, and for the others.
  expect([readFileSync(runsFile, "utf8"), (await tokens()) - tokensBefore]).toEqual(["run\nrun\nrun\n", 3]);
});

it("says how to finish if the profile now has the credential of another service account (§4.2 rule 2)", async () => {
  const { api_key, second_api_key, other_account_api_key, base_url } = service.us;
  const place = { INTEG_BASE_URL: base_url, INTEG_REGION: "us" };
  const as = (key: string): { env: Record<string, string> } => ({ env: { ...place, INTEG_API_KEY: key } });
  await service.fault("POST /v1/oauth_clients effect=abandoned times=1");
  const first = await home.integ([...creation("made"), "--retry-for", "0"], as(api_key));
  expect(first.code, first.stderr).toBe(7);
  const other = await home.integ(["journal", "recover"], as(other_account_api_key));
  expect(other.code, other.stderr).toBe(7);
  expect(other.stderr).toContain("has another credential than at the first attempt");
  expect(other.stderr).toMatch(/Fix: Give profile env the credential of the first attempt again.*changed since/s);
  expect(other.stderr).not.toContain("--idempotency-key");
  // A second key of the same account is the same principal. integ reports the change, and finishes the entry.
  const same = await home.integ(["journal", "recover"], as(second_api_key));
  expect(same.code, same.stderr).toBe(0);
  expect(readFileSync(home.path("made"), "utf8")).not.toBe("");
});
