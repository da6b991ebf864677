// A service, the stores that receive its secrets, and a home configured for them.
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";
import type { StoreScheme } from "../../src/secrets/destination.ts";
import { Account } from "./account.ts";
import { type GitHubServer, startGitHub } from "./github-server.ts";
import { startKeyring } from "./keyring.ts";
import { briefKubectl, startKubernetes } from "./kubernetes-server.ts";
import { Home, isOtherBinary } from "./program.ts";
import { startService, type Service } from "./service.ts";
import { startVault, type VaultServer } from "./vault-server.ts";
import { isMissing } from "./tools.mjs";

export interface OpenStore {
  readonly address: string;
  /** @param address an address without its scheme */
  secretAt(address: string): string | undefined;
  close(): Promise<void>;
}

export function absentStores(): Readonly<Record<StoreScheme, boolean>> {
  const keychain = isOtherBinary("the keychain, which needs the package's native library") || isMissing("a keyring");
  return { vault: false, github: isMissing("libsodium"), k8s: isMissing("kubectl", "openssl"), keychain };
}

const staysOpen = (): Promise<void> => Promise.resolve();

function parts(address: string): [place: string, name: string] {
  const [place = "", name = ""] = address.split("#");
  return [place, name];
}

/** The constructor registers the setup and cleanup of the test file. */
export class StoreWorld {
  service!: Service;
  account!: Account;
  at!: Home;
  #vault!: VaultServer;
  #github!: GitHubServer;

  constructor() {
    beforeAll(async () => {
      [this.service, this.#vault, this.#github] = await Promise.all([startService(), startVault(), startGitHub()]);
      this.account = new Account(this.service);
      this.at = new Home({
        ...this.service.env,
        INTEG_TOKEN_ENDPOINT: this.service.us.token_endpoint,
        VAULT_ADDR: this.#vault.origin,
        VAULT_TOKEN: this.#vault.root,
        GITHUB_API_URL: this.#github.origin,
        GH_ENTERPRISE_TOKEN: this.#github.token,
      });
    });
    afterAll(async () => {
      this.at.remove();
      await Promise.all([this.service.stop(), this.#vault.close(), this.#github.close()]);
    });
  }

  readonly #openers: Readonly<Record<StoreScheme, () => Promise<OpenStore>>> = {
    vault: async () => {
      const secretAt = (address: string): string | undefined => {
        const [path, field] = parts(address);
        return this.#vault.current(path)?.[field] as string | undefined;
      };
      return { address: "secret/asked#key", secretAt, close: staysOpen };
    },
    github: async () => {
      const secretAt = (address: string): string | undefined => {
        const [, environment = "", name = ""] = /(@.*)?#(.*)$/.exec(address) ?? [];
        return this.#github.secret(`${environment.replace(/^@(.*)/, "$1#")}${name}`);
      };
      return { address: "my-org/my-repo#ASKED", secretAt, close: staysOpen };
    },
    k8s: async () => {
      const cluster = await startKubernetes();
      writeFileSync(this.at.path("kubeconfig"), cluster.config);
      Object.assign(this.at.env, briefKubectl, { KUBECONFIG: this.at.path("kubeconfig") });
      const secretAt = (address: string): string | undefined => {
        const [secret, key] = parts(address);
        return cluster.secret(secret)?.[key];
      };
      return { address: "apps/asked#key", secretAt, close: () => cluster.close() };
    },
    keychain: async () => {
      const keyring = await startKeyring(this.at.folder);
      Object.assign(this.at.env, keyring.env, { PATH: this.at.env.PATH });
      const secretAt = (address: string): string | undefined => {
        const [service = "", account = ""] = address.split("/");
        return keyring.secret(service, account);
      };
      return { address: "asked/key", secretAt, close: () => keyring.end() };
    },
  };

  open(scheme: StoreScheme): Promise<OpenStore> {
    return this.#openers[scheme]();
  }
}
