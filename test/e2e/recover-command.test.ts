// Recovers a secret whose destination is a command. Commands are not recorded, because they may contain a credential.
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Account } from "../support/account.ts";
import { Home } from "../support/program.ts";
import { creationWords, homeOfTest } from "../support/service.ts";
import { integHere } from "../support/program-here.ts";
import { KeysDesk, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
let account: Account;

beforeAll(async () => {
  desk = await KeysDesk.open();
  account = new Account(desk.service);
});
afterEach(async () => {
  await account.clear();
  desk.clear();
});
afterAll(() => desk.close());

const store = "cat > store";
const noRetry = ["--retry-for", "0"];

function oauthHome(): Home {
  const { service } = desk;
  return homeOfTest({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
}

/** @returns the recovery that a failure suggests, with its entry and options */
function nextIn(stderr: string): string[] {
  const fix = /Fix: Recover the entry (\w+) and pass --secret-command again(.*): commands are not stored\.$/m.exec(
    stderr,
  );
  expect(fix, stderr).not.toBeNull();
  const [, id = "", more = ""] = fix ?? [];
  return ["journal", "recover", id, "--secret-command", store, ...(more.match(/--[\w-]+/g) ?? [])];
}

describe("a rotation with a lost response whose secret goes to a command", () => {
  it("keeps the old OAuth client until the command is typed again", async () => {
    const at = oauthHome();
    const old = await account.make(["entity:read"]);
    await desk.service.fault("POST /v1/oauth_clients drop=after times=1");
    const words = ["oauth-clients", "rotate", old.id, "--secret-command", store, ...noRetry];
    expect((await at.integ(words)).code).toBe(7);
    for (const more of [[], ["--replace-lost-secret"], ["--yes"]]) {
      const { code, stdout, stderr } = await at.integ(["journal", "recover", ...more]);
      expect([7, 9]).toContain(code);
      expect(stdout).not.toContain("sbx_us_cs_");
      expect(stderr).toContain("is not stored");
      expect(await account.opens(old.client_id, old.client_secret)).toBe(true);
    }
    const { stderr } = await at.integ(["journal", "recover", "--replace-lost-secret"]);
    expect((await at.integ(nextIn(stderr))).code).toBe(0);
    const [live, ...others] = await account.live();
    expect(others).toEqual([]);
    expect(await account.opens(live!.client_id!, readFileSync(at.path("store"), "utf8").trimEnd())).toBe(true);
    expect(await unfinishedEntries(at)).toEqual([]);
  });
});

describe("a rotation that was killed in its overlap after its command got the secret", () => {
  it("needs no command: the old client is revoked at the end of the overlap", async () => {
    const at = oauthHome();
    const old = await account.make(["entity:read"]);
    const child = at.start(["oauth-clients", "rotate", old.id, "--secret-command", store, "--overlap", "6s"]);
    let output = "";
    child.stderr!.on("data", (text) => (output += String(text)));
    await vi.waitUntil(() => output.includes("The old client is revoked when"), { timeout: 30_000 });
    child.kill("SIGKILL");
    await once(child, "close");
    expect(await account.opens(old.client_id, old.client_secret)).toBe(true);
    const revoked = async (): Promise<boolean> => {
      const { code, stderr } = await integHere(at, ["journal", "recover"]);
      expect(code, stderr).toBe(0);
      return !(await account.opens(old.client_id, old.client_secret));
    };
    await vi.waitUntil(revoked, { timeout: 30_000, interval: 500 });
    const [live] = await account.live();
    expect(await account.opens(live!.client_id!, readFileSync(at.path("store"), "utf8").trimEnd())).toBe(true);
  });
});

it.each([
  ["works", undefined, 0],
  ["is refused", "POST /oauth/token status=401 times=1", 8],
] as const)("a claim to a command proves a rotation's secret again, which %s", async (_what, fault, exitCode) => {
  const at = oauthHome();
  const old = await account.make(["entity:read"]);
  expect((await at.integ(["oauth-clients", "rotate", old.id, "--secret-command", "exit 1"])).code).toBe(12);
  const [{ id } = { id: "" }] = await unfinishedEntries(at);
  if (fault) await desk.service.fault(fault);
  const claimed = await at.integ(["journal", "claim", id, "--secret-command", store]);
  expect(claimed.code, claimed.stderr).toBe(0);
  expect(claimed.stderr.includes("could not be proven again")).toBe(exitCode === 8);
  const recovered = await at.integ(["journal", "recover"]);
  expect(recovered.code, recovered.stderr).toBe(exitCode);
  expect(await account.opens(old.client_id, old.client_secret)).toBe(exitCode === 8);
});

it.each([[[]], [["--secret-file", "other"]]])("a recovery looks again with the typed check (also %j)", async (more) => {
  const at = oauthHome();
  const old = await account.make(["entity:read"]);
  await desk.service.fault("DELETE /v1/oauth_clients/* status=503 times=1");
  const typed = ["--secret-command", store, "--secret-check-command", "cat store"];
  expect((await at.integ(["oauth-clients", "rotate", old.id, ...more, ...typed, ...noRetry])).code).toBe(7);
  const secret = readFileSync(at.path("store"), "utf8");
  writeFileSync(at.path("store"), "PERSON");
  const refused = await at.integ(["journal", "recover", ...typed]);
  expect([refused.code, refused.stderr]).toEqual([8, expect.stringContaining("is not there now")]);
  expect(await account.opens(old.client_id, old.client_secret)).toBe(true);
  writeFileSync(at.path("store"), secret);
  const recovered = await at.integ(["journal", "recover", ...typed]);
  expect([recovered.code, recovered.stderr]).toEqual([0, expect.not.stringContaining("Unverified")]);
  expect(await account.opens(old.client_id, old.client_secret)).toBe(false);
});

describe("a pending creation whose secret goes to a command", () => {
  it("reports each time that the command is needed, and finishes with it", async () => {
    const at = oauthHome();
    await desk.service.fault("POST /v1/oauth_clients pending=1 secret=replay times=1");
    const created = await at.integ(creationWords(desk.service, "--secret-command", store, "--wait", "0s"));
    expect(created.code).toBe(8);
    for (let round = 0; round < 2; round += 1) {
      const { code, stdout, stderr } = await at.integ(["journal", "recover", "--wait", "0s"]);
      expect(code).toBe(8);
      expect(stdout).not.toContain("sbx_us_cs_");
      expect(stderr).toContain("is not stored");
      nextIn(stderr);
    }
    const { stderr } = await at.integ(["journal", "recover", "--wait", "0s"]);
    const ended = await at.integ(nextIn(stderr));
    expect(ended.code, ended.stderr).toBe(0);
    expect(readFileSync(at.path("store"), "utf8")).toMatch(/^sbx_us_cs_\w+$/);
  });
});

describe("a creation that was killed while its command ran", () => {
  it("has lost nothing: the secret is kept, and no client that may be in use is revoked", async () => {
    const at = oauthHome();
    const slow = "cat > store; echo > taken; sleep 30";
    const child = at.start(creationWords(desk.service, "--secret-command", slow));
    await vi.waitUntil(() => existsSync(at.path("taken")), { timeout: 30_000 });
    child.kill("SIGKILL");
    await once(child, "close");
    const [created] = await account.live();
    for (const more of [[], ["--replace-lost-secret"], ["--replace-lost-secret", "--secret-command", slow]]) {
      expect((await at.integ(["journal", "recover", ...more])).code).toBe(12);
      expect(await account.live()).toEqual([created]);
    }
    const [entry] = await unfinishedEntries(at);
    expect(entry).toMatchObject({ state: "undelivered", resource_id: created!.id });
    const claimed = await at.integ(["journal", "claim", entry!.id, "--secret-file", "claimed"]);
    expect(claimed.code, claimed.stderr).toBe(0);
    const secret = readFileSync(at.path("claimed"), "utf8").trimEnd();
    expect(readFileSync(at.path("store"), "utf8").trimEnd()).toBe(secret);
    expect(await account.opens(created!.client_id!, secret)).toBe(true);
    expect(await unfinishedEntries(at)).toEqual([]);
  });
});

describe("several entries, recovered with one command", () => {
  async function loseThree(at: Home): Promise<string[]> {
    const places = [
      ["--secret-command", store],
      ["--secret-command", "cat > other"],
      ["--secret-file", "file"],
    ];
    const scopes = ["entity:read", "organization:read", "service_account:manage"];
    for (const [index, place] of places.entries()) {
      await desk.service.fault("POST /v1/oauth_clients drop=before times=1");
      const account = desk.service.us.service_account_id;
      const words = ["oauth-clients", "create", "--service-account", account, "--scope", scopes[index]!];
      expect((await at.integ([...words, ...place, ...noRetry])).code).toBe(7);
    }
    return (await unfinishedEntries(at)).map(({ id }) => id).toReversed();
  }

  it("keep their own destinations: no secret goes to the command of another entry", async () => {
    const at = oauthHome();
    const [, other] = await loseThree(at);
    const { code, stdout, stderr } = await at.integ(["journal", "recover", "--secret-command", store, "--json"]);
    expect(code).toBe(7);
    expect(stderr).toContain("another command");
    expect(stdout).not.toContain("sbx_us_cs_");
    expect(readFileSync(at.path("store"), "utf8")).toMatch(/^sbx_us_cs_\w+$/);
    expect(readFileSync(at.path("file"), "utf8")).toMatch(/^sbx_us_cs_\w+$/);
    expect((await unfinishedEntries(at)).map(({ id }) => id)).toEqual([other]);
    // If the entry is named by its id, its secret goes to the typed destination.
    expect((await at.integ(["journal", "recover", other!, "--secret-command", "cat > third"])).code).toBe(0);
    expect(readFileSync(at.path("third"), "utf8")).toMatch(/^sbx_us_cs_\w+$/);
  });

  it("keep no command's text in the journal", async () => {
    const at = oauthHome();
    await loseThree(at);
    const { stdout } = await at.integ(["journal", "export"]);
    expect(stdout).toContain("oauth_client.create");
    expect(stdout).not.toContain("cat >");
  });
});
