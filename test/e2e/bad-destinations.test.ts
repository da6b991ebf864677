// Every command that yields a secret refuses a destination that cannot take it, and sends no change.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { recordFigure } from "../support/figures.mjs";
import { gitHubOfFile } from "../support/github-server.ts";
import { readJournal } from "../support/journal-file.ts";
import { type Ended, Home, stayInThisProcess } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { isFull } from "../support/sample.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";
import { vaultOfFile } from "../support/vault-server.ts";
import { KeysDesk } from "./keys-desk.ts";

stayInThisProcess();

const service = await serviceOfFile();
const account = new Account(service);
const desk = new KeysDesk(service);
const vault = await vaultOfFile();
const github = await gitHubOfFile();

afterEach(async () => {
  vault.calm();
  vault.isSealed = false;
  vault.secrets.clear();
  github.calm();
  Object.assign(github.repository, { archived: false, push: true });
  await service.calm();
  await account.clear();
  desk.clear();
});

interface BadDestination {
  readonly name: string;
  readonly words: readonly string[];
  readonly env?: () => Readonly<Record<string, string>>;
  readonly arrange?: (at: Home) => void;
  readonly code: 2 | 3;
  readonly says: string | RegExp;
}

const to = (address: string): string[] => ["--secret-to", address];
const inVault = to("vault:secret/apps/ci#client_secret");
const inGitHub = to("github:my-org/my-repo#CLIENT_SECRET");
const inKubernetes = to("k8s:apps/my-app#secret");

const table: readonly BadDestination[] = [
  { name: "an unknown store", words: to("valut:a/b#c"), code: 2, says: "it is not the address of a store" },
  { name: "a partial Vault address", words: to("vault:secret"), code: 2, says: "it is not vault:" },
  { name: "a partial GitHub address", words: to("github:a#B"), code: 2, says: "it is not github:" },
  { name: "a partial Kubernetes address", words: to("k8s:a#b"), code: 2, says: "it is not k8s:" },
  { name: "a partial keychain address", words: to("keychain:a"), code: 2, says: "it is not keychain:" },
  { name: "integ's own keychain entries", words: to("keychain:integ/p"), code: 2, says: "its own credentials" },
  { name: "no VAULT_ADDR", words: inVault, env: () => ({ VAULT_ADDR: "" }), code: 2, says: "needs VAULT_ADDR" },
  { name: "no Vault token", words: inVault, env: () => ({ VAULT_TOKEN: "" }), code: 3, says: "has no token" },
  { name: "a wrong Vault token", words: inVault, env: () => ({ VAULT_TOKEN: "none" }), code: 3, says: "not accepted" },
  { name: "a sealed Vault", words: inVault, arrange: () => void (vault.isSealed = true), code: 2, says: "is sealed" },
  {
    name: "a Vault token without write permission",
    words: inVault,
    env: () => ({ VAULT_TOKEN: vault.token("read") }),
    code: 3,
    says: "may not write",
  },
  { name: "an engine of version 1", words: to("vault:old/a#b"), code: 2, says: "not a KV engine of version 2" },
  {
    name: "a field that is not a string",
    words: inVault,
    arrange: () => vault.put("secret/apps/ci", { client_secret: 1 }),
    code: 2,
    says: "is not a string",
  },
  {
    name: "a redirect by Vault",
    words: inVault,
    arrange: () => vault.plan(/mounts/, { status: 307, headers: { location: "/x" } }, 9),
    code: 2,
    says: "redirect",
  },
  { name: "no GitHub token", words: inGitHub, env: () => ({ GH_ENTERPRISE_TOKEN: "" }), code: 3, says: "has no token" },
  {
    name: "an archived repository",
    words: inGitHub,
    arrange: () => void (github.repository.archived = true),
    code: 2,
    says: "archived",
  },
  {
    name: "a repository without write permission",
    words: inGitHub,
    arrange: () => void (github.repository.push = false),
    code: 3,
    says: "may not write",
  },
  { name: "a missing GitHub environment", words: to("github:my-org/my-repo@no#A"), code: 2, says: "no environment" },
  { name: "no kubectl", words: inKubernetes, env: () => ({ PATH: "/no/such" }), code: 2, says: "not installed" },
  { name: "a store twice", words: [...inVault, ...inVault], code: 2, says: "given twice" },
  {
    name: "a store twice, in other letters",
    words: [...inGitHub, ...to("github:My-Org/My-Repo#client_secret")],
    code: 2,
    says: "given twice",
  },
  { name: "a file twice", words: ["--secret-file", "a", "--secret-file", "./a"], code: 2, says: /given twice/ },
  {
    name: "an existing file",
    words: ["--secret-file", "taken"],
    arrange: (at) => writeFileSync(at.path("taken"), "mine"),
    code: 2,
    says: "taken",
  },
  { name: "a missing folder", words: ["--secret-file", "no/such/file"], code: 2, says: "no/such" },
  { name: "-", words: ["--secret-file", "-"], code: 2, says: "Leave --secret-file out to print the secret" },
  { name: "a missing profile", words: ["--secret-profile", "nobody"], code: 2, says: "nobody" },
  { name: "an empty command", words: ["--secret-command", " "], code: 2, says: "is empty" },
  {
    name: "an empty check",
    words: ["--secret-command", "cat", "--secret-check-command", ""],
    code: 2,
    says: "is empty",
  },
  ...[
    ["a command whose tool is missing", "pass-missing insert --multiline my-app"],
    ["a command whose file is missing", "./deploy-missing --stdin && echo ok"],
    ["a pipe whose tool is missing", "age-missing --encrypt | tee out > /dev/null"],
  ].map(([name = "", command = ""]) => ({
    name,
    words: ["--secret-command", command],
    code: 2 as const,
    says: `the program "${command.split(" ")[0]}" was not found`,
  })),
  {
    name: "a check whose tool is missing",
    words: ["--secret-command", "cat > /dev/null", "--secret-check-command", "gh-missing secret get"],
    code: 2,
    says: "--secret-check-command: the program",
  },
  {
    name: "a check without a command",
    words: ["--secret-file", "a", "--secret-check-command", "cat a"],
    code: 2,
    says: "does not follow",
  },
  {
    name: "a template without the secret",
    words: ["--secret-file", "a", "--secret-format", "template:{id}"],
    code: 2,
    says: "no {secret}",
  },
  { name: "an unknown format", words: ["--secret-file", "a", "--secret-format", "xml"], code: 2, says: "xml" },
  { name: "a format for a store", words: [...inVault, "--secret-format", "json"], code: 2, says: "does not follow" },
  {
    name: "variables without the secret",
    words: ["--secret-file", "a", "--secret-env", "A=id"],
    code: 2,
    says: "no variable for the secret",
  },
  {
    name: "one invalid destination of two",
    words: ["--secret-file", "a", ...inVault],
    env: () => ({ VAULT_TOKEN: "none" }),
    code: 3,
    says: "not accepted",
  },
];

interface Yielding {
  readonly name: string;
  /** Another valid exit code, for an entry whose secret is still lost or undelivered. */
  readonly orElse?: number;
  readonly keys?: true;
  arrange(at: Home): Promise<readonly string[]>;
}

const creation = (): string[] => creationWords(service);

const yielding: readonly Yielding[] = [
  { name: "oauth-clients create", arrange: async () => creation() },
  {
    name: "oauth-clients rotate",
    arrange: async () => ["oauth-clients", "rotate", (await account.make(["entity:read"])).id, "--yes"],
  },
  {
    name: "journal recover",
    orElse: 9,
    arrange: async (at) => {
      await service.fault("POST /v1/oauth_clients secret=withheld times=1");
      await run(at, creation());
      return ["journal", "recover", entryIn(at), "--replace-lost-secret"];
    },
  },
  {
    name: "journal claim",
    orElse: 12,
    arrange: async (at) => {
      await run(at, [...creation(), "--secret-command", "exit 1"]);
      return ["journal", "claim", entryIn(at)];
    },
  },
  { name: "keys create", keys: true, arrange: async () => ["keys", "create", "--name", "k", "--expires-in", "30d"] },
  {
    name: "keys rotate",
    keys: true,
    arrange: async () => ["keys", "rotate", (await desk.makeKey({ name: "old" })).id, "--yes"],
  },
  {
    name: "keys rotate --by-replacement",
    keys: true,
    arrange: async () => ["keys", "rotate", (await desk.makeKey({ name: "old" })).id, "--by-replacement", "--yes"],
  },
];

let tried = 0;
let notAsExpected = 0;
afterAll(() => {
  const counts = { destinations: table.length, commands: yielding.length, tried, wrong: notAsExpected };
  recordFigure("bad destinations", counts);
});

const run = (at: Home, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  integHere(at, words, { env });

const entryIn = (at: Home): string => readJournal(at.path("state", "journal.ndjson"))[0]!.id;

async function changes(): Promise<string[]> {
  return (await account.requests())
    .filter(({ method, path }) => method !== "GET" && !/token/.test(path))
    .map(({ method, path }) => `${method} ${path}`);
}

describe.each(yielding)("$name", ({ name, keys, arrange, orElse }) => {
  it("refuses each destination that cannot take the secret, and changes nothing", { timeout: 600_000 }, async () => {
    const at = keys ? (await desk.withProfile()).at : new Home(service.env);
    const stores = { VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.root };
    Object.assign(at.env, stores, { GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: github.token });
    const words = await arrange(at);
    const commandIndex = yielding.findIndex((one) => one.name === name);
    const rows = isFull || commandIndex === 0 ? table : table.filter((_row, index) => index % 3 === commandIndex % 3);
    const wrong: string[] = [];
    for (const bad of rows) {
      bad.arrange?.(at);
      const before = await changes();
      const journal = journalOf(at);
      const { code, stderr } = await run(at, [...words, ...bad.words], bad.env?.());
      const after = await changes();
      const isBadAddress = /^(?:is not \w+:|names no|given twice)/.test(String(bad.says));
      const isExpected = code === bad.code || (code === orElse && !isBadAddress);
      const isReported = typeof bad.says === "string" ? stderr.includes(bad.says) : bad.says.test(stderr);
      if (!isExpected || !isReported) wrong.push(`${bad.name}: exit ${code}: ${stderr}`);
      if (after.length !== before.length) wrong.push(`${bad.name}: sent ${after.slice(before.length).join(", ")}`);
      if (/lost|undelivered/.test(journal) && /"state":"(?:done|replaced)"/.test(journalOf(at)))
        wrong.push(`${bad.name}: the entry was settled`);
      vault.calm();
      vault.isSealed = false;
      vault.secrets.clear();
      Object.assign(github.repository, { archived: false, push: true });
    }
    tried += rows.length;
    notAsExpected += wrong.length;
    expect(wrong).toEqual([]);
    expect([vault.secrets.size, github.changes("CLIENT_SECRET")]).toEqual([0, 0]);
    at.remove();
  });
});

function journalOf(at: Home): string {
  try {
    return readFileSync(at.path("state", "journal.ndjson"), "utf8");
  } catch {
    return "";
  }
}

it("a read-only folder is detected before anything is sent", async (test) => {
  if (process.getuid?.() === 0) return test.skip();
  const at = homeOfTest(service.env);
  mkdirSync(at.path("closed"));
  chmodSync(at.path("closed"), 0o500);
  expect((await run(at, [...creation(), "--secret-file", "closed/a"])).code).toBe(2);
  expect(await changes()).toEqual([]);
});
