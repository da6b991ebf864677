import { execFileSync } from "node:child_process";
import fs, { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { anotherUser, Home, type Ended, program } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();

function home(env: Readonly<Record<string, string>> = {}): Home {
  return homeOfTest(env);
}

function add(at: Home, name: string, ...more: string[]): Promise<Ended> {
  const words = ["profiles", "add", name, "--region", "us", "--base-url", service.us.base_url, "--api-key-stdin"];
  return at.integ([...words, ...more], { input: `${service.us.api_key}\n` });
}

describe("profiles", () => {
  it("adds a profile, uses it as the default, keeps its key with mode 0600 and shows it masked", async () => {
    const at = home();
    const added = await add(at, "prod", "--json");
    expect(added.code).toBe(0);
    expect(`${added.stdout}${added.stderr}`).not.toContain(service.us.api_key);
    expect((await at.integ(["entities", "list", "--json"])).code).toBe(0);
    const shown = await at.integ(["profiles", "show", "prod", "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ name: "prod", default: true, credential: { kept_in: "file" } });
    expect(shown.stdout).not.toContain(service.us.api_key);
    expect(statSync(at.path("config")).mode & 0o777).toBe(0o700);
    for (const file of filesBelow(at.path("config"))) expect(statSync(file).mode & 0o777, file).toBe(0o600);
  });

  it("shows the id of the profile's key, and doctor warns if no key of the organization has it", async () => {
    const at = home();
    const { organization_id, access_token_endpoint: endpoint, access_key_secret: key } = service.us;
    const more = ["--organization-id", organization_id, "--access-token-endpoint", endpoint];
    const words = ["--region", "us", "--base-url", service.us.base_url, "--api-key-stdin", ...more];
    expect((await at.integ(["profiles", "add", "prod", ...words], { input: key })).code).toBe(0);
    await at.integ(["profiles", "edit", "prod", "--api-key-id", ""]);
    const missing = (await at.integ(["doctor", "--json"])).stdout;
    expect((JSON.parse(missing) as { data: Record<string, string>[] }).data).toContainEqual({
      check: "key id",
      status: "warning",
      message: expect.stringMatching(/^not known: integ cannot rotate the profile's own key/),
      hint: "Set it with integ profiles edit prod --api-key-id <id>.",
      next: "integ help profiles edit",
    });
    const edited = await at.integ(["profiles", "edit", "prod", "--api-key-id", "ak_nobody"]);
    expect(edited.stdout).toMatch(/^key id +ak_nobody$/m);
    const { data } = JSON.parse((await at.integ(["doctor", "--json"])).stdout) as { data: Record<string, string>[] };
    expect(data.find(({ check }) => check === "legacy contract")).toMatchObject({
      status: "warning",
      message: expect.stringContaining("ak_nobody is not the id of a key"),
    });
    await at.integ(["profiles", "edit", "prod", "--api-key-stdin"], { input: service.us.api_key });
    const { stdout } = await at.integ(["doctor", "--json"]);
    expect(stdout).toContain("Give the profile the secret of an access key");
    const refused = await at.integ(["profiles", "add", "two", ...words], { input: "wrong" });
    expect([refused.code, refused.stderr.match(/not accepted/g)?.length]).toEqual([3, 1]);
    expect(refused.stderr).not.toContain("kept in");
  });

  it.each([
    ["an API key with a token endpoint", { INTEG_API_KEY: "k" }, "api_key"],
    ["client credentials", { INTEG_CLIENT_ID: "c", INTEG_CLIENT_SECRET: "s" }, "client_credentials"],
    ["a legacy token alone", { INTEG_ACCESS_TOKEN: "t" }, undefined],
  ])("shows the kind of the environment's credential: %s", async (_what, env, kind) => {
    const address = { INTEG_REGION: "us", INTEG_BASE_URL: "https://a.example" };
    const at = home({ ...address, INTEG_TOKEN_ENDPOINT: "https://id.example/token", ...env });
    const { stdout } = await at.integ(["profiles", "show", "--json"]);
    expect((JSON.parse(stdout) as { credential: { kind: string } | null }).credential?.kind).toBe(kind);
  });

  it("shows the token endpoint of an API key's profile", async () => {
    const at = home();
    await add(at, "prod", "--token-endpoint", service.us.token_endpoint);
    expect((await at.integ(["profiles", "show", "prod"])).stdout).toContain(service.us.token_endpoint);
  });

  it("changes one property of a credential and keeps the others", async () => {
    const home = homeOfTest();
    const integ = async (words: string[], input = ""): Promise<Record<string, unknown>> => {
      const { code, stdout, stderr } = await home.integ([...words, "--json"], { input });
      expect({ words, code, stderr: code === 0 ? "" : stderr }).toEqual({ words, code: 0, stderr: "" });
      return (JSON.parse(stdout) as { credential: Record<string, unknown> }).credential;
    };
    const address = ["--region", "us", "--base-url", "https://api.example.com"];
    await integ(["profiles", "add", "k", ...address, "--api-key-stdin", "--basic-style", "key-as-user"], "one\n");
    const stays = { kind: "api_key", basic_style: "key-as-user" };
    expect(await integ(["profiles", "edit", "k", "--api-key-id", "ak_1"])).toMatchObject({ ...stays, key_id: "ak_1" });
    expect(await integ(["profiles", "edit", "k", "--api-key-stdin"], "two\n")).toMatchObject(stays);
    expect(await integ(["profiles", "edit", "k", "--basic-style", "apikey-user"])).toMatchObject({
      basic_style: "apikey-user",
    });
    const client = ["--client-id", "cid", "--client-secret-stdin", "--token-endpoint", "https://id.example.com/token"];
    await integ(["profiles", "add", "c", ...address, ...client, "--client-auth", "client_secret_post"], "one\n");
    const kept = {
      client_id: "cid",
      token_endpoint: "https://id.example.com/token",
      client_auth: "client_secret_post",
    };
    expect(await integ(["profiles", "edit", "c", "--client-secret-stdin"], "two\n")).toMatchObject(kept);
    expect(await integ(["profiles", "edit", "c", "--audience", "a"])).toMatchObject({ ...kept, audience: "a" });
    expect(await integ(["profiles", "edit", "c", "--client-secret-command", "echo k"])).toMatchObject({
      ...kept,
      audience: "a",
      kept_in: "command",
    });
  });

  it("lists, selects, edits and removes profiles", async () => {
    const at = home();
    await add(at, "one");
    await add(at, "two");
    const names = async (): Promise<string[]> =>
      (JSON.parse((await at.integ(["profiles", "list", "--json"])).stdout) as { data: { name: string }[] }).data.map(
        ({ name }) => name,
      );
    expect(await names()).toEqual(["one", "two", "sandbox", "sandbox-eu"]);
    expect((await at.integ(["profiles", "use", "two"])).code).toBe(0);
    expect(JSON.parse((await at.integ(["profiles", "show", "--json"])).stdout)).toMatchObject({ name: "two" });
    expect((await at.integ(["profiles", "remove", "one"])).code).toBe(2);
    expect((await at.integ(["profiles", "remove", "one", "--yes"])).code).toBe(0);
    expect(await names()).toEqual(["two", "sandbox", "sandbox-eu"]);
  });

  it("names the invalid value, and a next step that works", async () => {
    const at = home();
    await add(at, "one");
    const again = await add(at, "one");
    expect(again.code).toBe(2);
    const next = /^ {2}Next: integ (.+)$/m.exec(again.stderr)?.[1] ?? "";
    expect((await at.integ(next.split(" "))).code).toBe(0);
    for (const [flag, value] of [
      ["--organization-id", "nobody"],
      ["--access-token-endpoint", "http://elsewhere.example/token"],
    ] as const) {
      const { code, stderr } = await at.integ(["profiles", "edit", "one", flag, value]);
      expect(code).toBe(2);
      expect(stderr).toContain(`Error: Invalid ${flag}: it `);
    }
    writeFileSync(at.path("config", "profiles.json"), "[]");
    expect((await at.integ(["profiles", "list"])).stderr).toContain("it must be one JSON object");
  });

  it("keeps the audience of a token endpoint only if its origin stays the same", async () => {
    const at = home();
    const exchange = ["--token-endpoint", "https://id.example.com/token", "--audience", "api"];
    await add(at, "prod", ...exchange);
    const audience = async (url: string): Promise<unknown> => {
      const { stdout } = await at.integ(["profiles", "edit", "prod", "--token-endpoint", url, "--json"]);
      return (JSON.parse(stdout) as { oauth: { audience?: string } }).oauth.audience;
    };
    expect(await audience("https://id.example.com/v2/token")).toBe("api");
    expect(await audience("https://id.example.net/token")).toBeUndefined();
  });

  it("runs the key's command at each use, and never stores the key", async () => {
    const at = home();
    writeFileSync(at.path("key"), service.us.api_key);
    const words = ["profiles", "add", "cmd", "--region", "us", "--base-url", service.us.base_url];
    expect((await at.integ([...words, "--api-key-command", `cat '${at.path("key")}'`])).code).toBe(0);
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    for (const file of filesBelow(at.path("config")))
      expect(readFileSync(file, "utf8")).not.toContain(service.us.api_key);
    writeFileSync(at.path("key"), "");
    expect((await at.integ(["entities", "list"])).code).toBe(3);
  });
});

describe("normalized input", () => {
  const address = ["--region", "us", "--base-url", "https://a.example"];
  const shown = async (
    at: Home,
    words: string[],
    input: string | undefined = "key\n",
  ): Promise<{ organization_id?: string }> => JSON.parse((await at.integ([...words, "--json"], { input })).stdout);

  it("stores an organization id in lower case", async () => {
    const at = home();
    const id = "AAAAAAAA-2222-4333-8444-55555555BBBB";
    const added = await shown(at, ["profiles", "add", "p", ...address, "--organization-id", id, "--api-key-stdin"]);
    expect(added.organization_id).toBe(id.toLowerCase());
  });

  it("accepts a key with a byte order mark, without the mark", async () => {
    const at = home();
    const words = ["profiles", "add", "prod", "--region", "us", "--base-url", service.us.base_url];
    await at.integ([...words, "--api-key-stdin"], { input: `\uFEFF${service.us.api_key}\r\n` });
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    writeFileSync(at.path("key"), `\uFEFF${service.us.api_key}\r\n`);
    await at.integ(["profiles", "edit", "prod", "--api-key-command", `cat '${at.path("key")}'`]);
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    const env = { ...service.env, INTEG_API_KEY: `\uFEFF${service.us.api_key}` };
    expect((await at.integ(["entities", "list"], { env })).code).toBe(2);
  });

  it.each([
    ["--service-version", ["entities", "list", "--service-version", "2026-02-30"]],
    ["--contract-version", ["spec", "show", "--contract-version", "2026-02-30"]],
    ["--expires-at", ["keys", "create", "--name", "k", "--expires-at", "2027-02-30T00:00:00Z"]],
  ])("%s refuses the 30th of February", async (flag, words) => {
    const { code, stderr } = await home(service.env).integ(words);
    expect([code, stderr.includes("2026-02-30") || stderr.includes("2027-02-30")], flag + stderr).toEqual([2, true]);
  });

  it("names a folder in the place of the sandbox's state file, and the fix", async () => {
    const at = home();
    mkdirSync(at.path("state", "sandbox.json"), { recursive: true });
    for (const words of [
      ["entities", "list", "-p", "sandbox"],
      ["sandbox", "reset", "-y"],
    ]) {
      const { code, stderr } = await at.integ(words);
      expect([code, stderr.includes("is a folder"), stderr.includes("Next: rmdir /")], stderr).toEqual([2, true, true]);
    }
  });
});

describe("the environment in place of a profile", () => {
  it("is sufficient, in both regions", async () => {
    expect((await home(service.env).integ(["entities", "list", "--json"])).code).toBe(0);
    const eu = { INTEG_REGION: "eu", INTEG_BASE_URL: service.eu.base_url, INTEG_API_KEY: service.eu.api_key };
    expect((await home(eu).integ(["entities", "list", "--json"])).code).toBe(0);
  });

  it("with a credential of another region is refused: exit 3", async () => {
    const crossed = { INTEG_REGION: "eu", INTEG_BASE_URL: service.eu.base_url, INTEG_API_KEY: service.us.api_key };
    expect((await home(crossed).integ(["entities", "list"])).code).toBe(3);
  });

  it("is overridden by -p, with a note", async () => {
    const { code, stderr } = await home(service.env).integ(["entities", "list", "-p", "sandbox"]);
    expect(code).toBe(0);
    expect(stderr).toContain("INTEG_BASE_URL");
  });
});

describe("bad input: exit 2, nothing sent, nothing written", () => {
  it.each([
    ["a URL with a credential in it", ["--region", "us", "--base-url", "https://user:pass@a.example"]],
    ["a region that does not exist", ["--region", "moon", "--base-url", "https://a.example"]],
    ["an unknown basic style", ["--region", "us", "--base-url", "https://a.example", "--basic-style", "x"]],
    ["no base URL", ["--region", "us"]],
  ])("%s", async (_what, words) => {
    const at = home();
    const { code, stderr } = await at.integ(["profiles", "add", "p", ...words, "--api-key-stdin"], { input: "key\n" });
    expect(stderr).toMatch(/^Error: /);
    expect(code).toBe(2);
    expect(existsSync(at.path("config", "profiles.json"))).toBe(false);
  });

  it.each([
    ["Invalid --base-url: it must be https://", ["--base-url", "http://example.com"]],
    ["Invalid --organization-id: it is not a UUID", ["--organization-id", "7"]],
    ["Invalid --access-token-endpoint: it must be https://", ["--access-token-endpoint", "http://example.com/token"]],
    ["Invalid --token-endpoint: it must be https://", ["--token-endpoint", "http://example.com/token"]],
    ["--audience needs --token-endpoint", ["--audience", "a"]],
  ])("%s: reported before integ reads the secret", async (message, words) => {
    const at = home();
    const where = ["--region", "us", "--base-url", "https://a.example"];
    for (const secret of [["--api-key-stdin"], []]) {
      const { code, stderr } = await at.integ(["profiles", "add", "p", ...where, ...words, ...secret], { input: "" });
      expect([code, stderr.includes(message)], stderr).toEqual([2, true]);
    }
  });

  it("an existing name is reported before any question", async () => {
    const at = home();
    const add = ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example"];
    await at.integ([...add, "--api-key-command", "echo key"]);
    const { code, stderr } = await at.integ([...add, "--api-key-stdin"], { input: "" });
    expect([code, stderr.includes('Profile "p" already exists')], stderr).toEqual([2, true]);
  });

  it.each([
    ["broken JSON", "{"],
    ["no object", "[]"],
    ["a journal that is not an address", profileFile({ journal: 1 })],
    ["a profile without an id", profileFile({ id: undefined })],
    ["a recipient that is not a text", profileFile({ escrow: [1] })],
  ])("a profile file with %s: no command uses this machine's journal in place of the team's", async (_, text) => {
    const at = home();
    mkdirSync(at.path("config"), { mode: 0o700 });
    writeFileSync(at.path("config", "profiles.json"), text, { mode: 0o600 });
    for (const words of [["list"], ["list", "-p", "p"], ["verify"], ["recover"], ["export"]]) {
      const { code, stderr } = await at.integ(["journal", ...words], { env: { INTEG_JOURNAL: "" } });
      expect([code, stderr], words.join(" ")).toEqual([2, expect.stringContaining("profiles.json is broken at line")]);
    }
    expect((await at.integ(["journal", "list", "-p", "sandbox"])).code).toBe(0);
  });
});

describe("the host of another region", () => {
  const us = "https://api.us.example.com";
  const key = { input: "canary-key\n" };

  it("is refused by add and edit before a secret is read; --no-verify accepts it", async () => {
    const at = home();
    const add = ["profiles", "add", "p", "--region", "eu", "--base-url", us, "--api-key-stdin"];
    const refused = await integHere(at, add, key);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("is in the region us")]);
    expect(existsSync(at.path("config", "profiles.json"))).toBe(false);
    expect((await integHere(at, [...add, "--no-verify"], key)).code).toBe(0);
    expect((await integHere(at, ["profiles", "edit", "p", "--region", "us"])).code).toBe(0);
    for (const change of [
      ["--region", "eu"],
      ["--base-url", "https://api.eu.example.com"],
    ]) {
      const edited = await integHere(at, ["profiles", "edit", "p", ...change]);
      expect([edited.code, edited.stderr]).toEqual([2, expect.stringContaining("is in the region")]);
    }
    expect((await integHere(at, ["profiles", "edit", "p", "--organization-id", randomUUID()])).code).toBe(0);
  });
});

describe("the test request of profiles add", () => {
  async function requestCount(): Promise<number> {
    return ((await service.control("GET")) as { requests: unknown[] }).requests.length;
  }

  it("is sent before a profile is stored, unless --no-verify is typed", async () => {
    const at = home();
    const before = await requestCount();
    expect((await add(at, "two", "--no-verify")).code).toBe(0);
    expect(await requestCount()).toBe(before);
    const { code, stderr } = await add(at, "three");
    const accepted = `The service accepts the credential (us, ${service.us.base_url}).`;
    expect([code, stderr]).toEqual([0, expect.stringContaining(accepted)]);
    expect(await requestCount()).toBe(before + 1);
    expect((await integHere(at, ["profiles", "edit", "two", "--verify", "--region", "us"])).code).toBe(0);
    expect(await requestCount()).toBe(before + 2);
  });

  it.each([
    ["is not stored", [], 3, "was not stored: its credential does not work", false],
    ["is stored with --no-verify", ["--no-verify"], 0, "", true],
  ] as const)("a credential that the service refuses %s", async (_name, more, expected, words, isStored) => {
    const at = home();
    const typed = ["profiles", "add", "p", "--region", "us", "--base-url", service.us.base_url, "--api-key-stdin"];
    const { code, stdout, stderr } = await integHere(at, [...typed, ...more], { input: "canary-key\n" });
    expect([code, stderr]).toEqual([expected, expect.stringContaining(words)]);
    expect(stdout + stderr).not.toContain("canary-key");
    expect((await integHere(at, ["profiles", "show", "p"])).code === 0).toBe(isStored);
  });

  it("is sent to a journal too: an address that does not respond is not stored, unless --no-verify is typed", async () => {
    const at = home();
    expect((await add(at, "p", "--no-verify")).code).toBe(0);
    const edit = ["profiles", "edit", "p", "--journal", "postgresql://integ@127.0.0.1:9/integ"];
    const { code, stderr } = await integHere(at, edit);
    expect([code, stderr]).toEqual([11, expect.stringContaining("Nothing was stored.")]);
    const journal = async (): Promise<unknown> =>
      JSON.parse((await integHere(at, ["profiles", "show", "p", "--json"])).stdout).journal;
    expect(await journal()).toBeNull();
    expect((await integHere(at, [...edit, "--no-verify"])).code).toBe(0);
    expect(await journal()).toBe(edit[4]);
  });

  it("is sent once: a closed port is reported without delay", async () => {
    const at = home();
    const words = "profiles add p --region us --base-url http://127.0.0.1:9 --api-key-stdin --verify".split(" ");
    const began = performance.now();
    expect((await integHere(at, words, { input: "key\n" })).code).toBe(11);
    expect(performance.now() - began).toBeLessThan(8_000);
  });
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`);
}

function profileFile(changes: object): string {
  const address = { region: "us", base_url: "https://us.example.com" };
  const profile = { id: randomUUID(), name: "p", ...address, credential: null, credential_origins: [], ...changes };
  return JSON.stringify({ version: 1, default: "p", profiles: [{ journal: "postgresql://db/integ", ...profile }] });
}

describe("a profiles.json that another user could have written", () => {
  const uid = anotherUser([...program, "--version"]);
  if (uid === undefined) console.warn("skipped: a profiles.json of another user: only root can become one");

  it.skipIf(uid === undefined)("is refused if another user owns it: none of its commands runs", async () => {
    const at = home();
    const config = at.path("config");
    mkdirSync(config, { mode: 0o700 });
    const credential = { kind: "api_key", basic_style: "apikey-user", source: "command", command: "touch ran; echo k" };
    const profile = { id: randomUUID(), name: "p", region: "us", base_url: service.us.base_url, credential };
    const file = { version: 1, default: "p", profiles: [{ ...profile, credential_origins: [service.us.base_url] }] };
    writeFileSync(at.path("config", "profiles.json"), JSON.stringify(file));
    chmodSync(at.path("config", "profiles.json"), 0o644);
    for (const folder of [at.folder, config]) fs.chownSync(folder, uid!, uid!);
    fs.chownSync(at.path("config", "profiles.json"), 12_345, 12_345);
    for (const words of [
      ["entities", "list"],
      ["profiles", "list"],
      ["journal", "list"],
    ]) {
      const { code, stderr } = await at.integ(words, { under: asUser(uid!) });
      expect([code, stderr]).toEqual([2, expect.stringContaining("it belongs to another user")]);
    }
    expect(existsSync(at.path("ran"))).toBe(false);
  });

  it("is refused if it is a pipe, without waiting for it", async () => {
    const at = home();
    mkdirSync(at.path("config"), { mode: 0o700 });
    execFileSync("mkfifo", ["-m", "600", at.path("config", "profiles.json")]);
    for (const words of [
      ["entities", "list"],
      ["profiles", "list"],
      ["journal", "list"],
      ["__complete", "profiles", "show", ":"],
    ]) {
      const { code, stdout, stderr } = await at.integ(words, { timeoutMs: 20_000 });
      if (words[0] === "__complete") expect([code, stdout]).toEqual([0, expect.stringContaining("sandbox")]);
      else expect([code, stderr]).toEqual([2, expect.stringContaining("profiles.json")]);
    }
  });
});

/** @returns the words in front of a program that run the program as another user */
function asUser(uid: number): string[] {
  const script = `const [file, ...words] = process.argv.slice(1); const { status } = require("node:child_process").spawnSync(file, words, { uid: ${uid}, gid: ${uid}, stdio: "inherit" }); process.exitCode = status;`;
  return [process.execPath, "-e", script];
}
