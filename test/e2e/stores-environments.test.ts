import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { gitHubOfFile } from "../support/github-server.ts";
import { readJournal } from "../support/journal-file.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";
import { startTlsFront } from "../support/tls-front.ts";
import { startVault, vaultOfFile } from "../support/vault-server.ts";
import { isMissing } from "../support/tools.mjs";

const service = await serviceOfFile();
const account = new Account(service);
const vault = await vaultOfFile();
const github = await gitHubOfFile();

afterEach(async () => {
  vault.calm();
  vault.secrets.clear();
  github.calm();
  github.forgetSecrets();
  await account.clear();
});

function home(env: Readonly<Record<string, string>> = {}): Home {
  const stores = {
    VAULT_ADDR: vault.origin,
    VAULT_TOKEN: vault.root,
    GITHUB_API_URL: github.origin,
    GH_ENTERPRISE_TOKEN: github.token,
  };
  return homeOfTest({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token, ...stores, ...env });
}

const path = "secret/apps/ci";
const toVault = ["--secret-to", `vault:${path}#client_secret`];
const toGitHub = ["--secret-to", "github:my-org/my-repo#CLIENT_SECRET"];
const creation = (...more: readonly string[]): string[] => creationWords(service, "--json", ...more);
const secret = /^sbx_us_\w*\w+$/;

async function expectOpens(value: unknown): Promise<void> {
  const [newest] = await account.live();
  expect(await account.opens(newest!.client_id!, String(value))).toBe(true);
}

describe.skipIf(isMissing("openssl"))("over TLS with a private authority", () => {
  it("Vault: VAULT_CACERT, a namespace, a token in a file, and a policy that may only patch", async () => {
    const front = await startTlsFront(vault.origin);
    try {
      vault.put(path, { client_secret: "old", other: "kept" });
      const token = vault.token("create", "read", "patch");
      const at = home({ VAULT_ADDR: front.origin, VAULT_TOKEN: "", VAULT_NAMESPACE: "admin/" });
      writeFileSync(at.path("token"), `${token}\n`, { mode: 0o600 });
      writeFileSync(at.path("ca.pem"), front.authority);
      at.env.VAULT_TOKEN_FILE = at.path("token");
      const refused = await integHere(at, creation(...toVault));
      expect([refused.code, refused.stderr]).toEqual([11, expect.stringContaining("TLS")]);
      expect(await account.creations()).toHaveLength(0);
      at.env.VAULT_CACERT = at.path("ca.pem");
      const created = await integHere(at, creation("--force", ...toVault));
      expect(created.code, created.stderr).toBe(0);
      expect(vault.current(path)).toEqual({ client_secret: expect.stringMatching(secret), other: "kept" });
      await expectOpens(vault.current(path)?.client_secret);
      expect(vault.log.filter((line) => /^(?:PATCH|POST) .*\/data\//.test(line))).toEqual([
        "PATCH /v1/secret/data/apps/ci",
      ]);
      for (const { headers } of vault.requests)
        expect([headers["x-vault-namespace"], headers["x-vault-token"]]).toEqual(["admin", token]);
    } finally {
      await front.close();
    }
  });

  it.skipIf(isMissing("libsodium"))("GitHub Enterprise: the API of GH_HOST", async () => {
    const front = await startTlsFront(github.origin);
    try {
      const at = home({ GITHUB_API_URL: "https://api.example.invalid", GH_HOST: new URL(front.origin).host });
      writeFileSync(at.path("ca.pem"), front.authority);
      at.env.NODE_EXTRA_CA_CERTS = at.path("ca.pem");
      const created = await at.integ(creation(...toGitHub));
      expect(created.code, created.stderr).toBe(0);
      await expectOpens(github.secret("CLIENT_SECRET"));
      expect(github.log.every((line) => / \/api\/v3\/repos\/my-org\/my-repo/.test(line))).toBe(true);
    } finally {
      await front.close();
    }
  });
});

function writeItem(at: Home, scopes: string): void {
  const item = `{ service_account: ${service.us.service_account_id}, scopes: [${scopes}], secret: "vault:${path}#a" }`;
  writeFileSync(at.path("integ.yaml"), `version: 1\nid: pol_of_this_test\noauth_clients:\n  a: ${item}\n`);
}

it.each(["apply", "audit --fix"])("%s rotates nothing into the store of another server", async (what) => {
  const at = home(tokenEnv(service));
  const other = await startVault();
  try {
    const isApply = what === "apply";
    if (isApply) writeItem(at, "entity:read");
    // `audit --fix` leaves the clients of policy items to `apply`.
    const made = await integHere(at, isApply ? ["apply", "--yes", "--no-input"] : creation(...toVault));
    expect(made.code, made.stderr).toBe(0);
    const before = vault.current(path);
    at.env.VAULT_ADDR = other.origin;
    at.env.VAULT_TOKEN = other.root;
    if (isApply) writeItem(at, "entity:read, organization:read");
    else await sleep(2100);
    const words = isApply ? ["apply"] : ["oauth-clients", "audit", "--fix", "--max-age", "1s"];
    const { code, stderr } = await integHere(at, [...words, "--yes", "--no-input"]);
    expect(code, stderr).not.toBe(0);
    expect(stderr).toMatch(isApply ? /of another server/ : /the server was http\S+, and is http/);
    expect([vault.current(path), other.current(path), (await account.live()).length]).toEqual([before, undefined, 1]);
    if (!isApply) return;
    expect((await integHere(at, ["apply", "--redeliver", "a", "--yes", "--no-input"])).code).toBe(0);
    expect((await integHere(at, ["plan", "--exit-code"])).code).toBe(0);
    await expectOpens(other.current(path)?.a);
  } finally {
    await other.close();
  }
});

it("runs against another server do not stall an item for its own", async () => {
  const at = home(tokenEnv(service));
  const other = await startVault();
  const apply = async (): Promise<number | null> =>
    (await integHere(at, ["apply", "--yes", "--no-input", "--retry-for", "0"])).code;
  try {
    writeItem(at, "entity:read");
    expect(await apply()).toBe(0);
    writeItem(at, "entity:read, organization:read");
    await service.fault("POST /oauth/token status=503");
    expect(await apply()).toBe(8);
    Object.assign(at.env, { VAULT_ADDR: other.origin, VAULT_TOKEN: other.root });
    for (const _ of [1, 2, 3]) expect(await apply()).toBe(8);
    Object.assign(at.env, { VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.root });
    await service.calm();
    expect(await apply()).toBe(0);
    expect([other.current(path), (await account.live()).length]).toEqual([undefined, 1]);
  } finally {
    await other.close();
  }
});

it("apply: items share one Vault secret, each with its field", async () => {
  const at = home();
  const names = ["a", "b", "c", "d"];
  const item = (name: string): string =>
    `  item-${name}:\n    service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    secret: "vault:secret/shared#${name}"\n`;
  writeFileSync(at.path("integ.yaml"), `version: 1\nid: pol_of_this_test\noauth_clients:\n${names.map(item).join("")}`);
  const applied = await integHere(at, ["apply", "--yes", "--no-input"]);
  expect(applied.code, applied.stderr).toBe(0);
  const fields = vault.current("secret/shared") ?? {};
  expect([Object.keys(fields).toSorted(), vault.secrets.get("secret/shared")?.length]).toEqual([names, names.length]);
  expect(new Set(Object.values(fields)).size).toBe(names.length);
});

describe.skipIf(isMissing("libsodium"))("every command that yields a secret, to stores and a profile", () => {
  async function withProfile(at: Home): Promise<void> {
    const words = `profiles add target --region us --base-url ${service.us.base_url} --organization-id ${service.us.organization_id}`;
    const more = ["--token-endpoint", service.us.token_endpoint, "--api-key-stdin"];
    const added = await integHere(at, [...words.split(" "), ...more], { input: service.us.api_key });
    expect(added.code, added.stderr).toBe(0);
  }
  const all = [...toVault, ...toGitHub, "--secret-profile", "target"];
  const stored = (at: Home): unknown => {
    const { profiles } = JSON.parse(readFileSync(at.path("config", "profiles.json"), "utf8")) as {
      profiles: { name: string; credential: { ref: string } }[];
    };
    const { ref } = profiles.find(({ name }) => name === "target")!.credential;
    return readFileSync(at.path("config", "credentials", `${ref}.json`), "utf8");
  };

  it.each<[string, (at: Home) => Promise<Ended>]>([
    ["oauth-clients create", (at) => integHere(at, creation(...all))],
    [
      "oauth-clients rotate",
      async (at) =>
        integHere(at, ["oauth-clients", "rotate", (await account.make(["entity:read"])).id, "--yes", ...all]),
    ],
    [
      "journal claim",
      async (at) => {
        expect((await integHere(at, creation("--secret-command", "exit 1"))).code).toBe(12);
        const { id } = readJournal(at.path("state", "journal.ndjson")).at(-1)!;
        return integHere(at, ["journal", "claim", id, ...all]);
      },
    ],
    ["keys create", (at) => integHere(at, [...newKey("one"), ...all])],
    ["keys rotate", async (at) => integHere(at, ["keys", "rotate", await key(at), "--yes", ...all])],
    [
      "keys rotate --by-replacement",
      async (at) => integHere(at, ["keys", "rotate", await key(at), "--by-replacement", "--yes", ...all]),
    ],
  ])("%s: all have the same secret", async (_what, yields) => {
    const at = home();
    await withProfile(at);
    const ended = await yields(at);
    // Exit 8: a replacement key cannot be proven here, so the old key stays.
    expect([0, 8], ended.stderr).toContain(ended.code);
    const inVault = String(vault.current(path)?.client_secret);
    expect(inVault).toMatch(/^sbx_us_/);
    expect([github.secret("CLIENT_SECRET"), vault.secrets.get(path)?.length]).toEqual([inVault, 1]);
    expect(stored(at)).toContain(inVault);
    expect(ended.stdout + ended.stderr).not.toContain(inVault);
  });

  const newKey = (name: string): string[] => ["keys", "create", "--name", name, "--scope", "*", "--expires-in", "30d"];
  async function key(at: Home): Promise<string> {
    const created = await integHere(at, [...newKey("before"), "--secret-file", "before.key"]);
    expect(created.code, created.stderr).toBe(0);
    return readJournal(at.path("state", "journal.ndjson")).at(-1)!.resource_id!;
  }
});
