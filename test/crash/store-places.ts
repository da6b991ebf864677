// Secret stores as destinations. The tests read the secrets on the stores' servers.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type GitHubServer, startGitHub } from "../support/github-server.ts";
import { briefKubectl, type KubernetesServer, startKubernetes } from "../support/kubernetes-server.ts";
import type { Home } from "../support/program.ts";
import { startVault, type VaultServer } from "../support/vault-server.ts";
import { type Place, rawFile, three } from "./secret-places.ts";

const path = "secret/apps/ci";

const secretName = "apps/ci";

export type StoreName = "vault" | "github" | "k8s";

export class Stores {
  #vault: VaultServer | undefined;
  #github: GitHubServer | undefined;
  #cluster: KubernetesServer | undefined;
  #config: string | undefined;
  /** Functions that start a proxy in front of a store's server, and return the proxy's address. */
  readonly proxies = new Map<StoreName, (origin: string) => Promise<string>>();

  get vault(): VaultServer {
    return this.#vault!;
  }

  get github(): GitHubServer {
    return this.#github!;
  }

  async arrange(at: Home): Promise<void> {
    this.#vault ??= await startVault();
    this.#github ??= await startGitHub();
    const { vault, github } = this;
    vault.calm();
    vault.secrets.clear();
    vault.put(path, { other: "kept" });
    github.calm();
    github.forgetSecrets();
    Object.assign(at.env, {
      VAULT_ADDR: await this.#addressOf("vault", vault),
      VAULT_TOKEN: vault.root,
      GITHUB_API_URL: await this.#addressOf("github", github),
      GH_ENTERPRISE_TOKEN: github.token,
    });
  }

  async #addressOf(name: StoreName, server: VaultServer | GitHubServer | KubernetesServer): Promise<string> {
    const { origin } = server;
    server.closesEach = this.proxies.has(name);
    return (await this.proxies.get(name)?.(origin)) ?? origin;
  }

  /** Also starts a cluster, whose Secret already has a key of another owner. */
  async arrangeCluster(at: Home): Promise<void> {
    await this.arrange(at);
    this.#cluster ??= await startKubernetes();
    this.#config ??= mkdtempSync(join(tmpdir(), "integ-kubectl-"));
    const { cluster } = this;
    cluster.calm();
    cluster.forgetSecrets();
    cluster.put(secretName, "other", "kept", "argocd");
    cluster.through(await this.#addressOf("k8s", cluster));
    const config = join(this.#config, "config");
    writeFileSync(config, cluster.config);
    Object.assign(at.env, briefKubectl, { KUBECONFIG: config });
  }

  get cluster(): KubernetesServer {
    return this.#cluster!;
  }

  async close(): Promise<void> {
    await this.#cluster?.close();
    if (this.#config !== undefined) rmSync(this.#config, { recursive: true });
    await this.#vault?.close();
    await this.#github?.close();
  }

  inVault(): string | undefined {
    const held = this.vault.current(path)?.client_secret;
    return typeof held === "string" ? held : undefined;
  }

  inCluster(): string | undefined {
    return this.cluster.secret(secretName)?.["client-secret"];
  }

  inGitHub(): string | undefined {
    return this.github.secret("CLIENT_SECRET");
  }

  wrong(): string[] {
    const versions = this.vault.secrets.get(path) ?? [];
    const written = versions.map(({ fields }) => fields.client_secret).filter((secret) => secret !== undefined);
    const doubled = written.filter((secret, index) => written.indexOf(secret) < index);
    return [
      ...doubled.map(() => "a second version of one secret in Vault"),
      ...versions.filter(({ fields }) => fields.other !== "kept").map(() => "a field of someone else was changed"),
      ...(this.#cluster && this.cluster.secret(secretName)?.other !== "kept"
        ? ["a key of someone else was changed"]
        : []),
    ];
  }
}

const vaultWords = ["--secret-to", `vault:${path}#client_secret`];
const storeWords = [...vaultWords, "--secret-to", "github:my-org/my-repo#CLIENT_SECRET"];

function commonSecret(secrets: readonly (string | undefined)[]): string | undefined {
  if (secrets.includes(undefined)) return undefined;
  return secrets.every((secret) => secret === secrets[0]) ? secrets[0] : "";
}

export function storePlaces(): {
  readonly stores: Stores;
  readonly withFile: Place;
  readonly withAll: Place;
  readonly withCluster: Place;
} {
  const stores = new Stores();
  afterAll(() => stores.close());
  const beside = (place: Place, name: string): Place => ({
    ...place,
    name,
    words: [...place.words, ...storeWords],
    arrange: async (at, account) => {
      await place.arrange?.(at, account);
      await stores.arrange(at);
    },
    delivered: (at, printed) => commonSecret([place.delivered(at, printed), stores.inVault(), stores.inGitHub()]),
    wrong: () => stores.wrong(),
    tokens: () => [stores.vault.root, stores.github.token],
    keepsTrace: true,
  });
  return {
    stores,
    withCluster: {
      ...rawFile,
      name: "a file, Vault and Kubernetes",
      words: [...rawFile.words, ...vaultWords, "--secret-to", `k8s:${secretName}#client-secret`],
      arrange: (at) => stores.arrangeCluster(at),
      delivered: (at, printed) => commonSecret([rawFile.delivered(at, printed), stores.inVault(), stores.inCluster()]),
      wrong: () => stores.wrong(),
      tokens: () => [stores.vault.root, stores.cluster.token],
    },
    withFile: beside(rawFile, "a file, Vault and GitHub"),
    withAll: beside(three, "a file, a command, a profile, Vault and GitHub"),
  };
}
