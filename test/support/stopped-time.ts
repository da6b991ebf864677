// Simulated time: a wait records its length, advances the time and ends immediately.
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { onTestFinished, vi } from "vitest";

/** More waits than any tested function needs. */
const mostWaits = 200;

export interface StoppedTime {
  /** The length of each wait, in milliseconds. */
  readonly waits: number[];
  /** Advances the time. */
  pass(ms: number): void;
}

/** Simulates the time until the end of the test. */
export function stopTime(): StoppedTime {
  let now = 1000;
  const waits: number[] = [];
  const monotonic = vi.spyOn(performance, "now").mockImplementation(() => now);
  const { setTimeout: sleep } = timers;
  timers.setTimeout = (async (ms = 0) => {
    if (waits.push(ms) > mostWaits) throw new Error("this waits without end");
    now += ms;
  }) as typeof sleep;
  syncBuiltinESMExports();
  onTestFinished(() => {
    monotonic.mockRestore();
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  });
  return { waits, pass: (ms) => void (now += ms) };
}
