// Chooses the cases of a run: `npm run test:full` has all of them, any other run a sample.
export const isFull = process.env.INTEG_TEST_FULL === "1";

/** The part of a long run that `INTEG_TEST_PART` names: `2/6` is every sixth case, from the second on. The default is all. */
export function partOf<T>(all: readonly T[]): readonly T[] {
  const { INTEG_TEST_PART: named } = process.env;
  if (named === undefined) return all;
  const [part = 0, parts = 0] = named.split("/").map(Number);
  if (!(part >= 1 && part <= parts)) throw new Error(`INTEG_TEST_PART is like 2/6, not ${named}`);
  return all.filter((_, index) => index % parts === part - 1);
}

/** @param count the number of cases in a full run; a sample has a quarter of them */
export function sampled(count: number): number {
  return isFull ? count : Math.ceil(count / 4);
}
