// Builds docs/design/contract-coverage.md from sentences.json, the cases and client-unread.txt: each sentence of the API
// document with the cases and tests that check it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ContractCase, readCases } from "./case.ts";
import type { Sentence } from "./document-sentences.ts";

const sections: readonly (readonly [section: string, about: string])[] = [
  ["0", "two contracts, two regions"],
  ["1", "what the service does: regions, two contracts"],
  ["2.1", "list envelope"],
  ["2.2", "entity"],
  ["2.3", "OAuth client"],
  ["2.4", "API access key"],
  ["2.5", "error object"],
  ["3.1", "states of an OAuth client"],
  ["3.2", "states of an API access key"],
  ["4", "path prefixes"],
  ["4.1", "common headers"],
  ["4.2", "OAuth clients"],
  ["4.3", "lists"],
  ["4.4", "legacy endpoints"],
  ["4.5", "specification documents"],
  ["5.1", "authentication of /v1"],
  ["5.2", "OAuth client credentials"],
  ["5.3", "authentication of the legacy contract"],
  ["6", "events"],
  ["7", "errors"],
  ["8", "limits"],
  ["9", "versioning"],
];

/** `by` contains names of cases, and tests as `file: title`. */
interface Row extends Sentence {
  readonly by?: readonly string[];
  readonly why?: string;
}

export function sentenceRows(): readonly Row[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, "sentences.json"), "utf8"));
}

export function apiDocument(): string | undefined {
  const beside = ["../../../shared", "../../../../shared"].map((path) =>
    join(import.meta.dirname, path, "spec/integration-api.md"),
  );
  const path = beside.find((one) => existsSync(one));
  return path && readFileSync(path, "utf8");
}

/** @returns sentences without a check, missing cases and tests, and cases that check no sentence or misquote one */
export function rowDefects(): string[] {
  const rows = sentenceRows();
  const cases = readCases().flatMap((file) => file.cases);
  const checkedBy = rows.flatMap(({ says, by = [] }) => by.map((name) => ({ says, name })));
  const all = rows.map(({ says }) => says).join(" ");
  return [
    ...rows.filter(({ by, why }) => !by?.length && !why).map(({ says }) => `nothing checks: ${says}`),
    ...checkedBy
      .filter(({ name }) => !exists(name, cases))
      .map(({ says, name }) => `no such case or test: ${name} (${says})`),
    ...cases.flatMap(({ name, says }) => {
      if (!checkedBy.some((one) => one.name === name)) return [`the case checks no sentence: ${name}`];
      const isTheDocuments = says.split(/[.;]\s*/).every((words) => all.includes(words));
      return isTheDocuments ? [] : [`other words than the document's: ${name}`];
    }),
  ];
}

function exists(name: string, cases: readonly ContractCase[]): boolean {
  const [, file, title] = /^(test\/\S+): ?(.*)$/.exec(name) ?? [];
  if (file === undefined || title === undefined) return cases.some((one) => one.name === name);
  const path = join(import.meta.dirname, "../..", file);
  return existsSync(path) && readFileSync(path, "utf8").includes(title);
}

const bare = (text: string): string => text.replaceAll("|", "\\|");

interface Covered extends ContractCase {
  readonly file: string;
  readonly requests: number;
  readonly unread: number;
}

function linesOf(file: string): string[] {
  return readFileSync(join(import.meta.dirname, file), "utf8")
    .trim()
    .split("\n");
}

function coveredCases(): Covered[] {
  const lines = linesOf("client-unread.txt");
  let left = lines.length;
  const covered = readCases().flatMap(({ file, cases }) =>
    cases.map((one) => {
      const isOfIt = (line: string): boolean => line.startsWith(`§${one.section} ${one.name}, step `);
      const unread = lines.filter(isOfIt).length;
      left -= unread;
      const requests = one.steps.filter((step) => "request" in step || "walk" in step).length;
      if (!sections.some(([section]) => belongsTo(section, one.section)))
        throw new Error(`§${one.section} is unknown.`);
      // client.test.ts sends single requests; other tests check how the client walks through pages.
      const walks = one.steps.filter((step) => "walk" in step).length;
      return { ...one, file, requests, unread: unread + walks };
    }),
  );
  if (left !== 0) throw new Error("The list leaves out a request that is in no case.");
  return covered;
}

function belongsTo(section: string, one: string): boolean {
  return one === section || (one.startsWith(section) && !/^[0-9.]/.test(one.slice(section.length)));
}

function summaryOf(cases: readonly Covered[], [section, about]: (typeof sections)[number]): string {
  const own = cases.filter((one) => belongsTo(section, one.section));
  const rows = sentenceRows().filter((one) => belongsTo(section, one.section));
  const normative = rows.filter(({ why }) => why === undefined).length;
  const requests = own.reduce((sum, one) => sum + one.requests, 0);
  const read = requests - own.reduce((sum, { unread }) => sum + unread, 0);
  return `| ${section} | ${about} | ${normative} of ${rows.length} | ${own.length} | ${requests} | ${read} |`;
}

export function coverageDocument(): string {
  const cases = coveredCases();
  const files = new Map(cases.map(({ name, file }) => [name, file]));
  const rows = sentenceRows();
  const normative = rows.filter(({ why }) => why === undefined);
  const holder = (name: string): string => (files.has(name) ? `${name} (\`${files.get(name)}\`)` : `\`${name}\``);
  return [
    "# Which sentence of the API document is checked by which case",
    "",
    "Made from `test/contract/sentences.json` and `test/contract/cases/*.json` by the tests (`npx vitest run test/contract -u` writes it).",
    `The document has ${rows.length} sentences and clauses, ${normative.length} of them normative. Every case is used twice:`,
    "",
    "- its requests are sent over HTTP to the sandbox, and every response is checked against the published OpenAPI document;",
    "- its responses are read by the client (`client.test.ts`); requests without a client call are listed in `client-unread.txt`.",
    "",
    "| § | about | normative sentences | cases | requests | of them read by the client |",
    "|---|---|---|---|---|---|",
    ...sections.map((section) => summaryOf(cases, section)),
    "",
    "## Sentence by sentence",
    "",
    "| § | the document says | checked by |",
    "|---|---|---|",
    ...normative.map(
      ({ section, says, by = [] }) => `| ${section} | ${bare(says)} | ${bare(by.map(holder).join("; "))} |`,
    ),
    "",
    "## Not normative",
    "",
    "| § | the document says | why |",
    "|---|---|---|",
    ...rows.flatMap(({ section, says, why }) =>
      why === undefined ? [] : [`| ${section} | ${bare(says)} | ${bare(why)} |`],
    ),
    "",
  ].join("\n");
}
