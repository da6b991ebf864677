// How often rows are looked at: a page once, and a million rows by a few pages.
import { describe, expect, it } from "vitest";
import {
  Cursor,
  cursorAtEnd,
  cursorFrom,
  merge,
  type Rows,
  rowsIn,
  rowsOfPage,
  Table,
  valuesOf,
} from "../../../../../src/journal/file/index/rows.ts";
import { counted, someOf } from "./small-journal.ts";

type Pair = readonly [number, number];

const rowsOf = (pairs: readonly Pair[]): Rows => rowsIn(Float64Array.from(pairs.flat()));
const even = (count: number): Pair[] => Array.from({ length: count }, (_, row) => [2 * row, row]);

function* pairsFrom(cursor: Cursor, by: 1 | -1): Iterable<Pair> {
  for (; cursor.isAt; cursor.move(by)) yield [cursor.key, cursor.value];
}

describe("a cursor", () => {
  it.each([
    [0, []],
    [1, [0]],
    [rowsOfPage, [0]],
    [rowsOfPage + 1, [0, 1]],
    [3 * rowsOfPage, [0, 1, 2]],
  ])("comes past %i rows in both directions and asks for each page once", (count, pages) => {
    const rows = counted(rowsOf(even(count)), 10_000);
    expect(someOf(pairsFrom(new Cursor(rows, 0), 1), 2000)).toEqual(even(count));
    expect(rows.pages).toEqual(pages);
    expect(someOf(pairsFrom(cursorAtEnd(rows), -1), 2000)).toEqual(even(count).toReversed());
    expect(rows.pages).toEqual([...pages, ...pages.toReversed()]);
  });

  it("is at no row before the first and behind the last", () => {
    const rows = rowsOf(even(3));
    expect([-1, 0, 2, 3].map((at) => new Cursor(rows, at).isAt)).toEqual([false, true, true, false]);
  });

  it("is found with a page for each doubling", () => {
    const count = 32 * rowsOfPage;
    for (const wanted of [0, 1, 2, 2 * rowsOfPage, 17_001, 2 * count - 2, 2 * count]) {
      const rows = counted(rowsOf(even(count)), 40);
      const cursor = cursorFrom(rows, wanted);
      expect(rows.pages.length).toBeLessThanOrEqual(7);
      expect(cursor.isAt ? cursor.key : undefined).toBe(wanted > 2 * count - 2 ? undefined : 2 * Math.ceil(wanted / 2));
    }
    const none = counted(rowsOf([]));
    expect([cursorFrom(none, 5).isAt, none.pages]).toEqual([false, []]);
    const below = counted(rowsOf(even(10)));
    expect([cursorFrom(below, 0).key, below.pages]).toEqual([0, [0, 0]]);
  });

  it("gives the values of a key, and looks no further", () => {
    const pairs: Pair[] = [...even(300), [700, 1], [700, 2], [700, 3], [701, 4]];
    const looked = (key: number): unknown => valuesOf(counted(rowsOf(pairs), 200), key);
    expect([700, 701, 598, 699, 0, 800].map(looked)).toEqual([[1, 2, 3], [4], [299], [], [0], []]);
  });
});

describe("parts that become one", () => {
  const merged = (...parts: readonly Rows[]): Pair[] => {
    const taken: Pair[] = [];
    merge(
      parts.map((rows) => counted(rows)),
      (key, value) => {
        if (taken.push([key, value]) > 1000) throw new Error("taken without end");
      },
    );
    return taken;
  };
  it.each<[string, readonly (readonly Pair[])[], readonly Pair[]]>([
    ["none", [], []],
    ["an empty one", [[]], []],
    ["one row", [[[1, 2]]], [[1, 2]]],
    ["the same row twice", [[[1, 2]], [[1, 2]]], [[1, 2]]],
    [
      "one behind the other",
      [[[3, 1]], [[1, 2]]],
      [
        [1, 2],
        [3, 1],
      ],
    ],
    [
      "one key with several values",
      [
        [
          [1, 2],
          [1, 4],
        ],
        [
          [1, 1],
          [1, 3],
        ],
      ],
      [
        [1, 1],
        [1, 2],
        [1, 3],
        [1, 4],
      ],
    ],
  ])("%s", (_what, parts, all) => {
    expect(merged(...parts.map(rowsOf))).toEqual(all);
  });

  it.each([2, 3, 4, 5, 8, 13])("%i of them, some longer than others", (count) => {
    const all = even(200);
    const parts = Array.from({ length: count }, (_, part) =>
      rowsOf(all.filter(([, value]) => (value * value) % (count + part) === part % 3)),
    );
    const expected = all.filter(([, value]) => parts.some((_, part) => (value * value) % (count + part) === part % 3));
    expect(merged(...parts)).toEqual(expected);
  });
});

describe("a table", () => {
  const tableOf = (pairs: readonly Pair[]): Table => {
    const table = new Table();
    for (const [key, value] of pairs) table.add(key, value);
    return table;
  };
  it.each([0, 1, 2, 15, 16, 17, 32, 33, rowsOfPage, rowsOfPage + 1])("of %i rows has them in its pages", (count) => {
    const table = tableOf(even(count));
    const last = Math.max(0, Math.ceil(count / rowsOfPage) - 1);
    expect([table.count, [...table.cells()]]).toEqual([count, even(count).flat()]);
    expect([...table.page(last)]).toEqual(
      even(count)
        .slice(last * rowsOfPage)
        .flat(),
    );
    expect(table.page(last + 1)).toHaveLength(0);
  });

  it("is the same however its rows were added", () => {
    const pairs = even(40).concat([[10, 9]]);
    const sorted = [...even(40).slice(0, 6), [10, 9] as const, ...even(40).slice(6)];
    for (const order of [pairs, pairs.toReversed(), [...pairs, ...pairs], [...sorted, ...sorted.toReversed()]]) {
      const table = tableOf(order);
      expect([table.count, [...table.cells()]]).toEqual([41, sorted.flat()]);
    }
  });
});
