// The tables of docs/design/contract-coverage.md: § → cases and who drives them, made from the cases and from the lists that
// client.test.ts and command-line.test.ts keep of what they leave out.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ContractCase, readCases } from "./case.ts";

/** Every § of the API document, with what it is about. */
const sections: readonly (readonly [section: string, about: string])[] = [
  ["1", "what the service does: regions, two contracts"],
  ["2.1", "list envelope"],
  ["2.2", "entity"],
  ["2.3", "OAuth client"],
  ["2.4", "API access key"],
  ["2.5", "error object"],
  ["3.1", "states of an OAuth client"],
  ["3.2", "states of an API access key"],
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

/** Sentences that no request can check, and what becomes of them. */
const beyond: readonly (readonly [section: string, says: string, why: string])[] = [
  ["1", "Domain meaning of entities and cohorts: not shown.", "nothing is stated"],
  ["2.5", "See section 7.", "§7 below"],
  ["3.1", "already-accepted work is not cancelled", "no operation accepts work that goes on"],
  ["3.1", "Transitions into `disabled` and `expired`: not shown.", "the control address makes them; docs/sandbox.md"],
  [
    "4.2 rule 1",
    "It is chosen and stored by the caller before the first send.",
    "the caller's part: the journal's tests",
  ],
  [
    "4.2 decision table",
    "Required caller action",
    "the caller's part: tests of `src/changes`; the answers it decides on are above",
  ],
  ["5.1 rule 3", "Redirects are not to be followed by clients.", "the client's part; the fault `redirect` makes one"],
  ["5.1 rule 4", "Credentials belong on the host of the matching region.", "the client's part; the service's is §1"],
  ["5.2 rule 3", "are supplied by organization setup", "the description of `sandbox start` supplies the endpoint"],
  ["5.2 rule 6", "Secrets and tokens must be kept server-side", "the client's part"],
  ["6", "Events, webhooks or notifications: not shown.", "nothing is stated"],
  [
    "8",
    "Replay window of general idempotent replay",
    "no operation of the document uses it; §4.2 rule 3 says which does not",
  ],
  ["9 rule 2", "each operation declares `x-lifecycle-stage`", "contract.test.ts, over the published documents"],
  ["9 rules 3, 6, 7", "how versions are issued", "about what is to come"],
];

const bare = (text: string): string => text.replaceAll("|", "\\|");

/** Numbers in order, `4.10` after `4.9`. */
function bySection(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

/** A case with how many of its requests each way leaves out. */
interface Covered extends ContractCase {
  readonly file: string;
  readonly requests: number;
  readonly unread: number;
  readonly untyped: number;
}

function linesOf(file: string): string[] {
  return readFileSync(join(import.meta.dirname, file), "utf8")
    .trim()
    .split("\n");
}

/** @throws Error where a list leaves something out that no case has: it is of another day */
function coveredCases(): Covered[] {
  const lists = { unread: linesOf("client-unread.txt"), untyped: linesOf("command-line-untyped.txt") };
  const left = { unread: lists.unread.length, untyped: lists.untyped.length };
  const covered = readCases().flatMap(({ file, cases }) =>
    cases.map((one) => {
      const isOfIt = (line: string): boolean => line.startsWith(`§${one.section} ${one.name}, step `);
      const unread = lists.unread.filter(isOfIt).length;
      const untyped = lists.untyped.filter(isOfIt).length;
      left.unread -= unread;
      left.untyped -= untyped;
      const requests = one.steps.filter((step) => "request" in step || "walk" in step).length;
      if (!sections.some(([section]) => belongsTo(section, one.section)))
        throw new Error(`§${one.section} is unknown.`);
      // The client's answers are single ones: its walks have tests of their own.
      const walks = one.steps.filter((step) => "walk" in step).length;
      return { ...one, file, requests, unread: unread + walks, untyped };
    }),
  );
  if (left.unread + left.untyped !== 0) throw new Error("A list leaves out a request that is in no case.");
  return covered;
}

/** `yes`, `2 of 3`, `no`: of the requests of a case. */
function share(all: number, leftOut: number): string {
  if (leftOut === 0) return "yes";
  return leftOut < all ? `${all - leftOut} of ${all}` : "no";
}

function belongsTo(section: string, one: string): boolean {
  return one === section || (one.startsWith(section) && !/^[0-9.]/.test(one.slice(section.length)));
}

/** A row of § → counts. @throws Error where nothing speaks for the § */
function summaryOf(cases: readonly Covered[], [section, about]: (typeof sections)[number]): string {
  const own = cases.filter((one) => belongsTo(section, one.section));
  const told = beyond.filter(([one]) => belongsTo(section, one.replace(/^(9) rules .*/, "$1"))).length;
  if (own.length === 0 && told === 0)
    throw new Error(`§${section} has no case, and resume information is missing why.`);
  const requests = own.reduce((sum, one) => sum + one.requests, 0);
  const part = (leftOut: "unread" | "untyped"): number => requests - own.reduce((sum, one) => sum + one[leftOut], 0);
  return `| ${section} | ${about} | ${own.length} | ${requests} | ${part("unread")} | ${part("untyped")} | ${told} |`;
}

export function coverageDocument(): string {
  const cases = coveredCases();
  const known = [...new Set(cases.map((one) => one.section))].toSorted(bySection);
  const rows = known.flatMap((section) =>
    cases
      .filter((one) => one.section === section)
      .map(
        (one) =>
          `| ${section} | ${bare(one.says)} | ${one.name} (\`${one.file}\`) | ${share(one.requests, one.unread)} | ${share(one.requests, one.untyped)} |`,
      ),
  );
  return [
    "# Which sentence of the API document is checked by which case",
    "",
    "Made from `test/contract/cases/*.json` by the tests (`npx vitest run test/contract -u` writes it). Every case is driven three ways:",
    "",
    "- played raw over HTTP against the sandbox, and every answer held against the OpenAPI document that the sandbox publishes: all of them;",
    "- its answers read by the client (`client.test.ts`); what the client has no words for is listed in `client-unread.txt`;",
    "- typed at the built program, against a sandbox (`command-line.test.ts`); what nobody can type is listed in `command-line-untyped.txt`.",
    "",
    "| § | about | cases | requests played raw | of them read by the client | driven through the command line | sentences not to be checked from outside |",
    "|---|---|---|---|---|---|---|",
    ...sections.map((section) => summaryOf(cases, section)),
    "",
    "## Case by case",
    "",
    "| § | the document says | case, played raw | read by the client | typed |",
    "|---|---|---|---|---|",
    ...rows,
    "",
    "## Not to be checked from outside",
    "",
    "| § | the document says | why |",
    "|---|---|---|",
    ...beyond.map(([section, says, why]) => `| ${section} | ${bare(says)} | ${bare(why)} |`),
    "",
  ].join("\n");
}
