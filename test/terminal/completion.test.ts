import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { candidatesAt } from "../../src/completion/candidates.ts";
import { type Node, nodesBelow, type Tree, treeOf } from "../../src/completion/tree.ts";
import { wholeTree } from "../../src/program.ts";
import type { Home } from "../support/program.ts";
import {
  homeFor,
  isShellMissing,
  openShell,
  shellNames,
  type CompletingShell,
  type ShellName,
} from "./completing-shells.ts";
import { isFull } from "../support/sample.ts";

const cases: Readonly<Record<string, readonly string[]>> = {
  "integ ent": ["entities"],
  "integ entity": ["entity"],
  "integ profiles ": ["add", "edit", "list", "remove", "show", "use"],
  "integ profile u": ["use"],
  "integ help oauth-clients cr": ["create"],
  "integ help profiles show ": [],
  "integ help journal prune ": [],
  "integ completion ": ["bash", "fish", "powershell", "zsh"],
  "integ -o ": ["csv", "html", "json", "markdown", "ndjson", "openmetrics", "sarif", "table", "yaml"],
  "integ entities list -o n": ["ndjson"],
  "integ entities list --output=nd": ["ndjson"],
  "integ entities list --type ": ["person"],
  "integ -p sandbox ent": ["entities"],
  "integ entities -p sandbox --json li": ["list"],
  "integ entities list --ser": ["--service-version"],
  "integ oauth-clients create --secret-f": ["--secret-file", "--secret-format"],
  "integ oauth-clients create --secret-format ": ["env", "json", "json-string", "line", "raw"],
  "integ oauth-clients create --scope ": ["entity:read", "organization:read", "service_account:manage"],
  "integ oauth-clients create --scope entity:read serv": ["service_account:manage"],
  "integ oauth-clients create --scope entity:r": ["entity:read"],
  "integ oauth-clients create --scope=entity:read serv": ["service_account:manage"],
  "integ oauth-clients create --scope=entity:read --sco": ["--scope"],
  "integ oauth-clients create --scope entity:read --serv": ["--service-account", "--service-version"],
  "integ oauth-clients create --secret-command 'vault kv put' --idem": ["--idempotency-key"],
  "integ oauth-clients create --service-account ": ["sa_us_automation"],
  "integ profiles add prod --region ": ["eu", "us"],
  "integ profiles add prod --basic-style ": ["apikey-user", "key-as-user"],
  "integ profiles show ": ["prod", "sandbox", "sandbox-eu"],
  "integ profiles use sand": ["sandbox", "sandbox-eu"],
  "integ -p ": ["prod", "sandbox", "sandbox-eu"],
  "integ journal list -p p": ["prod"],
  "integ entities list --profile=pr": ["prod"],
  "integ journal prune ": ["--dry-run", "--include-live", "--older-than"],
  "integ keys create --type ": ["service_account", "user_bound"],
  "integ keys create --scope ": ["*", "push-ingest:*"],
  "integ keys create --scope push-ingest:": ["push-ingest:*"],
  "integ keys create --scope=pu": ["push-ingest:*"],
  "integ api -X P": ["PATCH", "POST", "PUT"],
  "integ api /v1/e": ["/v1/entities"],
  "INTEG_OUTPUT=json integ ent": ["entities"],
  "integ api -f type=person -X P": ["PATCH", "POST", "PUT"],
  "integ cohorts members -- --": [],
};

/** Lines that shells themselves interpret: with quotes, `=`, `:`, a `--` alone, or a `*` at the end. */
const isReadByShell = /['=:]| -- |\* ?$/;

/** A sample tries a line in only one shell, unless shells themselves interpret the line. */
function linesFor(name: ShellName): [string, readonly string[]][] {
  const installed = shellNames.filter((one) => !isShellMissing(one));
  const own = installed.indexOf(name);
  return Object.entries(cases).filter(
    ([line], index) => isFull || own < 0 || isReadByShell.test(line) || index % installed.length === own,
  );
}

interface LocalIds {
  readonly entries: readonly string[];
  readonly undelivered: string;
  readonly clients: readonly string[];
  readonly key: string;
}

async function fill(home: Home): Promise<LocalIds> {
  const run = async (words: readonly string[], code = 0): Promise<string> => {
    const ended = await home.integ(words);
    expect({ words, ...ended }).toMatchObject({ code });
    return ended.stdout;
  };
  const where = ["--region", "us", "--base-url", "https://us.example.com"];
  await run(["profiles", "add", "prod", ...where, "--api-key-command", "echo k"]);
  const account = JSON.parse(await run(["sandbox", "status", "--json"])).us.service_account_id as string;
  const create = ["oauth-clients", "create", "-p", "sandbox", "--service-account", account, "--scope", "entity:read"];
  await run([...create, "--secret-file", home.path("first.secret")]);
  await run([...create, "--secret-command", "exit 1"], 12);
  await run(["keys", "create", "-p", "sandbox", "--name", "k", "--expires-in", "90d", "--json"]);
  type Entry = { id: string; operation: string; state: string; resource_id: string };
  const { data } = JSON.parse(await run(["journal", "list", "--all", "--json"])) as { data: Entry[] };
  const clients = data.filter(({ operation }) => operation === "oauth_client.create");
  expect(data).toHaveLength(3);
  return {
    entries: data.map(({ id }) => id).sort(),
    undelivered: clients.find(({ state }) => state === "undelivered")!.id,
    clients: clients.map((entry) => entry.resource_id).sort(),
    key: data.find(({ operation }) => operation === "access_key.create")!.resource_id,
  };
}

async function programTree(): Promise<Tree> {
  const { root, verbOf } = await wholeTree();
  return treeOf(root, verbOf);
}

function longFlags({ globals }: Tree, node: Node): string[] {
  return [...node.flags, ...globals].map(({ long }) => long).sort();
}

function childrenOf({ nodes, path }: Node): string[] {
  return [...nodes.map((node) => node.path.at(-1)!), ...(path.length === 0 ? ["help"] : [])].sort();
}

it("completion offers every command and every flag of the tree", async () => {
  const tree = await programTree();
  const offeredFor = (words: readonly string[], current: string): string[] => {
    const found = candidatesAt(tree, words, current);
    return ("list" in found ? found.list : []).map(({ text }) => text).sort();
  };
  for (const node of nodesBelow(tree.root)) {
    const flags = offeredFor(node.path, "--").filter((flag) => flag.startsWith("--"));
    expect({ path: node.path, flags }).toEqual({ path: node.path, flags: longFlags(tree, node) });
    const commands = node.nodes.length > 0 ? offeredFor(node.path, "") : [];
    expect(commands).toEqual(expect.arrayContaining(node.nodes.length > 0 ? childrenOf(node) : []));
  }
});

describe.each(shellNames)("Tab in %s", (name) => {
  const absent = isShellMissing(name);
  let home: Home;
  let shell: CompletingShell;
  let local: LocalIds;

  beforeAll(async () => {
    if (absent) return;
    const opened = await homeFor(name);
    home = opened.home;
    local = await fill(home);
    mkdirSync(home.path("work", "some folder"));
    writeFileSync(home.path("work", "some.secret"), "");
    shell = await openShell(name, opened);
  });
  afterAll(() => {
    shell?.close();
    home?.remove();
  });

  it.skipIf(absent).each(linesFor(name))("%s", async (line, expected) => {
    expect(await shell.offered(line)).toEqual([...expected]);
  });

  it.skipIf(absent)("does not repeat a given flag under either name, unless it is repeatable", async () => {
    const offered = await shell.offered("integ oauth-clients create -q --yes --scope=entity:read --dry-run --");
    expect(offered).toEqual(expect.arrayContaining(["--scope", "--json", "--new"]));
    expect(offered.filter((flag) => ["--quiet", "--yes", "--dry-run"].includes(flag))).toEqual([]);
  });

  it.skipIf(absent)("offers commands after help, except help itself", async () => {
    const offered = await shell.offered("integ help ");
    expect(offered).toEqual(expect.arrayContaining(["profiles", "completion"]));
    expect(offered).not.toContain("help");
  });

  it.skipIf(absent)("offers names from this machine", async () => {
    expect(await shell.offered("integ journal show ")).toEqual(local.entries);
    expect(await shell.offered("integ journal recover ")).toEqual([local.undelivered]);
    expect(await shell.offered(`integ journal recover ${local.undelivered} `)).toEqual([local.undelivered]);
    expect(await shell.offered("integ -p sandbox oauth-client get oac_")).toEqual(local.clients);
    expect(await shell.offered("integ keys revoke -p sandbox ")).toEqual([local.key]);
  });

  it.skipIf(absent)("offers files for a file argument, also names with spaces", async () => {
    const files = ["some folder", "some.secret"];
    const found = async (line: string): Promise<string[]> =>
      (await shell.offered(line)).map((word) => word.replace(/\/$/, ""));
    expect(await found("integ oauth-clients create --secret-file so")).toEqual(files);
    expect(await found("integ oauth-clients create --secret-file=so")).toEqual(files);
    expect(await found("integ api /v1/x --input some.")).toEqual(["some.secret"]);
  });

  it.skipIf(absent || name !== "fish")("leaves quotes, variables and ~ before a file to fish", async () => {
    writeFileSync(home.path("in-home.secret"), "");
    const found = async (word: string): Promise<string[]> =>
      await shell.offered(`integ oauth-clients create --secret-file ${word}`);
    expect(await found("'some f")).toEqual(["some folder/"]);
    expect(await found('"some.s')).toEqual(["some.secret"]);
    expect(await found("~/in-ho")).toEqual(["~/in-home.secret"]);
    expect(await found("$HOME/in-ho")).toEqual(["$HOME/in-home.secret"]);
  });
});
