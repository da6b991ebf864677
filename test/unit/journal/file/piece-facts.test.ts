// What the lines of a piece say by themselves, compared with what each of them says when it is parsed.
import { expect, test } from "vitest";
import type { Entry } from "../../../../src/journal/entry.ts";
import { rowsIn, valuesOf } from "../../../../src/journal/file/index/rows.ts";
import { factsOf, type SentFacts } from "../../../../src/journal/file/piece-facts.ts";
import { digestOfName, keyName, namesOf, numberOf } from "../../../../src/journal/lookup.ts";
import { headerLine, recordHash, seal, sumIn } from "../../../../src/journal/record.ts";
import { longJournal } from "../../../support/long-journal.ts";

const all = longJournal(760, { padding: "Ådå" });
const unsettledStates = new Set(["open", "unknown", "pending", "waiting", "secret_lost", "undelivered"]);

interface Parsed {
  readonly intent: { readonly id: string; readonly [name: string]: unknown };
  readonly now: { readonly state: string; readonly updated_at: string };
  readonly prev?: string;
  readonly n: number;
  readonly after: string;
}

const parsed = (line: string): Parsed => JSON.parse(line) as Parsed;
const contentOf = (line: string): string =>
  line
    .trimEnd()
    .slice(line.indexOf('"v":'))
    .replace(/(,"after":"[0-9a-f]{16}")?\}$/, "");

/** With a checksum that fits. */
function edited(line: string, change: (content: string) => string, after = parsed(line).after): string {
  return seal(change(contentOf(line)), after);
}

function pairs(cells: SentFacts["table"]): (readonly [number, number])[] {
  return Array.from({ length: cells.length / 2 }, (_, row) => [cells[2 * row]!, cells[2 * row + 1]!] as const);
}

/** What is said of lines that begin at that offset, from each as it is parsed. */
function expected(lines: readonly string[], offset: number, isVerified: boolean): object {
  const places: { offset: number; length: number; line: number; text: string; record: Parsed }[] = [];
  let at = offset;
  for (const [line, text] of lines.entries()) {
    const length = Buffer.byteLength(text) - 1;
    if (length > 0) places.push({ offset: at, length, line, text, record: parsed(text) });
    at += length + 1;
  }
  const begun = new Map<string, typeof places>();
  for (const place of places) {
    const { id } = place.record.intent;
    if (place.record.n === 1) begun.set(id, []);
    begun.get(id)?.push(place);
  }
  const newest = [...begun.values()].map((each) => each.at(-1)!.record);
  const entries = newest.map(({ intent, now }) => ({ ...intent, ...now }) as unknown as Entry);
  const ids = [...begun.keys()].sort();
  const placeOf = ({ offset, length, line }: (typeof places)[number]) => ({ offset, length, line });
  const strays = places.filter(({ record }) => !begun.has(record.intent.id));
  const gaps = [...begun].flatMap(([id, each]) => {
    const gap = each.findIndex(({ record }, step) => {
      const before = each[step - 1];
      return before !== undefined && record.prev !== recordHash(contentOf(before.text));
    });
    return gap < 0 ? [] : [[id, gap] as const];
  });
  const others = (entry: Entry): string[] =>
    [entry.parent, entry.replaces, entry.replaced_by].filter((other) => other !== null);
  return {
    bytes: at - offset,
    lines: lines.length,
    records: places.length,
    sums: isVerified ? places.map(({ text }) => sumIn(text)).join("") : "",
    after: places[0]!.record.after,
    firstLine: places[0]!.line,
    lastSum: sumIn(places.at(-1)!.text),
    lastPlace: placeOf(places.at(-1)!),
    broken: places
      .filter(({ record }, index) => index > 0 && record.after !== sumIn(places[index - 1]!.text))
      .map(({ line }) => line),
    count: begun.size,
    first: Math.min(...ids.map(numberOf)),
    last: Math.max(0, ...ids.map(numberOf)),
    updated:
      entries
        .map(({ updated_at }) => updated_at)
        .sort()
        .at(-1) ?? "",
    newest: ids.at(-1) ?? "",
    unsettled: [...begun].filter(([, each]) => unsettledStates.has(each.at(-1)!.record.now.state)).map(([id]) => id),
    strays: strays.map(placeOf),
    gaps: new Map(isVerified ? gaps : []),
    named: new Map(
      isVerified ? entries.filter((one) => others(one).length > 0).map((one) => [one.id, others(one)]) : [],
    ),
    keys: isVerified ? entries.map((one) => digestOfName(keyName(one.base_url, one.idempotency_key!))) : [],
    table: [...begun].flatMap(([id, each]) => each.map((place) => [numberOf(id), place.offset])),
    names: isVerified
      ? []
      : entries.flatMap((one) => namesOf(one).map((name) => [digestOfName(name), numberOf(one.id)])),
  };
}

const inOrder = (rows: readonly (readonly number[])[]): unknown =>
  rows.toSorted((a, b) => a[0]! - b[0]! || a[1]! - b[1]!);

function said(lines: readonly string[], offset: number, isVerified: boolean): unknown {
  const facts = factsOf(Buffer.from(lines.join("")), { offset, isVerified });
  return facts && { ...facts, table: pairs(facts.table), names: pairs(facts.names), keys: [...facts.keys] };
}

function isAsExpected(lines: readonly string[], offset = 4096): void {
  for (const isVerified of [true, false]) {
    const { table, names, ...rest } = expected(lines, offset, isVerified) as Record<string, number[][]>;
    expect(said(lines, offset, isVerified)).toEqual({ ...rest, table: inOrder(table!), names: inOrder(names!) });
  }
}

/** Of an entry that begins, goes on and ends within the piece. */
const piece = all.slice(10, 70);
const last = piece.findIndex((line, at) => {
  const [first, { n, intent }] = [piece[at - 2], parsed(line)];
  return n === 3 && first !== undefined && parsed(first).n === 1 && parsed(first).intent.id === intent.id;
});

test.each<[string, (lines: string[]) => string[]]>([
  ["as they are", (lines) => lines],
  ["a single one", (lines) => lines.filter((line) => parsed(line).n === 1).slice(0, 1)],
  ["entries that began before alone", (lines) => lines.filter((line) => parsed(line).n > 1).slice(0, 1)],
  ["blank lines between them", (lines) => ["\n", ...lines.flatMap((line) => [line, "\n"])]],
  ["one removed", (lines) => lines.toSpliced(last, 1)],
  ["the one before the last step removed", (lines) => lines.toSpliced(last - 1, 1)],
  ["two in another order", (lines) => lines.toSpliced(last, 2, lines[last + 1]!, lines[last]!)],
  [
    "one edited",
    (lines) =>
      lines.with(
        last,
        edited(lines[last]!, (text) => text.replace('"ada"', '"eve"')),
      ),
  ],
  [
    "a step in the middle edited",
    (lines) =>
      lines.with(
        last - 1,
        edited(lines[last - 1]!, (text) => text.replace('"ada"', '"eve"')),
      ),
  ],
  [
    "two steps that follow none",
    (lines) =>
      lines.map((line, at) =>
        at === last || at === last - 1 ? edited(line, (text) => text.replace(/"prev":"../, '"prev":"ff')) : line,
      ),
  ],
  [
    "one that names what replaced it",
    (lines) =>
      lines.with(
        last,
        edited(lines[last]!, (text) => text.replace('"replaced_by":null', '"replaced_by":"0123456789"')),
      ),
  ],
])("lines are summarized: %s", (_what, change) => {
  isAsExpected(change([...piece]));
});

test("lines of every part of a journal are summarized", () => {
  for (const [from, to] of [
    [1, 400],
    [2, 3],
    [640, 980],
    [1, all.length],
  ] as const)
    isAsExpected(all.slice(from, to), from * 1000);
});

test("what is summarized is found by key and by name", () => {
  const facts = factsOf(Buffer.from(piece.join("")), { offset: 0, isVerified: false })!;
  const { intent } = parsed(piece.find((line) => parsed(line).n === 1)!);
  const name = keyName(String(intent.base_url), String(intent.idempotency_key));
  expect(valuesOf(rowsIn(facts.names), digestOfName(name))).toEqual([numberOf(intent.id)]);
  expect(valuesOf(rowsIn(facts.table), numberOf(intent.id))[0]).toBe(
    Buffer.byteLength(
      piece
        .slice(
          0,
          piece.findIndex((line) => parsed(line).intent.id === intent.id),
        )
        .join(""),
    ),
  );
});

const change = (at: number, how: (content: string) => string) => (lines: string[]) =>
  lines.with(at, edited(lines[at]!, how));
const firstOne = piece.findIndex((line) => parsed(line).n === 1);

test.each<[string, (lines: string[]) => string[]]>([
  ["none", () => []],
  ["blank ones", () => ["\n", "\n"]],
  ["an end without a newline", (lines) => [...lines.slice(0, -1), lines.at(-1)!.trimEnd()]],
  ["damage", (lines) => lines.with(last, lines[last]!.replace('"now"', '"n0w"'))],
  ["a header", (lines) => lines.toSpliced(last, 0, headerLine({ file: "x", createdAt: "2026-01-01" }))],
  ["one of an earlier version", change(last, (text) => text.replace('"v":2', '"v":1'))],
  ["one of a newer version", change(last, (text) => text.replace('"v":2', '"v":9'))],
  ["one that names none before it", (lines) => lines.with(last, seal(contentOf(lines[last]!)))],
  ["a first one without a number", change(firstOne, (text) => text.replace(/,"n":\d+$/, ""))],
  ["one without a number", change(last, (text) => text.replace(/,"n":\d+$/, ""))],
  [
    "a first one that follows another",
    change(firstOne, (text) => text.replace(/,"n":1$/, `,"prev":"${"0".repeat(64)}","n":1`)),
  ],
  ["an id of another kind", change(firstOne, (text) => text.replace(/"id":"\w+"/, '"id":"UPPER"'))],
  ["a first one behind its second", (lines) => lines.toSpliced(last - 2, 2, lines[last - 1]!, lines[last - 2]!)],
  ["a step repeated", (lines) => lines.toSpliced(last, 0, lines[last]!)],
  ["a number that goes back", change(last, (text) => text.replace(/,"n":3$/, ',"n":2'))],
  ["another intent of the same entry", change(last, (text) => text.replace('"method":"POST"', '"method":"PUT"'))],
  ["an entry that is none", change(last, (text) => text.replace('"attempts":', '"attempt":'))],
])("lines are read with what is before them: %s", (_what, made) => {
  const lines = made([...piece]);
  for (const isVerified of [true, false]) expect(said(lines, 0, isVerified)).toBeUndefined();
});
