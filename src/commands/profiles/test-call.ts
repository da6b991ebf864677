// Checks a stored profile's credential by one request.
import { failureOf } from "../../api/call/attempt.ts";
import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import type { Profile } from "../../profiles/profile.ts";
import { flags, shell } from "../../next-step.ts";

/** The limit is short, because a person waits at the end of a setup. */
const limitMs = 5_000;

/**
 * If the test fails, a person at a terminal decides whether the profile stays. Without a terminal, only a refused
 * credential removes the profile. With `mustAnswer`, any other failure throws, and the profile stays.
 * @throws Failure of the test
 */
export async function tryCredential(
  context: Context,
  profile: Profile,
  { mustAnswer }: { readonly mustAnswer: boolean },
): Promise<void> {
  const { output } = context;
  const { name } = profile;
  try {
    await testCall(context, name);
  } catch (error) {
    if (!(error instanceof Failure) || isInterruption(error)) throw error;
    const isRefused = error.kind === "auth";
    if (!isRefused && mustAnswer) throw error;
    if (!isRefused || output.interactive)
      output.warn(isRefused ? error.message : `The profile was not tested: ${error.message}`);
    if (!isRefused && !output.interactive) return;
    const question = isRefused
      ? "Store the profile although its credential is refused?"
      : "Store the profile untested?";
    let isKept = false;
    // With `finishing`, integ removes the profile before it exits, even if a signal interrupts the question.
    await context.clock.finishing(async () => {
      try {
        isKept = output.interactive && (await output.confirm(question, { destructive: isRefused }));
      } finally {
        if (!isKept) await context.profiles.remove(profile);
      }
    });
    if (isKept) return;
    const why = isRefused ? "its credential does not work" : "the service did not answer";
    throw new Failure(error.kind, `The profile "${name}" was not stored: ${why}.`, {
      meaning: error.message,
      hint: `Correct the ${isRefused ? "credential" : "address"}, or add ${flags.noVerify} to store it untested.`,
    });
  }
}

/**
 * @throws Failure `auth` if the service refuses the credential, or another kind if the request fails; the profile stays
 */
export async function testCall(context: Context, name: string): Promise<void> {
  const profile = await context.profiles.named(name);
  const service = await context.connect(profile, { timeoutMs: Math.min(limitMs, context.settings.timeoutMs) });
  const progress = context.output.progress("Sending a test request");
  const attempt = await service.raw
    .send({ method: "GET", path: "/v1/entities?limit=1" })
    .finally(() => progress.done());
  // A 403 response shows that the credential is valid (§7).
  const isAccepted = attempt.kind === "answered" || (attempt.kind === "refused" && attempt.status === 403);
  if (isAccepted)
    return context.output.note(`The service accepts the credential (${profile.region}, ${profile.baseUrl}).`);
  const failure = failureOf(attempt, { what: "list entities", change: false });
  throw new Failure(failure.kind, failure.message, {
    ...failure.details,
    where: `profile ${name} (${profile.region})`,
    meaning: `The profile "${name}" is stored, but its test request failed.`,
    nextCommand: shell`integ doctor -p ${name}`,
  });
}
