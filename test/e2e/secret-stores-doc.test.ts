// The stores that docs/secret-stores.md says integ writes to itself: its commands are typed as they stand there, and the store
// has the secret afterwards. Those of other tools are run by recipes.test.ts.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { opensslAbsent } from "../support/certificates.ts";
import { type GitHubServer, startGitHub } from "../support/github-server.ts";
import { keyringAbsent, startKeyring } from "../support/keyring.ts";
import { startKubernetes } from "../support/kubernetes-server.ts";
import { Home, isOtherBinary, root } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";
import { sodiumAbsent } from "../support/sodium.ts";
import { startVault, type VaultServer } from "../support/vault-server.ts";

const kubectlAbsent = spawnSync("kubectl", ["version", "--client"]).error ? "kubectl is not installed" : opensslAbsent;
const keychainAbsent = isOtherBinary("the keychain, which needs the package's native library") || keyringAbsent;
const absent: Readonly<Record<string, string | boolean | undefined>> = {
  github: sodiumAbsent,
  k8s: kubectlAbsent,
  keychain: keychainAbsent,
};

const [page = ""] = readFileSync(join(root, "docs/secret-stores.md"), "utf8").split(
  "\n## Others, through their own commands\n",
);
const lines = page.split("\n").filter((line) => line.startsWith("integ "));

let service: Service;
let vault: VaultServer;
let github: GitHubServer;
let account: Account;
let at: Home;

beforeAll(async () => {
  [service, vault, github] = await Promise.all([startService(), startVault(), startGitHub()]);
  account = new Account(service);
  const stores = {
    VAULT_ADDR: vault.origin,
    VAULT_TOKEN: vault.root,
    GITHUB_API_URL: github.origin,
    GH_TOKEN: github.token,
  };
  at = new Home({ ...service.env, ...stores });
  at.addToPath();
});
afterAll(async () => {
  at.remove();
  await Promise.all([service.stop(), vault.close(), github.close()]);
});

/** Types the line while the stores, which are in this process, answer. */
async function type(line: string): Promise<void> {
  const text = line.replaceAll("<id>", service.us.service_account_id).replace("my-namespace", "apps");
  const child = spawn("bash", ["-euc", `${text} --new`], {
    cwd: at.folder,
    env: at.env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (some: Buffer) => (stderr += some.toString()));
  const code = await new Promise((done) => child.on("close", done));
  expect(code, stderr).toBe(0);
}

/** Types the line. @returns what the store named in it has afterwards */
async function stored(line: string, scheme: string): Promise<string | undefined> {
  if (scheme === "k8s") {
    const cluster = await startKubernetes();
    writeFileSync(at.path("kubeconfig"), cluster.config);
    at.env.KUBECONFIG = at.path("kubeconfig");
    try {
      await type(line);
    } finally {
      await cluster.close();
    }
    return cluster.secret("apps/my-app")?.["client-secret"];
  }
  if (scheme === "keychain") {
    const keyring = await startKeyring(at.folder);
    Object.assign(at.env, keyring.env, { PATH: at.env.PATH });
    await type(line);
    const secret = keyring.secret("my-app", "client_secret");
    await keyring.end();
    return secret;
  }
  await type(line);
  if (scheme === "vault") return String(vault.current("secret/my-app")?.client_secret);
  return github.secret(line.includes("@production") ? "production#CLIENT_SECRET" : "CLIENT_SECRET");
}

afterEach(() => account.clear());

it("shows commands", () => expect(lines.length).toBe(5));

it.each(lines)("%s", async (line) => {
  const [, scheme = ""] = / --secret-to (\w+):/.exec(line) ?? [];
  const reason = absent[scheme];
  if (reason) return console.warn(`skipped: ${line}: ${String(reason)}`);
  const secret = await stored(line, scheme);
  const [newest] = await account.live();
  expect(await account.opens(newest!.client_id!, String(secret))).toBe(true);
});
