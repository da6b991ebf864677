import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
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
  readonly says: string;
}

const to = (address: string): string[] => ["--secret-to", address];
const inVault = to("vault:secret/apps/ci#client_secret");
const inGitHub = to("github:my-org/my-repo#CLIENT_SECRET");
const inKubernetes = to("k8s:apps/my-app#secret");

const table: readonly BadDestination[] = [
  { name: "an unknown store", words: to("valut:a/b#c"), code: 2, says: "it is not the address of a store" },
  { name: "no VAULT_ADDR", words: inVault, env: () => ({ VAULT_ADDR: "" }), code: 2, says: "needs VAULT_ADDR" },
  { name: "a wrong Vault token", words: inVault, env: () => ({ VAULT_TOKEN: "none" }), code: 3, says: "not accepted" },
  {
    name: "an archived repository",
    words: inGitHub,
    arrange: () => void (github.repository.archived = true),
    code: 2,
    says: "archived",
  },
  { name: "a missing GitHub environment", words: to("github:my-org/my-repo@no#A"), code: 2, says: "no environment" },
  { name: "no kubectl", words: inKubernetes, env: () => ({ PATH: "/no/such" }), code: 2, says: "not installed" },
  { name: "a store twice", words: [...inVault, ...inVault], code: 2, says: "given twice" },
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
  {
    name: "an empty check",
    words: ["--secret-command", "cat", "--secret-check-command", ""],
    code: 2,
    says: "is empty",
  },
  { name: "a missing tool", words: ["--secret-command", "pass-missing insert"], code: 2, says: "was not found" },
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
  { name: "a format for a store", words: [...inVault, "--secret-format", "json"], code: 2, says: "does not follow" },
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
      const isBadAddress = /^(?:is not \w+:|names no|given twice)/.test(bad.says);
      const isExpected = code === bad.code || (code === orElse && !isBadAddress);
      if (!isExpected || !stderr.includes(bad.says)) wrong.push(`${bad.name}: exit ${code}: ${stderr}`);
      if (after.length !== before.length) wrong.push(`${bad.name}: sent ${after.slice(before.length).join(", ")}`);
      if (/lost|undelivered/.test(journal) && /"state":"(?:done|replaced)"/.test(journalOf(at)))
        wrong.push(`${bad.name}: the entry was settled`);
      vault.calm();
      vault.secrets.clear();
      Object.assign(github.repository, { archived: false, push: true });
    }
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
