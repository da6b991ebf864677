// Limits waits of `timers/promises` to 2 ms, for test files that run thousands of commands in this process.
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";

const sleep = timers.setTimeout;
const longestMs = 2;

export function shortenWaits(): void {
  beforeAll(() => {
    timers.setTimeout = (ms, ...more) => sleep(Math.min(ms ?? 0, longestMs), ...more);
    syncBuiltinESMExports();
  });
  afterAll(() => {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  });
}
