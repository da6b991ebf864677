// Thousands of commands in this process wait a moment between two tries: not in real time, for a file of tests.
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";

const sleep = timers.setTimeout;
const longestMs = 2;

export function waitNoRealTime(): void {
  beforeAll(() => {
    timers.setTimeout = (ms, ...more) => sleep(Math.min(ms ?? 0, longestMs), ...more);
    syncBuiltinESMExports();
  });
  afterAll(() => {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  });
}
