// One request as a profile that was just stored: does the service know its credential?
import { failureOf } from "../../api/call/attempt.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";

/** A person does not wait long at the end of a setup. */
const limitMs = 5_000;

/** Asks a person, if neither `--verify` nor `--no-verify` was typed; without a terminal nothing is sent. */
export async function wantsTestCall({ output }: Context, typed: boolean | undefined): Promise<boolean> {
  return typed ?? (output.interactive && (await output.confirm("Send a test request with this credential?")));
}

/**
 * @param name of a stored profile
 * @throws Failure `auth` if the service refuses the credential, or another one if no response came; the profile stays
 */
export async function testCall(context: Context, name: string): Promise<void> {
  const profile = await context.profiles.named(name);
  const service = await context.connect(profile, { timeoutMs: Math.min(limitMs, context.settings.timeoutMs) });
  const progress = context.output.progress("Sending a test request");
  const attempt = await service.raw
    .send({ method: "GET", path: "/v1/entities?limit=1" })
    .finally(() => progress.done());
  // 403 means that the credential is known (§5.1 rule 5).
  const isKnown = attempt.kind === "answered" || (attempt.kind === "refused" && attempt.status === 403);
  if (isKnown)
    return context.output.note(`The service accepts the credential (${profile.region}, ${profile.baseUrl}).`);
  const failure = failureOf(attempt, { what: "list entities", change: false });
  throw new Failure(failure.kind, failure.message, {
    ...failure.details,
    where: `profile ${name} (${profile.region})`,
    meaning: `The profile "${name}" is stored, but its test request failed.`,
    nextCommand: shell`integ doctor -p ${name}`,
  });
}
