// Owns: when the same request may be sent again (§8, §4.2). Pure: time and chance are handed in.
// Must not know: how a wait is waited, what the request was.
import type { Attempt } from "./attempt.ts";

/** The longest wait before the second attempt; it doubles with each further one. */
const firstCapMs = 500;
/** No wait of our own is longer. `Retry-After` may ask for more. */
const capMs = 30_000;

export interface RetryState {
  /** How many attempts were made, from 1. */
  readonly attempt: number;
  /** Since the first attempt began. */
  readonly elapsedMs: number;
  /** How long to keep retrying altogether; 0 is one attempt. */
  readonly retryForMs: number;
  readonly retryAfterSeconds?: number;
  /** 0 ≤ x < 1 */
  readonly random: () => number;
}

/**
 * The wait before the next attempt: backoff with full jitter, `Retry-After` its floor.
 * @returns milliseconds; `null` where the wait does not fit into `retryForMs`: it is never shortened.
 * It may exceed 2^31 − 1, where `setTimeout` fires at once: the sleeper has to wait in parts.
 */
export function nextDelay({ attempt, elapsedMs, retryForMs, retryAfterSeconds, random }: RetryState): number | null {
  if (retryForMs <= 0) return null;
  const jitterMs = Math.floor(random() * Math.min(capMs, firstCapMs * 2 ** Math.min(attempt - 1, 30)));
  const delayMs = Math.max(jitterMs, (retryAfterSeconds ?? 0) * 1000);
  return elapsedMs + delayMs <= retryForMs ? delayMs : null;
}

/**
 * True where sending the same read again may help: 429, 5xx, and a network that may come back. Not a name that does not
 * exist, a certificate, a proxy's no, a redirect, or an answer that breaks the contract: they will be the same again.
 */
export function mayRetryRead(attempt: Attempt<unknown>): boolean {
  if (attempt.kind === "answered") return false;
  if (attempt.kind === "refused") return attempt.status === 429;
  const { reason } = attempt;
  if (attempt.kind === "unknown") return reason === "status" || reason === "closed" || reason === "timeout";
  return attempt.temporary === true || reason === "refused" || reason === "timeout";
}
