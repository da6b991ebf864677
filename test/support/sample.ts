// How many cases a run has: `npm run test:full` has all of them, any other run a quick sample.
export const isFull = process.env.INTEG_TEST_FULL === "1";

/**
 * The part of a long run that `INTEG_TEST_PART` names, such as `2/6`: every sixth case, from the second on; all cases by
 * default. Together the parts of a run have each case once.
 */
export function partOf<T>(all: readonly T[]): readonly T[] {
  const { INTEG_TEST_PART: named } = process.env;
  if (named === undefined) return all;
  const [part = 0, parts = 0] = named.split("/").map(Number);
  if (!(part >= 1 && part <= parts)) throw new Error(`INTEG_TEST_PART is like 2/6, not ${named}`);
  return all.filter((_, index) => index % parts === part - 1);
}

/** @param count how many a full run plays; a sample plays a quarter */
export function sampled(count: number): number {
  return isFull ? count : Math.ceil(count / 4);
}
