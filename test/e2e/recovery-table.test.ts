// The whole table: every operation, interrupted at every one of its requests and syncs, recovered in every other world. What
// reaches the service and how it ends are those of a plain recovery, or the recovery refuses, says why and changes nothing;
// then a plain one ends as it would have. (In memory, at every step: test/unit/operations/recover-dimensions.test.ts.)
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Dimension, type End, Left, type Outcome, syncsOf } from "./recovery-table-cells.ts";
import { dimensions, flags, grouped, groupsOf, isBeforeAnyEntry, variables } from "./recovery-table-dimensions.ts";
import { recordFigure } from "../support/figures.mjs";
import { operations, Table } from "./recovery-table-operations.ts";
import { isMissing } from "../support/tools.mjs";

/** Plays the dimensions of that name (a regular expression) at every end; results are added to a file, and what stands there is not played again. */
const { INTEG_TEST_DIMENSION: only, INTEG_TEST_RESULTS: results } = process.env;
const isWhole = isFull || only !== undefined;
const isTraced = !isMissing("strace");

let table: Table;
let worlds: Readonly<Record<string, Dimension>> = dimensions;
const known = new Map<string, string>();
const facts = new Map<string, string>();
const wrong: string[] = [];
let cells = 0;

interface Described {
  readonly environment: readonly { readonly name: string }[];
}

beforeAll(async () => {
  stayInThisProcess();
  if (results !== undefined && existsSync(results))
    for (const line of readFileSync(results, "utf8").split("\n").filter(Boolean)) {
      const { cell, fault, fact, is } = JSON.parse(line) as Record<"cell" | "fault" | "fact" | "is", string>;
      if (fact === undefined) known.set(cell, fault);
      else facts.set(fact, is);
    }
  table = await Table.open();
  const at = new Home();
  const { environment } = JSON.parse((await at.integ(["commands", "--json"])).stdout) as Described;
  at.remove();
  const names = environment.map(({ name }) => name);
  expect(Object.keys(variables).filter((name) => !names.includes(name))).toEqual([]);
  // Of a variable that has no row of its own nothing may come.
  worlds = { ...Object.fromEntries(names.map((name) => [name, { env: () => ({ [name]: "1" }) }])), ...dimensions };
  worlds = { ...worlds, ...groupsOf(worlds) };
});
afterAll(async () => {
  recordFigure("recovery table", { cells, wrong: wrong.length }, "built program");
  await table.close();
});

it("has every flag of recover", async () => {
  const at = new Home();
  const { stdout } = await at.spawned(["journal", "recover", "--help"]);
  at.remove();
  const long = new Set(stdout.match(/--[a-z][a-z-]+/g));
  const left = [...long].filter((name) => !(name in flags) && !others.has(name));
  expect(left).toEqual([]);
});

it.each([...isBeforeAnyEntry])("ends before there is an entry: %s", async (name) => {
  const at = table.home();
  table.gate.arm();
  const { env, refuses } = dimensions[name]!;
  const { code, stderr } = await at.integ(["journal", "recover", "1r00000000", "--yes"], { env: env?.(table, at) });
  at.remove();
  expect([code === 0, table.gate.met]).toEqual([false, []]);
  expect(stderr).toMatch(refuses!);
});

/** One is in every cell, the others do nothing else. */
const others: ReadonlySet<string> = new Set(["--yes", "--help", "--dry-run"]);

/** An end of an operation, and what it left: interrupted once more only if a cell has still to be played. */
interface Interrupted {
  readonly end: End;
  readonly left: () => Promise<Left>;
}

/**
 * The ends of one operation: at each of its requests and syncs that leaves what no other end left; in a sample at the request
 * that changes something.
 */
async function* endsOf(name: string): AsyncGenerator<Interrupted> {
  const seen = new Set([""]);
  const over = new Map<End["how"], number>();
  for (const end of await possibleEnds(name)) {
    // After three that came too late the operation has no such step any more. (Syncs are counted before.)
    if (end.how !== "killed at sync" && over.get(end.how) === 3) continue;
    let left: Left | undefined;
    const interrupt = async (): Promise<Left | undefined> => (left ??= await Left.of(table, name, { end }));
    const fingerprint = await remembered(nameOf(name, end), async () => (await interrupt())?.fingerprint ?? "");
    over.set(end.how, fingerprint === "" ? (over.get(end.how) ?? 0) + 1 : 0);
    const isNew = !seen.has(fingerprint);
    seen.add(fingerprint);
    if (isNew) yield { end, left: async () => (await interrupt())! };
    left?.remove();
  }
}

async function possibleEnds(name: string): Promise<End[]> {
  const { change } = operations[name]!;
  if (!isWhole) return [{ index: change, how: "killed after" }];
  const counted = (how: End["how"], count: number): End[] =>
    Array.from({ length: count }, (_end, index) => ({ index: index + 1, how }));
  const requests = (["killed before", "killed after", "dropped"] as const).flatMap((how) => counted(how, 20));
  if (!isTraced) return requests;
  const syncs = await remembered(`${name}, syncs`, async () => String(await syncsOf(table, name)));
  return [...requests, ...counted("killed at sync", Number(syncs))];
}

function nameOf(operation: string, { how, index }: End): string {
  return `${operation}, ${how} ${index}`;
}

/** What is found out once, and stands with the results. */
async function remembered(what: string, find: () => Promise<string>): Promise<string> {
  const before = facts.get(what);
  if (before !== undefined) return before;
  const fact = await find();
  facts.set(what, fact);
  if (results !== undefined) appendFileSync(results, `${JSON.stringify({ fact: what, is: fact })}\n`);
  return fact;
}

/**
 * What was sent is how a plain one begins, but for what it looked up instead, and nothing was revoked. (A creation that is sent
 * again under its key changes nothing.)
 */
function hasStopped(sent: readonly string[], plain: readonly string[]): boolean {
  const changing = (all: readonly string[]): string[] => all.filter((request) => !request.startsWith("GET"));
  const begins = changing(plain);
  return changing(sent).every((request, index) => request === begins[index] && !request.startsWith("DELETE"));
}

function faultsOf(
  { first, second }: { readonly first: Outcome; readonly second: Outcome | undefined },
  plain: Outcome,
  { refuses, doubts, isElsewhere, undo }: Dimension,
): string[] {
  const faults = [...plain.broken, ...first.broken];
  // What takes a profile away takes its secret too.
  const withProfiles = undo === undefined ? plain : { ...plain, secrets: first.secrets };
  const asPlain = faultsBetween(first, isElsewhere === true ? sentElsewhere(first, plain) : withProfiles);
  if (asPlain.length === 0) return faults;
  const hasRefused = first.code !== 0 && hasStopped(first.wire, plain.wire);
  if (refuses !== undefined && hasRefused) {
    if (!refuses.test(first.stderr)) faults.push(`refused, and does not say why: ${first.stderr}`);
    // What was found out before it stopped is not asked for again: of the wire only its end is compared.
    const after = second && faultsBetween({ ...second, wire: plain.wire }, plain);
    faults.push(...(after ?? []).map((fault) => `then a plain one: ${fault}`));
    return faults;
  }
  if (doubts?.test(first.stderr) && hasRefused) return faults;
  return [...faults, ...asPlain, first.stderr];
}

/** As a plain one, but for the secret: it works at the place that was asked for now. (A format may put a name or a newline to it.) */
function sentElsewhere(got: Outcome, plain: Outcome): Outcome {
  const has = got.secrets.some((text) => text.startsWith("another "));
  return has && got.live === plain.live ? { ...plain, secrets: got.secrets } : plain;
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
  if (got.secrets.join() !== plain.secrets.join())
    faults.push(`${got.secrets.join()} instead of ${plain.secrets.join()}`);
  return faults;
}

/** Plays a cell unless its result is known. */
async function play(cell: string, run: () => Promise<string[]>): Promise<void> {
  cells += 1;
  let fault = known.get(cell);
  if (fault === undefined) {
    fault = (await run()).join("\n  ");
    if (results !== undefined) appendFileSync(results, `${JSON.stringify({ cell, fault })}\n`);
  }
  if (fault === "") return;
  wrong.push(`${cell}: ${fault}`);
  if (isFull) console.log(wrong.at(-1));
}

/** Every world of one end. A sample: all dimensions, each with another operation. */
async function playEnd(name: string, { end, left: interrupt, from }: Played): Promise<void> {
  let found: Outcome | undefined;
  const plainly = async (left: Left): Promise<Outcome> => (found ??= (await left.recover()).first);
  const isTheChange = end.how !== "killed at sync" && end.index === operations[name]!.change;
  let number = from;
  for (const [what, dimension] of Object.entries(worlds)) {
    number += 1;
    if (only === undefined ? !isFull && number % 13 !== 0 : !new RegExp(`^(?:${only})$`).test(what)) continue;
    if (isWhole && (grouped.has(what) || isBeforeAnyEntry.has(what)) && !isTheChange) continue;
    await play(`${nameOf(name, end)}, ${what}`, async () => {
      const left = await interrupt();
      const plain = await plainly(left);
      const shift = dimension.firstClock;
      // Another clock looks for the keychain again, which syncs: the same number is another step.
      const isOther = shift !== undefined && end.how === "killed at sync";
      const its = shift === undefined ? left : isOther ? undefined : await Left.of(table, name, { end, shift });
      if (its === undefined) return [];
      let faults = faultsOf(await its.recover(dimension), plain, dimension);
      // Some doubts end with time alone, for a plain recovery too.
      if (faults.length > 0) faults = faultsOf(await its.recover(dimension), (await left.recover()).first, dimension);
      if (its !== left) its.remove();
      return faults;
    });
  }
}

interface Played extends Interrupted {
  readonly from: number;
}

describe.each(Object.keys(operations).map((name, index) => [name, index] as const))("%s", (name, index) => {
  it("is recovered as it was begun, in every world", async () => {
    let played = 0;
    for await (const { end, left } of endsOf(name)) {
      await playEnd(name, { end, left, from: index });
      played += 1;
    }
    expect(played).toBeGreaterThan(0);
    expect(wrong.filter((text) => text.startsWith(`${name},`))).toEqual([]);
  }, 7_200_000);
});
