// Owns: reading until an answer comes, a final no, or the time is up (§8). For reads only: a change has a rule of its own.
// Must not know: what is read. Time, chance and waiting are handed in.
import { Failure } from "../../errors.ts";
import { type Answered, type Attempt, retryAfterOf } from "./attempt.ts";
import { failureOf } from "./failure-of.ts";
import { mayRetryRead, nextDelay } from "./retry.ts";

export interface ReadClock {
  now(): number;
  /** Of any length: above 2^31 − 1 ms it has to wait in parts, since `setTimeout` would fire at once. */
  sleep(ms: number): Promise<void>;
}

export interface RetryReadOptions {
  /** What is read, as it stands in a sentence: `list entities`. */
  readonly what: string;
  readonly where?: string;
  readonly hint?: string;
  readonly clock: ReadClock;
  /** How long to keep retrying altogether, milliseconds; 0 is one attempt. */
  readonly retryForMs: number;
  /** 0 ≤ x < 1 */
  readonly random: () => number;
  /** No attempt is begun after it is aborted; its reason is thrown where that is a `Failure`. */
  readonly signal?: AbortSignal;
  /** Told before each wait, with what went wrong. */
  readonly onWait?: (wait: { readonly delayMs: number; readonly failure: Failure }) => void;
}

/**
 * Runs a read until it is answered.
 * @returns the answer
 * @throws Failure of the kind that `failureOf` gives the last attempt
 */
export async function retryRead<T>(read: () => Promise<Attempt<T>>, options: RetryReadOptions): Promise<Answered<T>> {
  const { clock, retryForMs, random, signal } = options;
  const startedAt = clock.now();
  for (let attempt = 1; ; attempt++) {
    throwIfAborted(signal);
    const outcome = await read();
    if (outcome.kind === "answered") return outcome;
    throwIfAborted(signal);
    const failure = failureOf(outcome, { what: options.what, where: options.where, hint: options.hint, change: false });
    const delayMs = mayRetryRead(outcome)
      ? nextDelay({
          attempt,
          elapsedMs: clock.now() - startedAt,
          retryForMs,
          retryAfterSeconds: retryAfterOf(outcome),
          random,
        })
      : null;
    if (delayMs === null) throw failure;
    options.onWait?.({ delayMs, failure });
    await clock.sleep(delayMs);
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw signal.reason instanceof Failure ? signal.reason : new Failure("interrupted", "Interrupted.");
}
