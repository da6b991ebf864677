// Ctrl-C, SIGTERM and SIGHUP (a dropped SSH session), and the clock that they cut short.
import { setMaxListeners } from "node:events";
import { hrtime } from "node:process";
import type { Clock } from "../operations/workbench.ts";
import { Failure } from "../errors.ts";

/** How long the response to a change that was already sent is waited for after the first Ctrl-C. */
const graceMs = 5_000;
/** Signals that end a change in the same orderly way. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** `setTimeout` fires immediately above this. */
const longestTimerMs = 2 ** 31 - 1;

export interface Interruption {
  readonly clock: Clock;
  /** Cuts connections: at the first signal if nothing must be waited for, else after the grace or the second signal. */
  readonly cut: AbortSignal;
  /** Stops listening for signals. */
  release(): void;
}

/**
 * @param process where signals come from
 * @param onWait called when the first signal finds work whose response is waited for
 */
export function listenForInterruption(process: NodeJS.Process, onWait: () => void): Interruption {
  const stop = new AbortController();
  const cut = new AbortController();
  // One listener for each request and wait that is under way: several pieces of work may be.
  setMaxListeners(0, stop.signal, cut.signal);
  let finishing = 0;
  let grace: NodeJS.Timeout | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) {
      cut.abort(stop.signal.reason);
      return;
    }
    const failure =
      signal === "SIGINT" ? new Failure("interrupted", "Interrupted.") : new Failure("terminated", "Terminated.");
    stop.abort(failure);
    if (finishing === 0) return cut.abort(failure);
    grace = setTimeout(() => cut.abort(failure), graceMs);
    onWait();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return {
    cut: cut.signal,
    clock: {
      now: () => Date.now(),
      // `performance` would load ten parts of Node for this one number.
      elapsed: () => Number(hrtime.bigint()) / 1e6,
      random: () => Math.random(),
      sleep: (ms) => sleep(ms, stop.signal),
      interruption: stop.signal,
      finishing: async (work) => {
        finishing += 1;
        try {
          return await work();
        } finally {
          finishing -= 1;
        }
      },
    },
    release: () => {
      clearTimeout(grace);
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}

/** Sleeps any length in parts that a timer can hold; rejects with the signal's reason when it is aborted. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0; left -= longestTimerMs) await sleepPart(Math.min(left, longestTimerMs), signal);
}

function sleepPart(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Failure);
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Failure);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal.addEventListener("abort", aborted, { once: true });
  });
}
