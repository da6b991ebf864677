// Owns: how a command reads one thing from the service: retried within the time the person gave, failing in words.
import type { Attempt } from "../api/attempt.ts";
import type { Context } from "../context.ts";

/**
 * @param what the action in words, for the failure: "get OAuth client"
 * @param attempt one exchange; repeated where that may help
 */
export async function read<T>(
  context: Context,
  what: string,
  attempt: () => Promise<Attempt<T>>,
): Promise<Extract<Attempt<T>, { kind: "answered" }>> {
  const { retryRead } = await import("../api/retry-read.ts");
  const progress = context.output.progress(what);
  try {
    return await retryRead(attempt, {
      what,
      where: await whereOf(context),
      retryForMs: context.settings.retryForMs,
      clock: context.clock,
      random: () => context.clock.random(),
      signal: context.clock.interruption,
      onWait: ({ delayMs, failure }) => void context.output.countdown(failure.message, delayMs),
    });
  } finally {
    progress.done();
  }
}

/** Under which profile it happened. */
export async function whereOf(context: Context): Promise<string> {
  const profile = await context.profiles.active();
  return `profile ${profile.name} (${profile.region})`;
}
