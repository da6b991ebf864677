// The table of docs/contract-coverage.md: § → cases, made from the cases.
import { readCases } from "./case.ts";

/** Sentences that no request can check, and what becomes of them. */
const beyond: readonly (readonly [section: string, says: string, why: string])[] = [
  ["1", "Domain meaning of entities and cohorts: not shown.", "nothing is stated"],
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

export function coverageDocument(): string {
  const cases = readCases().flatMap(({ file, cases }) => cases.map((one) => ({ ...one, file })));
  const sections = [...new Set(cases.map((one) => one.section))].toSorted(bySection);
  const rows = sections.flatMap((section) =>
    cases
      .filter((one) => one.section === section)
      .map((one) => `| ${section} | ${bare(one.says)} | ${one.name} (\`${one.file}\`) |`),
  );
  return [
    "# Which sentence of the API document is checked by which case",
    "",
    "Made from `test/contract/cases/*.json` by the tests (`npx vitest run test/contract -u` writes it). The cases are played raw against",
    "the sandbox, and every answer in them is held against the OpenAPI document that the sandbox publishes.",
    "",
    "| § | the document says | case |",
    "|---|---|---|",
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
