// Runs the commands in sentences of the documents. The files in `blockTests` run those in code blocks.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Home, root } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { serviceOfFile } from "../support/service.ts";

const read = (name: string): string => readFileSync(join(root, name), "utf8");

const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n")
  .filter((name) => !/^(?:test|src)\/|^docs\/commands\.md$|contract-coverage/.test(name));

const blockTests: Readonly<Record<string, readonly string[]>> = {
  "README.md": ["guides", "readme"],
  "SECURITY.md": ["guides"],
  "docs/agents/SKILL.md": ["guides"],
  "docs/ci.md": ["keys-ci-doc", "hosted-ci-doc"],
  "docs/contracts.md": ["guides"],
  "docs/design/output.md": ["errors"],
  "docs/policy.md": ["guides", "hosted-ci-doc", "policy-doc"],
  "docs/quick-start.md": ["guides"],
  "docs/recovery.md": ["guides"],
  "docs/sandbox.md": ["guides", "sandbox-document", "sandbox-start", "tour"],
  "docs/scripting.md": ["documents"],
  "docs/secret-stores.md": ["secret-stores-doc", "recipes"],
  "docs/team.md": ["team-document"],
};

/** A sentence may name a command without its arguments. The test then prints its help. */
const isName = (line: string): boolean =>
  /^(api|adopt|keys|people|oauth-clients|keys create|journal (claim|init|move|prune|release))$/.test(line);

const notRun: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^sandbox start/, "serves until Ctrl-C (sandbox-start.test.ts)"],
  [/^sandbox tour/, "runs for long (tour.test.ts)"],
  [/^journal release/, "needs an entry that another process holds (team.test.ts)"],
  [/^(keys|oauth-clients) revoke <id>/, "would revoke the key that these commands act with (keys.test.ts)"],
  [/^<noun>/, "is a pattern, not a command"],
];

function blocksOf(name: string): string[] {
  return [...read(name).matchAll(/^[ \t]*```(?!sql)[a-z]*\n([\s\S]*?)^[ \t]*```/gm)].flatMap(([, block]) =>
    block!
      .replaceAll("\\\n", " ")
      .split("\n")
      .filter((line) => /(?:^|[\s$(;|])integ [a-z-]/.test(line)),
  );
}

const mentions = [
  ...new Set(
    documents.flatMap((name) =>
      [
        ...read(name)
          .replaceAll(/^[ \t]*```[\s\S]*?^[ \t]*```/gm, "")
          .matchAll(/`integ ([^`]+)`/g),
      ].map(([, words]) => words!.replaceAll(/\s+/g, " ")),
    ),
  ),
];

const service = await serviceOfFile();
const homes: Home[] = [];

afterAll(async () => {
  for (const home of homes) home.remove();
});

async function newHome(): Promise<Home> {
  const { us } = service;
  const home = new Home();
  homes.push(home);
  const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
  const legacy = ["--access-token-endpoint", us.access_token_endpoint, "--token-endpoint", us.token_endpoint];
  const words = ["profiles", "add", "prod", ...address, ...legacy, "--api-key-stdin", "--api-key-id", us.access_key_id];
  const { code, stderr } = await integHere(home, words, { input: us.access_key_secret });
  expect(code, stderr).toBe(0);
  return home;
}

async function entryIn(home: Home, state: string): Promise<string> {
  const request = ["oauth-clients", "create", "--service-account", service.us.service_account_id];
  const create = [...request, "--scope", "entity:read", "--new", "--retry-for", "0"];
  const drop = { unknown: "before", secret_lost: "after" }[state];
  if (drop !== undefined) await service.fault(`POST /v1/oauth_clients drop=${drop} times=1`);
  if (state === "waiting") {
    const { code, stdout, stderr } = await integHere(home, [...create, "--secret-file", "old.secret", "--json"]);
    expect(code, stderr).toBe(0);
    const { id } = JSON.parse(stdout) as { id: string };
    await integHere(home, ["oauth-clients", "rotate", id, "--overlap", "36h", "--secret-file", "new.secret"]);
  } else await integHere(home, [...create, ...(state === "undelivered" ? ["--secret-command", "exit 1"] : [])]);
  if (state === "secret_lost") await integHere(home, ["journal", "recover"]);
  const { stdout } = await integHere(home, ["journal", "list", "--state", state, "--json"]);
  return (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id;
}

function writePolicy(home: Home): void {
  const item = `{ service_account: ${service.us.service_account_id}, scopes: [entity:read], rotate: { every: 60d }, secret: { file: r.secret } }`;
  writeFileSync(home.path("integ.yaml"), `version: 1\nid: pol_of_this_test\noauth_clients:\n  reporting: ${item}\n`);
}

async function prepare(home: Home, line: string): Promise<string> {
  let text = line.replace(/ > .*/, "");
  const run = (...words: string[]) => integHere(home, words);
  if (/^(adopt --all|apply|plan|policy|status)/.test(text)) writePolicy(home);
  if (/^apply --(finish|retry)/.test(text)) await run("apply", "--yes");
  if (text.startsWith("apply --finish"))
    await run("oauth-clients", "rotate", "--name", "reporting", "--overlap", "36h", "--secret-file", "n.secret");
  if (text.startsWith("apply plan.json")) await run("plan", "--out", "plan.json");
  if (text.startsWith("journal import")) await run("journal", "export", "--out", "journal.ndjson");
  const state = /replace-lost-secret/.test(text)
    ? "secret_lost"
    : text.startsWith("journal claim")
      ? "undelivered"
      : / --now/.test(text)
        ? "waiting"
        : /^journal (recover|forget|trust)/.test(text)
          ? "unknown"
          : undefined;
  if (state !== undefined) text = text.replace(/<(id|entry)>/, await entryIn(home, state));
  const { us } = service;
  const values: Readonly<Record<string, string>> = {
    name: "prod",
    topic: "output",
    noun: "keys",
    verb: "list",
    uuid: us.organization_id,
    url: us.access_token_endpoint,
    id: us.access_key_id,
    recipient: "",
  };
  text = text.replaceAll(/<([\w-]+)>/g, (_all, name: string) => values[name] ?? name);
  const needsYes = /^(apply(?! --dry)|journal (forget|trust)|sandbox reset)|replace-lost-secret/.test(text);
  return needsYes ? `${text} --yes` : text;
}

describe("documented commands", () => {
  const pages = documents.filter((name) => blocksOf(name).length > 0);

  it("in code blocks each have a test that reads the page", () => {
    expect(Object.keys(blockTests).sort()).toEqual(pages.sort());
    for (const [page, tests] of Object.entries(blockTests)) {
      const texts = tests.map((name) => read(`test/e2e/${name}.test.ts`)).join("\n");
      const isRead = texts.includes(page) || texts.includes(page.replace("docs/", ""));
      expect(isRead || page === "docs/design/output.md", page).toBe(true);
    }
  });
});

it("commands in sentences succeed", { timeout: 120_000 }, async () => {
  const reasons: string[] = [];
  const failed: string[] = [];
  let run = 0;
  let names = 0;
  const shared = await newHome();
  for (const line of mentions) {
    const reason = notRun.find(([pattern]) => pattern.test(line))?.[1];
    if (reason !== undefined || line.endsWith("…")) {
      reasons.push(`${line}: ${reason ?? "is cut"}`);
      continue;
    }
    if (isName(line)) names += 1;
    const home = /^(adopt --all|apply|journal|plan|policy|profiles (edit|remove)|sandbox)/.test(line)
      ? await newHome()
      : shared;
    const text = isName(line) ? `help ${line}` : await prepare(home, line);
    const { code, stderr } = await integHere(home, text.split(" "));
    await service.calm();
    const expected = text.includes("--exit-code") ? 10 : 0;
    run += 1;
    if (code !== expected) failed.push(`${code} not ${expected}: ${line} (${text})\n${stderr}`);
  }
  const blocks = documents.reduce((sum, name) => sum + blocksOf(name).length, 0);
  console.log(
    `commands of the documents: ${blocks} lines of blocks on ${Object.keys(blockTests).length} pages, each page played by its test; ` +
      `${mentions.length} different ones in sentences, ${run} run (${names} of them as help); not run: ${reasons.join("; ")}`,
  );
  expect(failed).toEqual([]);
});
