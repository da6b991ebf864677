// How much a run tries: `npm run test:full` everything, any other run a sample that keeps the inner loop short.
export const isFull = process.env.INTEG_TEST_FULL === "1";

/** @param count how many a full run tries; a sample tries a quarter */
export function sampled(count: number): number {
  return isFull ? count : Math.ceil(count / 4);
}
