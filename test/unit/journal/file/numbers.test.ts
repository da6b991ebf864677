// Numbers by the million: which of them came more than once.
import { expect, it } from "vitest";
import { Numbers } from "../../../../src/journal/file/numbers.ts";

function repeatedIn(values: readonly number[]): number[] {
  const numbers = new Numbers();
  for (const value of values) numbers.add(value);
  return [...numbers.repeated()];
}

it.each<[string, number[], number[]]>([
  ["none of none", [], []],
  ["none of one", [7], []],
  ["none of the zeros that were never added", [0], []],
  ["the first of all", [3, 5, 3], [3]],
  ["the last of all", [9, 1, 9], [9]],
  ["each of them once, in order", [4, 2, 4, 2, 2, 8], [2, 4]],
  ["neighbours are not the same", [2 ** 52, 2 ** 52 + 1], []],
])("%s", (_, values, repeated) => {
  expect(repeatedIn(values)).toEqual(repeated);
});

it("none is lost where room for more is made", () => {
  for (const count of [1023, 1024, 1025, 2047, 2048, 2049, 5000]) {
    const values = Array.from({ length: count }, (_, at) => at + 1);
    expect(repeatedIn(values)).toEqual([]);
    expect(repeatedIn([...values, 1, count])).toEqual([1, count].filter((one, at, all) => all.indexOf(one) === at));
  }
});
