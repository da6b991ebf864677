// Sorted rows of an index: out of any order, in any number of parts.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cursorFrom, merge, type Rows, rowsOfPage, Table, valuesOf } from "../../../../src/journal/file/index/rows.ts";
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
