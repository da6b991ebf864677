// Each kind of destination with what may go wrong while it takes a secret, for delivery-faults.test.ts.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { GitHubServer } from "../support/github-server.ts";
import type { Keyring } from "../support/keyring.ts";
import type { KubernetesServer } from "../support/kubernetes-server.ts";
import type { Home } from "../support/program.ts";
import type { StoreServer } from "../support/store-server.ts";
import type { VaultServer } from "../support/vault-server.ts";

export interface Stores {
  readonly vault: VaultServer;
  readonly github: GitHubServer;
  readonly cluster?: KubernetesServer;
  readonly keyring?: Keyring;
}

export interface Fault {
  readonly name: string;
  /** How the rotation ends. */
  readonly code: 0 | 5 | 12;
  arrange?(at: Home, stores: Stores): void;
  /** Where the fault does not end by itself. */
  lift?(at: Home, stores: Stores): void;
  /** Words before the destination, for what happens just before its turn. */
  readonly before?: readonly string[];
  /** Instead of the destination's own. */
  readonly words?: readonly string[];
  /** A claim has to consent to what another put there. */
  readonly isTheirs?: true;
}

export interface Target {
  readonly name: string;
  readonly words: readonly string[];
  /** It takes a secret in a format, and not its bytes alone. */
  readonly isFormatted?: true;
  /** A claim has to be told the words again. */
  readonly isForgotten?: true;
  readonly needs?: keyof Stores;
  readonly faults: readonly Fault[];
  /** What it holds. */
  held(at: Home, stores: Stores): string | undefined;
  /** How often the last secret was written; nothing where that is not seen. */
  writes?(stores: Stores, secret: string): number;
}

const none: Fault = { name: "nothing", code: 0 };

function textOf(at: Home, name: string): string | undefined {
  return existsSync(at.path(name)) ? readFileSync(at.path(name), "utf8") : undefined;
}

const file: Target = {
  name: "file",
  words: ["--secret-file", "there"],
  isFormatted: true,
  held: (at) => textOf(at, "there"),
  faults: [
    none,
    {
      name: "its name taken",
      code: 12,
      before: ["--secret-command", "cat > /dev/null; echo mine > there"],
      lift: (at) => rmSync(at.path("there")),
    },
    { name: "what was reserved removed", code: 0, before: ["--secret-command", "cat > /dev/null; rm .there.*"] },
  ],
};

const breaks = (name: string, ...words: readonly string[]): Fault => ({
  name,
  code: 12,
  words,
  arrange: (at) => writeFileSync(at.path("broken"), ""),
  lift: (at) => rmSync(at.path("broken")),
});
const store = "cat > there";
const ifBroken = (what: string): string => `if test -e broken; then ${what}; fi; ${store}`;

const command: Target = {
  name: "command",
  words: ["--secret-command", store, "--secret-check-command", "cat raw"],
  isFormatted: true,
  isForgotten: true,
  held: (at) => textOf(at, "there"),
  faults: [
    none,
    breaks("an exit status", "--secret-command", `test ! -e broken && ${store}`),
    breaks("a signal", "--secret-command", ifBroken("kill -9 $$")),
    breaks("a secret not read", "--secret-command", ifBroken("exit 0")),
    breaks("too long a time", "--secret-command", ifBroken("sleep 9"), "--secret-command-timeout", "200ms"),
    breaks(
      "another secret stored",
      "--secret-command",
      store,
      "--secret-check-command",
      "if test -e broken; then echo other; else cat raw; fi",
    ),
    breaks("a check that fails", "--secret-command", store, "--secret-check-command", "test ! -e broken && cat raw"),
  ],
};

interface StoredProfiles {
  readonly profiles: readonly { readonly name: string; readonly credential: { readonly ref: string } }[];
}

const profile: Target = {
  name: "profile",
  words: ["--secret-profile", "target"],
  held: (at) => {
    const { profiles } = JSON.parse(textOf(at, "config/profiles.json") ?? "") as StoredProfiles;
    const { ref } = profiles.find(({ name }) => name === "target")!.credential;
    return /"sbx_us_cs_[0-9a-f]+"/.exec(textOf(at, `config/credentials/${ref}.json`) ?? "")?.[0].slice(1, -1);
  },
  faults: [
    none,
    {
      name: "the profile removed",
      code: 12,
      before: ["--secret-command", "cat > /dev/null; mv config/profiles.json kept.json"],
      lift: (at) => renameSync(at.path("kept.json"), at.path("config", "profiles.json")),
    },
  ],
};

/** A fault of the server, at its write or elsewhere. */
const served =
  (of: (stores: Stores) => StoreServer) =>
  (name: string, code: Fault["code"], ...[at, fault, times]: Parameters<StoreServer["plan"]>): Fault => ({
    name,
    code,
    arrange: (_at, stores) => of(stores).plan(at, fault, times),
  });
const hour = { "retry-after": "3600" };

const path = "secret/apps/ci";
const inVault = served(({ vault }) => vault);
const vaultWrite = /^(?:PATCH|POST) \/v1\/secret\/data/;
const vaultRead = /^GET \/v1\/secret\/data/;
const vault: Target = {
  name: "vault",
  words: ["--secret-to", `vault:${path}#client_secret`],
  held: (_at, stores) => stores.vault.current(path)?.client_secret as string | undefined,
  writes: (stores, secret) =>
    (stores.vault.secrets.get(path) ?? []).filter(({ fields }) => fields.client_secret === secret).length,
  faults: [
    none,
    inVault("no response, nothing done", 0, vaultWrite, "lost before"),
    inVault("no response, and done", 0, vaultWrite, "lost after"),
    inVault("an error of the server", 0, vaultWrite, { status: 500, body: { errors: ["oops"] } }),
    inVault("a short limit", 0, vaultWrite, { status: 429, headers: { "retry-after": "1" } }),
    inVault("a long limit", 12, vaultWrite, { status: 429, headers: hour }),
    inVault("a redirect", 12, vaultWrite, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    inVault("a permission taken away", 12, vaultWrite, { status: 403, body: { errors: ["permission denied"] } }),
    inVault("a request refused", 12, vaultWrite, { status: 400, body: { errors: ["no"] } }),
    {
      name: "a seal",
      code: 12,
      arrange: (_at, stores) => stores.vault.plan(vaultWrite, () => (stores.vault.isSealed = true)),
      lift: (_at, stores) => (stores.vault.isSealed = false),
    },
    {
      name: "another version",
      code: 5,
      isTheirs: true,
      arrange: (_at, stores) =>
        stores.vault.plan(vaultWrite, () => stores.vault.put(path, { client_secret: "theirs", other: "kept" })),
    },
    {
      name: "no server any more",
      code: 12,
      arrange: (_at, { vault: server }) => server.plan(vaultWrite, () => server.plan(/data/, "lost before", 99)),
    },
    {
      name: "nothing to be read back",
      code: 12,
      arrange: (_at, { vault: server }) =>
        server.plan(vaultWrite, () => server.plan(vaultRead, { status: 200, text: "text" }, 99)),
    },
  ],
};

const inGitHub = served(({ github }) => github);
const put = /^PUT /;
const github: Target = {
  name: "github",
  words: ["--secret-to", "github:my-org/my-repo#CLIENT_SECRET"],
  needs: "github",
  held: (_at, stores) => stores.github.secret("CLIENT_SECRET"),
  writes: (stores) => stores.github.changes("CLIENT_SECRET"),
  faults: [
    none,
    inGitHub("no response, nothing done", 0, put, "lost before"),
    inGitHub("no response, and done", 0, put, "lost after"),
    inGitHub("an error of the server", 0, put, { status: 502, text: "<html>" }),
    inGitHub("a short limit", 0, put, { status: 429, headers: { "retry-after": "1" } }),
    inGitHub("a long limit", 12, put, { status: 403, headers: hour }),
    inGitHub("a redirect", 12, put, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    inGitHub("a permission taken away", 12, put, { status: 403, body: { message: "no" } }),
    inGitHub("a request refused", 12, put, { status: 422, body: { message: "no" } }),
    inGitHub("a success that did nothing", 12, put, { status: 204 }),
    inGitHub("no server any more", 12, put, "lost before", 99),
    {
      name: "another key once",
      code: 0,
      arrange: (_at, stores) => stores.github.plan(put, () => stores.github.rotateKey()),
    },
    {
      name: "another key each time",
      code: 12,
      arrange: (_at, stores) => stores.github.plan(put, () => stores.github.rotateKey(), 99),
    },
    {
      name: "the repository archived",
      code: 12,
      arrange: (_at, stores) => stores.github.plan(put, () => (stores.github.repository.archived = true)),
      lift: (_at, stores) => (stores.github.repository.archived = false),
    },
  ],
};

const inCluster = served(({ cluster }) => cluster!);
const name = "apps/ci";
const apply = /^PATCH .*secrets\/ci\?fieldManager/;
const kubernetes: Target = {
  name: "k8s",
  words: ["--secret-to", `k8s:${name}#client-secret`],
  needs: "cluster",
  held: (_at, stores) => stores.cluster!.secret(name)?.["client-secret"],
  faults: [
    none,
    inCluster("no response, nothing done", 0, apply, "lost before"),
    inCluster("no response, and done", 0, apply, "lost after"),
    inCluster("an error of the server", 0, apply, {
      status: 500,
      body: { kind: "Status", reason: "InternalError", code: 500 },
    }),
    inCluster("a permission taken away", 12, apply, {
      status: 403,
      body: { kind: "Status", reason: "Forbidden", message: "no", code: 403 },
    }),
    {
      name: "another manager",
      code: 5,
      arrange: (_at, { cluster }) => cluster!.plan(apply, () => cluster!.put(name, "client-secret", "theirs", "edit")),
      lift: (_at, { cluster }) => cluster!.forgetSecrets(),
    },
  ],
};

const keychain: Target = {
  name: "keychain",
  words: ["--secret-to", "keychain:my-app/client_secret"],
  needs: "keyring",
  held: (_at, stores) => stores.keyring!.secret("my-app", "client_secret"),
  faults: [none],
};

export const targets: readonly Target[] = [file, command, profile, vault, github, kubernetes, keychain];
