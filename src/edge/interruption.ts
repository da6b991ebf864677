// Ctrl-C, SIGTERM and SIGHUP (a dropped SSH session) interrupt the clock that commands use.
import { setMaxListeners } from "node:events";
import { closeSync, fstatSync, openSync } from "node:fs";
import { hrtime } from "node:process";
import { isatty } from "node:tty";
import type { Clock } from "../operations/workbench.ts";
import { Failure } from "../errors.ts";

/** How long work that must finish may continue after the first signal. */
const graceMs = 5_000;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Node fires longer timers immediately. */
const longestTimerMs = 2 ** 31 - 1;

export interface Interruption {
  readonly clock: Clock;
  /**
   * Aborts connections at the first signal; while work must finish (`finishing`), only after the grace period or at the
   * second signal.
   */
  readonly cut: AbortSignal;
  release(): void;
}

/** `onWait` is called if the first signal arrives during work that must finish. */
export function listenForInterruption(process: NodeJS.Process, onWait: () => void): Interruption {
  const stop = new AbortController();
  const cut = new AbortController();
  // Removes Node's limit on listeners, because every concurrent request and wait adds one.
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
  process.off("exit", replaceClosedTerminals).on("exit", replaceClosedTerminals);
  return {
    cut: cut.signal,
    clock: {
      now: () => Date.now(),
      // Loading `performance` would take time.
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

/**
 * At its exit, Node restores the modes of the terminals, and aborts if a terminal was closed. A character device that
 * is not an open terminal becomes `/dev/null`; other descriptors stay unchanged.
 */
function replaceClosedTerminals(): void {
  for (const fd of [0, 1, 2]) {
    try {
      if (isatty(fd) || !fstatSync(fd).isCharacterDevice()) continue;
      closeSync(fd);
      openSync("/dev/null", "r+");
    } catch {
      // The descriptor was closed before.
    }
  }
}

/** A timer has a maximum, so a long sleep consists of parts. On abort, the sleep rejects with the signal's reason. */
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
