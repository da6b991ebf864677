// Simulates time: a wait records its length, advances the clock and ends immediately.
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { onTestFinished, vi } from "vitest";

/** More waits than any tested function needs. */
const maxWaits = 200;

export interface StoppedTime {
  readonly waits: number[];
  pass(ms: number): void;
}

export function stopTime(): StoppedTime {
  let now = 1000;
  const waits: number[] = [];
  const monotonic = vi.spyOn(performance, "now").mockImplementation(() => now);
  const { setTimeout: sleep } = timers;
  timers.setTimeout = (async (ms = 0) => {
    if (waits.push(ms) > maxWaits) throw new Error("this waits without end");
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
