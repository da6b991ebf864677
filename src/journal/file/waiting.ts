// Owns: waiting for a lock that a living process holds: how long, how often to look, and who is named in the end.
// Must not know: what is locked, records.
import { Failure } from "../../errors.ts";
import { nothingSent } from "./faults.ts";
import type { LockMeans } from "../../disk/process-lock.ts";
import { describeOwner, type LockOwner } from "../../disk/lock-owner.ts";

const shortestMs = 1;
const longestMs = 40;

/** Milliseconds until the next look: doubling, with chance in it so that waiters do not march in step. */
function pauseMs(round: number): number {
  const most = Math.min(longestMs, shortestMs * 2 ** Math.min(round, 6));
  return most / 2 + (Math.random() * most) / 2;
}

/** What one look came to: done with a value, or somebody has a lock that is wanted. */
export type Look<T> =
  | { readonly done: true; readonly value: T }
  | { readonly done: false; readonly owner: LockOwner | undefined; readonly what: string };

interface Patience {
  readonly means: LockMeans;
  /** Milliseconds before the holder is named. */
  readonly waitMs: number;
  readonly meaning?: string;
}

function timedOut(look: { owner: LockOwner | undefined; what: string }, patience: Patience): Failure {
  const { owner } = look;
  const holder = describeOwner(owner, patience.means.self);
  const seconds = Math.round(patience.waitMs / 100) / 10;
  const what = look.what.charAt(0).toUpperCase() + look.what.slice(1);
  return new Failure("failed", `${what} is in use by ${holder}; it was waited for ${seconds} s.`, {
    meaning: patience.meaning ?? nothingSent,
    hint:
      owner === undefined
        ? "run the command again later"
        : `wait for process ${owner.pid}, or end it, then run the command again`,
  });
}

/** Looks again and again until it is done or the patience is at its end. Other work of this process goes on meanwhile. */
export async function waitUntil<T>(look: () => Look<T>, patience: Patience): Promise<T> {
  const end = performance.now() + patience.waitMs;
  for (let round = 0; ; round += 1) {
    const seen = look();
    if (seen.done) return seen.value;
    const left = end - performance.now();
    if (left <= 0) throw timedOut(seen, patience);
    await new Promise((resolve) => setTimeout(resolve, Math.min(left, pauseMs(round))));
  }
}

/** The same for a caller that cannot wait otherwise: the thread sleeps, for the milliseconds that an append takes. */
export function waitUntilSync<T>(look: () => Look<T>, patience: Patience): T {
  const end = performance.now() + patience.waitMs;
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; ; round += 1) {
    const seen = look();
    if (seen.done) return seen.value;
    const left = end - performance.now();
    if (left <= 0) throw timedOut(seen, patience);
    Atomics.wait(never, 0, 0, Math.min(left, pauseMs(round)));
  }
}
