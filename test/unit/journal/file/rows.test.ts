// Sorted rows of an index: out of any order, in any number of parts.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  cursorAtEnd,
  cursorFrom,
  merge,
  type Rows,
  rowsIn,
  rowsOfPage,
  Table,
  valuesOf,
} from "../../../../src/journal/file/index/rows.ts";
import { RowStore } from "../../../../src/journal/file/index/packed-rows.ts";
import { sampled } from "../../../support/sample.ts";

type Pair = readonly [number, number];

function tableOf(pairs: readonly Pair[]): Table {
  const table = new Table();
  for (const [key, value] of pairs) table.add(key, value);
  return table;
}

function pairsIn(rows: Rows): Pair[] {
  const pairs: Pair[] = [];
  for (const cursor = cursorFrom(rows, 0); cursor.isAt; cursor.move(1)) pairs.push([cursor.key, cursor.value]);
  return pairs;
}

/** Each different one, in order. */
function sorted(pairs: readonly Pair[]): Pair[] {
  const all = pairs.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]);
  return all.filter((pair, at) => at === 0 || pair[0] !== all[at - 1]![0] || pair[1] !== all[at - 1]![1]);
}

const pair = fc.tuple(fc.oneof(fc.nat({ max: 9 }), fc.nat({ max: 2 ** 52 })), fc.nat({ max: 2 ** 52 }));

test("rows that are kept for long are the same, however far their values are apart", () => {
  const near = fc.tuple(fc.nat({ max: 2 ** 52 }), fc.integer({ min: 2 ** 40, max: 2 ** 40 + 2 ** 32 - 1 }));
  const doubled = fc.array(fc.oneof(pair, near), { maxLength: 2 * rowsOfPage });
  const lists = fc.array(fc.oneof(fc.array(near, { maxLength: 3 * rowsOfPage }), doubled), { maxLength: 4 });
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 4 }), (all, times) => {
      const store = new RowStore();
      const tables = all.map((pairs) =>
        tableOf(
          pairs.flatMap(([key, value]) => Array.from({ length: times }, (_, more) => [key, value - more] as const)),
        ),
      );
      const kept = tables.map((table) => store.keep(table.cells()));
      for (const [place, table] of tables.entries()) {
        expect(pairsIn(kept[place]!)).toEqual(pairsIn(table));
        for (const [key] of pairsIn(table).slice(0, 20))
          expect(valuesOf(kept[place]!, key)).toEqual(valuesOf(table, key));
      }
    }),
    { numRuns: sampled(120) },
  );
});

test("a table has each row once, in order, however they were added", () => {
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 3 * rowsOfPage }), (pairs) => {
      const table = tableOf(pairs);
      expect(pairsIn(table)).toEqual(sorted(pairs));
      expect(table.count).toBe(sorted(pairs).length);
      const [key] = pairs[0] ?? [0];
      expect(valuesOf(table, key)).toEqual(
        sorted(pairs)
          .filter(([other]) => other === key)
          .map(([, value]) => value),
      );
    }),
    { numRuns: sampled(400) },
  );
});

test("many parts become one, whatever they have in common", () => {
  fc.assert(
    fc.property(fc.array(fc.array(pair, { maxLength: 20 }), { maxLength: 40 }), (parts) => {
      const taken: Pair[] = [];
      merge(parts.map(tableOf), (key, value) => void taken.push([key, value]));
      expect(taken).toEqual(sorted(parts.flat()));
    }),
    { numRuns: sampled(400) },
  );
});

const counts = [0, 1, 2, 16, 17, rowsOfPage - 1, rowsOfPage, rowsOfPage + 1, 2 * rowsOfPage, 600];
const patterns: readonly (readonly [string, (row: number) => Pair])[] = [
  ["each with its key", (row) => [10 + 2 * row, 2 ** 40 + row]],
  ["three with one key", (row) => [10 + 2 * Math.floor(row / 3), 2 ** 40 + row]],
  ["all with one key", (row) => [10, row]],
  ["with values far apart", (row) => [10 + 2 * row, row * 2 ** 33]],
];

test.each(patterns)("pages are the rows in their order, wherever they are kept: %s", (_what, pairOf) => {
  const store = new RowStore();
  for (const count of counts) {
    const pairs = Array.from({ length: count }, (_, row) => pairOf(row));
    const table = tableOf(pairs.toReversed());
    const cells = table.cells();
    expect([...cells]).toEqual(pairs.flat());
    for (const rows of [table, rowsIn(cells), store.keep(cells), new RowStore().keep(cells)]) {
      expect(rows.count).toBe(count);
      for (let page = 0; page * rowsOfPage < count; page += 1)
        expect([...rows.page(page)]).toEqual(pairs.slice(page * rowsOfPage, (page + 1) * rowsOfPage).flat());
      expect(pairsIn(rows)).toEqual(pairs);
      const end = cursorAtEnd(rows);
      expect(end.isAt).toBe(count > 0);
      if (count > 0) expect([end.key, end.value]).toEqual(pairs.at(-1));
      for (const wanted of [0, 9, 10, 11, 12, 10 + count, 2 * count + 8, 2 * count + 9]) {
        const cursor = cursorFrom(rows, wanted);
        const first = pairs.find(([key]) => key >= wanted);
        expect([count, wanted, cursor.isAt && [cursor.key, cursor.value]]).toEqual([count, wanted, first ?? false]);
      }
    }
  }
});

test("thousands of tables are kept side by side, and rows that are added twice stand once", () => {
  const store = new RowStore();
  const [near, far] = [patterns[1]![1], patterns[3]![1]];
  const tables = [near, far].map((pairOf) => {
    const pairs = Array.from({ length: 300 }, (_, row) => pairOf(row));
    expect([...tableOf([...pairs, ...pairs]).cells()]).toEqual(pairs.flat());
    return { pairs, cells: tableOf(pairs).cells() };
  });
  // More than is kept in one array.
  const kept = Array.from({ length: 400 }, (_, number) => store.keep(tables[number % 2]!.cells));
  for (const [number, rows] of kept.entries())
    if (number % 7 === 0) expect(pairsIn(rows)).toEqual(tables[number % 2]!.pairs);
});

test("parts of several pages become one, each row once", () => {
  const pairs = Array.from({ length: 700 }, (_, row): Pair => [row >> 1, row]);
  const parts = [0, 1, 2, 3, 4].map((part) =>
    tableOf(pairs.filter(([, value]) => value % 5 === part || value % 7 === 0)),
  );
  const taken: Pair[] = [];
  merge([new Table(), ...parts, rowsIn(parts[0]!.cells())], (key, value) => void taken.push([key, value]));
  expect(taken).toEqual(pairs);
});
