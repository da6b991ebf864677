// Owns: how a command reads one thing from the service: retried within the time the person gave, failing in words.
import type { Answered, Attempt } from "../api/http/attempt.ts";
import { retryRead } from "../api/http/retry.ts";
import type { Context } from "../context.ts";
import type { Progress } from "../output/output.ts";

/**
 * @param what the action in words, for the failure: "get OAuth client"
 * @param attempt one exchange; repeated where that may help
 */
export async function read<T>(
  context: Context,
  what: string,
  attempt: () => Promise<Attempt<T>>,
): Promise<Answered<T>> {
  const progress = context.output.progress(what);
  try {
    return await readAnswer(context, { what, where: await whereOf(context) }, attempt);
  } finally {
    progress.done();
  }
}

/** The same with no word on the terminal but for waits between attempts. */
export async function readAnswer<T>(
  context: Context,
  { what, where }: { what: string; where: string },
  attempt: () => Promise<Attempt<T>>,
): Promise<Answered<T>> {
  let wait: Progress | undefined;
  try {
    return await retryRead(
      () => {
        wait?.done();
        return attempt();
      },
      {
        what,
        where,
        retryForMs: context.settings.retryForMs,
        clock: context.clock,
        random: () => context.clock.random(),
        signal: context.clock.interruption,
        onWait: ({ delayMs, failure }) => {
          wait = context.output.countdown(`${failure.message} Trying again`, delayMs);
        },
      },
    );
  } finally {
    wait?.done();
  }
}

/** Under which profile it happened. */
export async function whereOf(context: Context): Promise<string> {
  const profile = await context.profiles.active();
  return `profile ${profile.name} (${profile.region})`;
}
