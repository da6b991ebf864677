// Every store is an answer to the question where a secret goes, and takes it; an address that is none ends the command before
// anything is sent.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type StoreScheme, storeKinds } from "../../src/secrets/destination.ts";
import { Account } from "../support/account.ts";
import { opensslAbsent } from "../support/certificates.ts";
import { type GitHubServer, startGitHub } from "../support/github-server.ts";
import { keyringAbsent, startKeyring } from "../support/keyring.ts";
import { startKubernetes } from "../support/kubernetes-server.ts";
import { Home, isOtherBinary } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { sodiumAbsent } from "../support/sodium.ts";
import { startVault, type VaultServer } from "../support/vault-server.ts";
import { Session } from "./session.ts";

const kubectlAbsent = spawnSync("kubectl", ["version", "--client"]).error ? "kubectl is not installed" : opensslAbsent;
const withoutKeyring = isOtherBinary("the keychain, which needs the package's native library") || keyringAbsent;
const absent: Readonly<Record<StoreScheme, unknown>> = {
  vault: undefined,
  github: sodiumAbsent,
  k8s: kubectlAbsent,
  keychain: withoutKeyring,
};
for (const what of Object.values(absent)) if (typeof what === "string") console.warn(`skipped: ${what}`);

let service: Service;
let account: Account;
let vault: VaultServer;
let github: GitHubServer;
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
  at = new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint, ...stores });
});
afterAll(async () => {
  at.remove();
  await Promise.all([service.stop(), vault.close(), github.close()]);
});

interface Asked {
  readonly address: string;
  readonly held: () => string | undefined;
  readonly end?: () => Promise<void>;
}

const stores: Readonly<Record<StoreScheme, () => Promise<Asked>>> = {
  vault: async () => ({
    address: "secret/asked#key",
    held: () => vault.current("secret/asked")?.key as string | undefined,
  }),
  github: async () => ({ address: "my-org/my-repo#ASKED", held: () => github.secret("ASKED") }),
  k8s: async () => {
    const cluster = await startKubernetes();
    writeFileSync(at.path("kubeconfig"), cluster.config);
    at.env.KUBECONFIG = at.path("kubeconfig");
    return { address: "apps/asked#key", held: () => cluster.secret("apps/asked")?.key, end: () => cluster.close() };
  },
  keychain: async () => {
    const keyring = await startKeyring(at.folder);
    Object.assign(at.env, keyring.env);
    return { address: "asked/key", held: () => keyring.secret("asked", "key"), end: () => keyring.end() };
  },
};

const schemes = Object.keys(storeKinds) as StoreScheme[];
const down = "\u001b[B";
/** The keys that choose a store: it comes after a file and a command. */
const choosing = (scheme: StoreScheme): string => `${down.repeat(2 + schemes.indexOf(scheme))}\r`;

async function answered(scheme: StoreScheme, address: string): Promise<Session> {
  const words = `oauth-clients create --service-account ${service.us.service_account_id} --scope entity:read --new`;
  const asked = new Session(words.split(" "), { home: at });
  await asked.answer(/Where does the secret go\?[^]*screen/, choosing(scheme));
  await asked.answer(new RegExp(`Address \\(${scheme}:`), `${address}\r`);
  return asked;
}

it.each(schemes)("%s: takes the secret, which the screen never shows", async (scheme) => {
  if (absent[scheme]) return;
  const { address, held, end } = await stores[scheme]();
  try {
    const asked = await answered(scheme, address);
    expect(await asked.ended, asked.written).toBe(0);
    const [client] = await account.live();
    expect(await account.opens(client!.client_id!, held() ?? "")).toBe(true);
    expect(asked.written).not.toContain(held());
    expect(asked.written).toContain(`${scheme}:${address}`);
  } finally {
    await end?.();
    await account.clear();
  }
});

it.each(isFull ? schemes : schemes.slice(0, 1))(
  "%s: an address that is none ends it, and nothing is sent",
  async (scheme) => {
    const before = (await account.creations()).length;
    const asked = await answered(scheme, "none");
    expect(await asked.ended, asked.written).toBe(2);
    expect(asked.written).toContain(`is not ${scheme}:`);
    expect((await account.creations()).length).toBe(before);
  },
);
