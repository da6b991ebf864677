import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { isRunnable, nodesBelow, treeOf } from "../../src/completion/tree.ts";
import { wholeTree } from "../../src/program.ts";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

/** Commands that change no part of the account, the journal or the profiles. */
const readers = [
  "entities list, cohorts members, people search, people membership, oauth-clients get",
  "oauth-clients list, oauth-clients token, keys list, keys get, journal list, journal show",
  "journal verify, journal path, journal export, plan, report, status, policy check, profiles list",
  "profiles show, doctor, sandbox start, sandbox status, sandbox tour, spec show, spec check",
  "schema, completion, commands, mcp",
].flatMap((line) => line.split(", "));

interface Step {
  readonly what: string;
  readonly method: string | null;
  readonly url: string | null;
  readonly headers: Record<string, string> | null;
  readonly body: string | null;
}

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;
let id: string;
let key: string;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest(tokenEnv(service));
  const client = await integ(...creationWords(service, "--secret-file", "made.secret", "--json"));
  id = (JSON.parse(client.stdout) as { id: string }).id;
  const name = `k-${process.hrtime.bigint()}`;
  const more = "--type service_account --scope push-ingest:* --secret-file key.secret --json".split(" ");
  const created = await integ("keys", "create", "--name", name, ...more);
  key = (JSON.parse(created.stdout) as { id: string }).id;
});

const clientOptions = ["--service-account", "sa_us_automation", "--scope", "entity:read"];
const integ = (...words: string[]): Promise<Ended> => home.integ(words);
const stepsOf = ({ stdout }: Ended): Step[] => (JSON.parse(stdout) as { data: Step[] }).data;
const sentSince = async (before: number) =>
  (await account.requests())
    .slice(before)
    .filter(({ method, path }) => method !== "GET" && path !== new URL(service.us.token_endpoint).pathname);

function contents(folder = home.folder): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) Object.assign(found, contents(path));
    else found[path] = createHash("sha256").update(readFileSync(path)).digest("hex");
  }
  return found;
}

function writePolicy(): void {
  writeFileSync(
    home.path("integ.yaml"),
    `version: 1\nid: pol_of_this_test\nunmanaged: ignore\noauth_clients:\n  a:\n    service_account: sa_us_automation\n    scopes: [entity:read]\n    rotate: { every: 60d }\n    secret: { file: a.secret }\n`,
  );
}

async function unfinished(): Promise<string> {
  await service.fault("POST /v1/oauth_clients times=1 drop=after");
  await integ(...creationWords(service, "--new", "--secret-file", "lost.secret", "--retry-for", "0"));
  const list = await integ("journal", "list", "--json");
  return (JSON.parse(list.stdout) as { data: { id: string }[] }).data[0]!.id;
}

async function undelivered(): Promise<string> {
  await integ(...creationWords(service, "--new", "--secret-command", "false"));
  const list = await integ("journal", "list", "--json");
  return (JSON.parse(list.stdout) as { data: { id: string }[] }).data[0]!.id;
}

const profile = (): string[] => ["--region", "us", "--base-url", service.us.base_url, "--api-key-command", "echo key"];

const scenes: Readonly<Record<string, () => Promise<string[]>>> = {
  "oauth-clients create": async () => [...clientOptions, "--secret-file", "new.secret"],
  "oauth-clients rotate": async () => [id, "--secret-file", "new.secret"],
  "oauth-clients revoke": async () => [id],
  "keys create": async () => ["--name", "another", "--expires-in", "90d", "--secret-file", "new.secret"],
  "keys rotate": async () => [key, "--secret-file", "new.secret"],
  "keys revoke": async () => [key],
  "journal recover": async () => [await unfinished()],
  "journal claim": async () => [await undelivered(), "--secret-file", "new.secret"],
  "journal forget": async () => [await unfinished()],
  "journal prune": async () => ["--older-than", "0s", "--include-live"],
  "journal release": async () => [await unfinished()],
  "journal init": async () => [],
  "journal move": async () => ["--to", home.path("elsewhere", "journal.ndjson")],
  "journal trust": async () => [await unfinished()],
  "journal import": async () => {
    const exported = await integ("journal", "export");
    writeFileSync(home.path("exported.ndjson"), exported.stdout);
    return [home.path("exported.ndjson")];
  },
  apply: async () => (writePolicy(), []),
  adopt: async () => (writePolicy(), ["--all"]),
  "adopt oauth-client": async () => (writePolicy(), [id, "--name", "a"]),
  "adopt access-key": async () => (writePolicy(), [key, "--name", "a"]),
  "policy init": async () => ["-f", "new.yaml"],
  "profiles add": async () => ["other", ...profile()],
  "profiles edit": async () => (
    await integ("profiles", "add", "p", "--no-verify", ...profile()),
    ["p", "--organization-id", service.us.organization_id]
  ),
  "profiles use": async () => (
    await integ("profiles", "add", "p", "--no-verify", ...profile()),
    await integ("profiles", "add", "q", "--no-verify", ...profile()),
    ["q"]
  ),
  "profiles remove": async () => (await integ("profiles", "add", "p", "--no-verify", ...profile()), ["p"]),
  "sandbox reset": async () => [],
  "keys audit": async () => ["--fix"],
  "oauth-clients audit": async () => {
    await service.control("POST", `/oauth_clients/${id}`, { status: "disabled" });
    return ["--fix"];
  },
  api: async () => ["/v1/oauth_clients/oc_1", "-X", "DELETE"],
};

const needOtherJournal = new Set(["journal init", "journal release"]);

describe("--dry-run", () => {
  it("is an option of every command that changes something", async () => {
    const { root, verbOf } = await wholeTree();
    const verbs = [...nodesBelow(treeOf(root, verbOf).root)].filter(isRunnable);
    const named = new Map(
      verbs.map((node) => [node.path.join(" "), node.flags.some(({ long }) => long === "--dry-run")]),
    );
    const without = [...named].filter(([name, has]) => !has && !readers.includes(name)).map(([name]) => name);
    expect(without).toEqual([]);
    expect(
      [...named].filter(([name, has]) => has && !(name in scenes) && !needOtherJournal.has(name)).map(([name]) => name),
    ).toEqual([]);
    expect([...named].filter(([name, has]) => has && readers.includes(name))).toEqual([]);
  });

  it.each(Object.keys(scenes).filter((name) => !needOtherJournal.has(name)))(
    "%s changes nothing, and shows its plan",
    async (name) => {
      const words = await scenes[name]!();
      await service.calm();
      const [files, requests] = [contents(), (await account.requests()).length];
      const ended = await integ(...name.split(" "), ...words, "--dry-run", "--json");
      expect({ code: ended.code, stderr: ended.code === 0 ? "" : ended.stderr }).toEqual({ code: 0, stderr: "" });
      expect(ended.stdout.length).toBeGreaterThan(10);
      expect(await sentSince(requests)).toEqual([]);
      expect(contents()).toEqual(files);
    },
  );

  const real: readonly (readonly [string, readonly string[]])[] = [
    ["oauth-clients rotate", []],
    ["oauth-clients revoke", ["--yes"]],
    ["keys rotate", ["--yes"]],
    ["keys rotate", ["--by-replacement", "--expires-in", "30d", "--marker", "--yes"]],
    ["keys revoke", ["--yes"]],
    ["journal recover", []],
    ["apply", ["--yes"]],
    ["api", []],
  ];
  it.each(real)("%s %j later sends exactly the printed request", async (name, more) => {
    const words = [...(await scenes[name]!()), ...more];
    await service.calm();
    const dry = stepsOf(await integ(...name.split(" "), ...words, "--dry-run", "--json"));
    const before = (await account.requests()).length;
    await integ(...name.split(" "), ...words);
    const sent = await sentSince(before);
    const printed = dry.filter(({ method, url }) => method !== null && url !== service.us.token_endpoint);
    // A replacement key is not proven if its secret cannot be exchanged, so the old key stays.
    const expected = more.includes("--by-replacement") ? printed.slice(0, 1) : printed;
    expect(sent.map(({ method, path }) => `${method} ${service.us.base_url}${path}`)).toEqual(
      expected.map(({ method, url }) => `${method} ${url}`),
    );
    for (const [index, { body, headers }] of expected.entries()) {
      const received = sent[index]!;
      expect(received.body ?? "").toMatch(patternOf(body ?? ""));
      const printedKey = headers?.["Idempotency-Key"];
      if (printedKey !== undefined) expect(received.idempotency_key).toMatch(patternOf(printedKey));
      const version = headers?.["Service-Version"];
      if (version !== undefined) expect(received.headers["service-version"]).toBe(version);
    }
  });

  it("of a creation prints the exact request", async () => {
    const words = ["oauth-clients", "create", ...clientOptions, "--idempotency-key", "key-1"];
    const dry = JSON.parse((await integ(...words, "--dry-run", "--json")).stdout) as {
      body: unknown;
      headers: Record<string, string>;
    };
    const before = (await account.requests()).length;
    await integ(...words, "--secret-file", "new.secret");
    expect(await sentSince(before)).toMatchObject([
      { body: JSON.stringify(dry.body), idempotency_key: dry.headers["Idempotency-Key"] },
    ]);
  });

  it("of policy init writes no file", async () => {
    await integ("policy", "init", "-f", "new.yaml", "--dry-run");
    expect(existsSync(home.path("new.yaml"))).toBe(false);
  });
});

/** A placeholder in parentheses matches any text without a quotation mark. */
function patternOf(text: string): RegExp {
  const parts = text.split(/\((?:a |\d)[^)]*\)/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join('[^"]+')}$`, "s");
}
