// The whole table: every operation, ended at every one of its requests, recovered in every other world. What reaches the
// service and how it ends are those of a plain recovery, or the recovery refuses, says why and changes nothing; then a plain
// one ends as it would have. (Every step between the requests, in memory: test/unit/changes/recover-dimensions.test.ts.)
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { cell, type Dimension, type End, type Outcome, operations, Table } from "./recovery-table-cells.ts";
import { dimensions, flags, variables } from "./recovery-table-dimensions.ts";
import { recordFigure } from "../support/figures.mjs";

/** Plays one dimension at every end. */
const { INTEG_TEST_DIMENSION: only } = process.env;
const isWhole = isFull || only !== undefined;

let table: Table;
let cells = 0;
const wrong: string[] = [];

let worlds: Readonly<Record<string, Dimension>> = dimensions;

beforeAll(async () => {
  table = await Table.open();
  const at = new Home();
  const { environment } = JSON.parse((await at.integ(["commands", "--json"])).stdout) as Described;
  at.remove();
  const known = environment.map(({ name }) => name);
  expect(Object.keys(variables).filter((name) => !known.includes(name))).toEqual([]);
  // Of a variable that has no row of its own nothing may come.
  worlds = { ...Object.fromEntries(known.map((name) => [name, { env: () => ({ [name]: "1" }) }])), ...dimensions };
});
afterAll(async () => {
  recordFigure("recovery table", { cells, wrong: wrong.length }, "built program");
  await table.close();
});

interface Described {
  readonly environment: readonly { readonly name: string }[];
}

it("has every flag of recover", async () => {
  const at = new Home();
  const { stdout } = await at.integ(["journal", "recover", "--help"]);
  at.remove();
  const long = new Set(stdout.match(/--[a-z][a-z-]+/g));
  const left = [...long].filter((name) => !(name in flags) && !others.has(name));
  expect(left).toEqual([]);
});

/** One is in every cell, the others do nothing else. */
const others: ReadonlySet<string> = new Set(["--yes", "--help", "--dry-run"]);

/** The ends of one operation: at each of its requests, as long as there is one; in a sample at the one that changes something. */
async function endsOf(name: string): Promise<{ end: End; plain: Outcome }[]> {
  const ends: { end: End; plain: Outcome }[] = [];
  const { change } = operations[name]!;
  const hows: End["how"][] = isWhole ? ["killed before", "killed after", "dropped"] : ["killed after"];
  const [from, to] = isWhole ? [1, 20] : [change, change];
  for (const how of hows)
    for (let index = from, none = 0; none < 3 && index <= to; index += 1) {
      const end = { index, how };
      const got = await cell(table, name, { end });
      if (got === undefined) none += 1;
      else ends.push({ end, plain: got.first });
    }
  return ends;
}

/** What was sent is how a plain one begins, and nothing was revoked. (A creation that is sent again under its key changes nothing.) */
function hasStopped(sent: readonly string[], plain: readonly string[]): boolean {
  return sent.every((request, index) => request === plain[index] && !request.startsWith("DELETE"));
}

function faultsOf(
  { first, second }: { readonly first: Outcome; readonly second: Outcome | undefined },
  plain: Outcome,
  { refuses, mayDoubt }: Dimension,
): string[] {
  const faults = [...first.broken];
  const asPlain = faultsBetween(first, plain);
  if (asPlain.length === 0) return faults;
  const hasRefused = first.code !== 0 && hasStopped(first.wire, plain.wire);
  if (refuses !== undefined && hasRefused) {
    if (!refuses.test(first.stderr)) faults.push(`refused, and does not say why: ${first.stderr}`);
    // What was found out before it stopped is not asked for again: of the wire only its end is compared.
    const after = second && faultsBetween({ ...second, wire: plain.wire }, plain);
    faults.push(...(after ?? []).map((fault) => `then a plain one: ${fault}`));
    return faults;
  }
  if (mayDoubt && hasRefused && first.stderr.length > 0) return faults;
  return [...faults, ...asPlain, first.stderr];
}

/** A replacement that could not begin is left as `refused`. */
function statesOf({ states }: Outcome): string {
  return states.filter((state) => !state.endsWith(" refused")).join();
}

function faultsBetween(got: Outcome, plain: Outcome): string[] {
  const faults: string[] = [];
  if (got.code !== plain.code) faults.push(`exit ${got.code} instead of ${plain.code}`);
  if (got.wire.join("\n") !== plain.wire.join("\n"))
    faults.push(`sent\n    ${got.wire.join("\n    ")}\n  instead of\n    ${plain.wire.join("\n    ")}`);
  if (statesOf(got) !== statesOf(plain)) faults.push(`${statesOf(got)} instead of ${statesOf(plain)}`);
  if (got.live !== plain.live) faults.push(`${got.live} work instead of ${plain.live}`);
  return faults;
}

describe.each(Object.keys(operations).map((name, index) => ({ name, index })))("$name", ({ name, index }) => {
  it("is recovered as it was begun, in every world", async () => {
    const ends = await endsOf(name);
    expect(ends.length).toBeGreaterThan(0);
    let number = index;
    for (const { end, plain } of ends)
      for (const [what, dimension] of Object.entries(worlds)) {
        number += 1;
        // A sample: all dimensions, each with another end of another operation.
        if (only === undefined ? !isFull && number % 17 !== 0 : what !== only) continue;
        const got = await cell(table, name, { end, dimension });
        cells += 1;
        const faults = got ? faultsOf(got, plain, dimension) : ["the operation came to its end"];
        if (faults.length > 0) wrong.push(`${name}, ${end.how} request ${end.index}, ${what}: ${faults.join("\n  ")}`);
        if (faults.length > 0 && isFull) console.log(wrong.at(-1));
      }
    expect(wrong.filter((text) => text.startsWith(`${name},`))).toEqual([]);
  }, 7_200_000);
});
