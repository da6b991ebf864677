// How much room rows take that are kept: packed where that is less, side by side in one array.
import { describe, expect, it } from "vitest";
import { RowStore } from "../../../../../src/journal/file/index/packed-rows.ts";
import { type Rows, rowsOfPage } from "../../../../../src/journal/file/index/rows.ts";

type Pair = readonly [number, number];
const slab = 128 * 1024;
const span = 2 ** 32;

/** Rows that cannot be packed: their page is a part of the array that they are kept in. */
const far = (rows: number): Float64Array<ArrayBuffer> =>
  Float64Array.from(Array.from({ length: rows }, (_, row) => [row, row % 2 === 0 ? 0 : span]).flat());

const isPacked = (rows: Rows): boolean => rows.page(0).buffer.byteLength < 8 * slab;
const placeOf = (rows: Rows): number => rows.page(0).byteOffset / 8;
const pairsIn = (rows: Rows): number[] =>
  Array.from({ length: Math.ceil(rows.count / rowsOfPage) }, (_, page) => [...rows.page(page)]).flat();

describe("rows are packed", () => {
  it.each<[string, readonly Pair[], number | undefined]>([
    [
      "where two have one key",
      [
        [1, 5],
        [1, 6],
        [2, 7],
      ],
      5,
    ],
    [
      "not where two of three have their own",
      [
        [1, 5],
        [2, 6],
      ],
      undefined,
    ],
    ["not where there is one", [[1, 5]], undefined],
    [
      "where all have one key",
      [
        [9, 1],
        [9, 2],
        [9, 3],
        [9, 4],
      ],
      4,
    ],
    [
      "with two keys of two rows each",
      [
        [1, 1],
        [1, 2],
        [2, 3],
        [2, 4],
      ],
      5,
    ],
    [
      "with values as far apart as can be",
      [
        [1, 7],
        [1, span + 6],
        [1, 8],
      ],
      3,
    ],
    [
      "not with values one further apart",
      [
        [1, 7],
        [1, span + 7],
        [1, 8],
      ],
      undefined,
    ],
    [
      "with high values",
      [
        [1, 2 ** 40],
        [1, 2 ** 40 + 3],
        [1, 2 ** 40 + 1],
      ],
      3,
    ],
    [
      "with key 0 and value 0",
      [
        [0, 0],
        [0, 1],
        [0, 2],
      ],
      3,
    ],
  ])("%s", (_what, pairs, length) => {
    const store = new RowStore();
    const cells = Float64Array.from(pairs.flat());
    const kept = store.keep(cells);
    expect([isPacked(kept), kept.count, pairsIn(kept)]).toEqual([length !== undefined, pairs.length, pairs.flat()]);
    // What is kept next stands right behind.
    const next = store.keep(far(3));
    expect([isPacked(next), placeOf(next)]).toEqual([false, length ?? cells.length]);
    expect([pairsIn(kept), pairsIn(next)]).toEqual([pairs.flat(), [...far(3)]]);
  });

  it.each([1, 2, rowsOfPage - 1, rowsOfPage, rowsOfPage + 1, 3 * rowsOfPage + 7])(
    "in pages, %i keys of three rows each",
    (keys) => {
      const pairs = Array.from({ length: 3 * keys }, (_, row): Pair => [10 * Math.floor(row / 3), 2 ** 41 + row]);
      const store = new RowStore();
      store.keep(far(1));
      const kept = store.keep(Float64Array.from(pairs.flat()));
      expect(isPacked(kept)).toBe(true);
      for (let page = 0; page <= Math.ceil(pairs.length / rowsOfPage); page += 1)
        expect([page, [...kept.page(page)]]).toEqual([
          page,
          pairs.slice(page * rowsOfPage, (page + 1) * rowsOfPage).flat(),
        ]);
    },
  );
});

describe("rows are side by side", () => {
  it("until the array is full, to its last place", () => {
    const store = new RowStore();
    const first = store.keep(far(10));
    const second = store.keep(far(20));
    expect([placeOf(first), placeOf(second)]).toEqual([0, 20]);
    expect(second.page(0).buffer).toBe(first.page(0).buffer);
    expect(first.page(0).buffer.byteLength).toBe(8 * slab);
    const rest = store.keep(far((slab - 60) / 2));
    expect([placeOf(rest), rest.page(0).buffer === first.page(0).buffer]).toEqual([60, true]);
    const more = store.keep(far(1));
    expect([placeOf(more), more.page(0).buffer === first.page(0).buffer]).toEqual([0, false]);
    expect(pairsIn(first)).toEqual([...far(10)]);
  });

  it("and those that do not fit into one have their own", () => {
    const store = new RowStore();
    const small = store.keep(far(1));
    const large = store.keep(far(slab / 2 + 1));
    expect(large.page(0).buffer.byteLength).toBe(8 * (slab + 2));
    expect(large.page(0).buffer).not.toBe(small.page(0).buffer);
    const next = store.keep(far(1));
    expect([placeOf(next), next.page(0).buffer.byteLength]).toEqual([0, 8 * slab]);
  });
});
