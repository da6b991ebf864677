// Owns: whether a request of a change goes out again after this answer, and when.
// Must not know: what was asked for, what an answer means for the journal.
import { type Attempt, retryAfterOf } from "../api/http/attempt.ts";
import type { NetworkErrorReason } from "../api/http/network-error.ts";
import { nextDelay } from "../api/http/retry.ts";
import type { Workbench } from "./workbench.ts";

/**
 * True where trying the same again may help: not for a name, a certificate or a proxy that will still be wrong, nor where
 * there is nothing to send.
 */
function mayPass(reason: NetworkErrorReason | "status"): boolean {
  return !["dns", "tls", "proxy", "redirect", "interrupted", "unsendable"].includes(reason);
}

/**
 * Milliseconds until the same request goes out again, or null where it does not: `--retry-for` is over, or no repetition
 * can help. Whether repeating is safe at all is the caller's to know.
 * @param at `attempt` counts from 1; `startedAt` is the clock's time of the first one
 */
export function delayBeforeNext(
  bench: Workbench,
  answer: Attempt<unknown>,
  at: { readonly attempt: number; readonly startedAt: number },
): number | null {
  if (answer.kind === "refused" && answer.status !== 429) return null;
  if ((answer.kind === "unknown" || answer.kind === "not_sent") && !mayPass(answer.reason)) return null;
  return nextDelay({
    attempt: at.attempt,
    elapsedMs: bench.clock.now() - at.startedAt,
    retryForMs: bench.retryForMs,
    retryAfterSeconds: retryAfterOf(answer),
    random: () => bench.clock.random(),
  });
}

/** Waits, and tells for what; Ctrl-C ends it with a Failure. */
export async function wait(bench: Workbench, ms: number, label: string): Promise<void> {
  const done = bench.tell.waiting(label, ms);
  try {
    await bench.clock.sleep(ms);
  } finally {
    done();
  }
}
