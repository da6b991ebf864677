import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type ReadEntry, readJournal } from "../support/journal-file.ts";
import { type Ended, Home, isOtherBinary } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, serviceOfFile } from "../support/service.ts";
import { briefKubectl, startKubernetes } from "../support/kubernetes-server.ts";
import { startKeyring } from "../support/keyring.ts";
import { gitHubOfFile } from "../support/github-server.ts";
import { vaultOfFile } from "../support/vault-server.ts";
import { isMissing } from "../support/tools.mjs";

const withoutKeyring =
  isOtherBinary("the keychain, which needs the package's native library") || isMissing("a keyring");

const service = await serviceOfFile();
const account = new Account(service);
const vault = await vaultOfFile();
const github = await gitHubOfFile();
const homes: Home[] = [];
let printed = "";

afterEach(async () => {
  for (const secret of [vault.root, github.token, ...secretsIn(JSON.stringify([...vault.secrets.values()]))]) {
    expect(printed).not.toContain(secret);
    for (const home of homes) expect(filesWith(home, secret)).toEqual([]);
  }
  printed = "";
  vault.calm();
  github.calm();
  github.forgetSecrets();
  vault.isSealed = false;
  vault.secrets.clear();
  await service.calm();
  await account.clear();
  for (const home of homes.splice(0)) home.remove();
});

const secretsIn = (text: string): string[] => text.match(/sbx_us_cs_\w+/g) ?? [];

function filesWith(home: Home, text: string): string[] {
  return readdirSync(home.folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    const path = join(home.folder, name);
    return statSync(path).isFile() && readFileSync(path, "latin1").includes(text);
  });
}

function home(): Home {
  const stores = {
    VAULT_ADDR: vault.origin,
    VAULT_TOKEN: vault.root,
    GITHUB_API_URL: github.origin,
    GH_ENTERPRISE_TOKEN: github.token,
  };
  const at = new Home({ ...service.env, INTEG_DEBUG: "1", ...stores });
  homes.push(at);
  return at;
}

async function run(at: Home, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const ended = await integHere(at, words, { env });
  printed += ended.stdout + ended.stderr;
  return ended;
}

const creation = (): string[] => creationWords(service, "--json");

async function makeClient(): Promise<string> {
  return (await account.make(["entity:read"])).id;
}

const live = async (): Promise<string[]> => (await account.live()).map(({ id }) => id);

const creationIn = (at: Home): ReadEntry =>
  readJournal(at.path("state", "journal.ndjson")).findLast(({ operation }) => operation === "oauth_client.create")!;

async function expectOpens(secret: unknown): Promise<void> {
  const [newest] = await account.live();
  expect(await account.opens(newest!.client_id!, String(secret))).toBe(true);
}

const path = "secret/apps/ci";
const to = ["--secret-to", `vault:${path}#client_secret`];

describe("Vault", () => {
  it("a creation and a rotation add one version each; the old client is revoked", async () => {
    const at = home();
    vault.put(path, { client_secret: "none", other: "kept" });
    expect((await run(at, [...creation(), ...to])).code).toBe(2);
    const created = await run(at, [...creation(), ...to, "--force"]);
    // The debug log has the requests to the store, so that the final search covers them too.
    expect(printed).toContain(`"url":"${vault.origin}/v1/secret/data/apps/ci"`);
    expect([created.code, JSON.parse(created.stdout).client_secret]).toEqual([0, null]);
    expect(created.stderr).toContain(`vault:${path}#client_secret`);
    await expectOpens(vault.current(path)?.client_secret);
    const [first] = await live();
    const rotated = await run(at, ["oauth-clients", "rotate", first!, "--yes", "--accept-unproven", ...to]);
    expect([rotated.code, vault.secrets.get(path)?.length]).toEqual([0, 3]);
    expect(vault.current(path)).toEqual({ client_secret: expect.stringMatching(/^sbx_us_cs_\w+$/), other: "kept" });
    expect(await live()).not.toContain(first);
    await expectOpens(vault.current(path)?.client_secret);
  });

  it("a concurrent version: exit 5, nothing overwritten, the old client stays; a claim overwrites it on request", async () => {
    const at = home();
    const id = await makeClient();
    vault.put(path, { client_secret: "old", other: "kept" });
    vault.plan(/^POST .*\/data\//, () => vault.put(path, { client_secret: "theirs", other: "new" }));
    const rotated = await run(at, ["oauth-clients", "rotate", id, "--yes", "--accept-unproven", ...to, "--force"]);
    expect([rotated.code, rotated.stderr]).toEqual([
      5,
      expect.stringContaining("integ did not deliver its current content"),
    ]);
    expect([creationIn(at).state, vault.current(path)]).toEqual([
      "undelivered",
      { client_secret: "theirs", other: "new" },
    ]);
    expect(await live()).toContain(id);
    expect((await run(at, ["journal", "claim", creationIn(at).id])).code).not.toBe(0);
    expect(vault.current(path)).toMatchObject({ client_secret: "theirs" });
    expect((await run(at, ["journal", "claim", creationIn(at).id, "--force"])).code).toBe(0);
    expect(vault.current(path)).toMatchObject({ other: "new" });
    expect((await run(at, ["journal", "recover", "--yes", "--accept-unproven"])).code).toBe(0);
    expect(await live()).toEqual([creationIn(at).resource_id]);
    await expectOpens(vault.current(path)?.client_secret);
    expect(vault.secrets.get(path)?.length).toBe(3);
  });
});

describe.skipIf(isMissing("libsodium"))("GitHub", () => {
  const secretOf = ["--secret-to", "github:my-org/my-repo#CLIENT_SECRET"];

  it("a creation and a rotation, also to Vault: both have the new secret, the old client is revoked", async () => {
    const at = home();
    // Removes the value of another test, which is not this client's secret.
    vault.secrets.delete(path);
    const created = await run(at, [...creation(), ...secretOf]);
    expect(created.code, created.stderr).toBe(0);
    await expectOpens(github.secret("CLIENT_SECRET"));
    expect(printed).toContain(`"url":"${github.origin}/repos/my-org/my-repo/actions/secrets/CLIENT_SECRET"`);
    const [first] = await live();
    const words = ["oauth-clients", "rotate", first!, "--yes", "--accept-unproven"];
    const rotated = await run(at, [...words, ...secretOf, ...to]);
    expect(rotated.code, rotated.stderr).toBe(0);
    expect(await live()).not.toContain(first);
    expect(vault.current(path)?.client_secret).toBe(github.secret("CLIENT_SECRET"));
    await expectOpens(github.secret("CLIENT_SECRET"));
    expect(JSON.stringify(github.requests)).not.toMatch(/sbx_us_cs_/);
  });

  it("a lost permission: exit 12, the other store has the secret, and a claim delivers to the store without it", async () => {
    const at = home();
    const id = await makeClient();
    github.plan(/^PUT /, { status: 403, body: { message: "no" } });
    const rotated = await run(at, ["oauth-clients", "rotate", id, "--yes", "--accept-unproven", ...secretOf, ...to]);
    expect([rotated.code, rotated.stderr]).toEqual([12, expect.stringContaining("1 of 2 destinations have it")]);
    expect(await live()).toContain(id);
    const claimed = await run(at, ["journal", "claim", creationIn(at).id]);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect((await run(at, ["journal", "recover", "--yes", "--accept-unproven"])).code).toBe(0);
    expect(await live()).toEqual([creationIn(at).resource_id]);
    expect([vault.current(path)?.client_secret, vault.secrets.get(path)?.length]).toEqual([
      github.secret("CLIENT_SECRET"),
      1,
    ]);
  });

  it("a write whose response and confirmation were lost is repeated by the claim", async () => {
    const at = home();
    let looks = 0;
    // After the third look, which precedes the write, GitHub still does what it is asked, but no response arrives.
    const loseAll = (): void => void (++looks === 3 && github.plan(/LOST$/, "lost after", 99));
    github.plan(/^GET \S+LOST$/, loseAll, 3);
    expect((await run(at, [...creation(), "--secret-to", "github:my-org/my-repo#LOST"])).code).toBe(12);
    expect(github.changes("LOST")).toBeGreaterThan(0);
    github.calm();
    const claimed = await run(at, ["journal", "claim", creationIn(at).id]);
    expect(claimed.code, claimed.stderr).toBe(0);
    await expectOpens(github.secret("LOST"));
  });
});

describe.skipIf(isMissing("kubectl", "openssl"))("Kubernetes", () => {
  it("a creation and a rotation; then a key that another manager took over: exit 5, its value stays", async () => {
    const cluster = await startKubernetes();
    try {
      const at = home();
      writeFileSync(at.path("kubeconfig"), cluster.config);
      Object.assign(at.env, briefKubectl, { KUBECONFIG: at.path("kubeconfig") });
      const key = ["--secret-to", "k8s:apps/my-app#client-secret"];
      const storedValue = (): string | undefined => cluster.secret("apps/my-app")?.["client-secret"];
      const created = await run(at, [...creation(), ...key]);
      expect(created.code, created.stderr).toBe(0);
      await expectOpens(storedValue());
      const [first] = await live();
      expect((await run(at, ["oauth-clients", "rotate", first!, "--yes", "--accept-unproven", ...key])).code).toBe(0);
      await expectOpens(storedValue());
      const [second] = await live();
      expect([second === first, cluster.writes]).toEqual([false, 2]);
      cluster.plan(/^PATCH .*\?fieldManager/, () => cluster.put("apps/my-app", "client-secret", "theirs", "argocd"));
      const rotated = await run(at, ["oauth-clients", "rotate", second!, "--yes", "--accept-unproven", ...key]);
      expect([rotated.code, storedValue()]).toEqual([5, "theirs"]);
      expect(await live()).toContain(second);
      expect(printed).not.toContain(cluster.token);
      expect(filesWith(at, cluster.token)).toEqual(["kubeconfig"]);
      expect(printed).not.toMatch(new RegExp(Buffer.from("sbx_us_cs_").toString("base64").slice(0, 12)));
    } finally {
      await cluster.close();
    }
  });
});

describe.skipIf(withoutKeyring)("the keychain", () => {
  it("a creation and a rotation in a real keyring; locked: exit 2 before anything is sent", async () => {
    const at = home();
    const keyring = await startKeyring(at.folder);
    try {
      Object.assign(at.env, keyring.env);
      const place = ["--secret-to", "keychain:my-app/client_secret"];
      const created = await run(at, [...creation(), ...place]);
      expect([created.code, keyring.items()], created.stderr).toEqual([0, 1]);
      const [first] = await live();
      const rotated = await run(at, ["oauth-clients", "rotate", first!, "--yes", "--accept-unproven", ...place]);
      expect([rotated.code, keyring.items()], rotated.stderr).toEqual([0, 1]);
      await expectOpens(keyring.secret("my-app", "client_secret"));
      keyring.lock();
      const before = (await account.creations()).length;
      const locked = await run(at, [...creation(), "--new", ...place]);
      expect([locked.code, locked.stderr]).toEqual([2, expect.stringContaining("the keychain cannot be used")]);
      expect((await account.creations()).length).toBe(before);
    } finally {
      await keyring.end();
    }
  });
});
