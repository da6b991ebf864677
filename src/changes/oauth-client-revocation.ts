// Owns: the revocation of an OAuth client (§3.1, §4.2): safe to repeat, so it is repeated until the service has said
// `revoked`, and journalled, so that a crash on the way is finished later.
// Must not know: flags, terminals, files.
import type { Attempt } from "../api/attempt.ts";
import { failureOf } from "../api/failure-of.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { nextDelay } from "../api/retry.ts";
import { Failure } from "../errors.ts";
import type { Drive } from "../journal/journal.ts";
import { detailsOf, madeFor, mayPass, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";

/** @returns the API's object, status `revoked`, as it came */
export async function revokeOAuthClient(bench: Workbench, id: string): Promise<string> {
  const { drive } = await bench.journal.admit({
    ...madeFor(bench.account),
    operation: "oauth_client.revoke",
    method: "DELETE",
    path: `/v1/oauth_clients/${encodeURIComponent(id)}`,
    request_text: JSON.stringify({ id }),
    twin: JSON.stringify([id]),
    idempotent: false,
  });
  try {
    return await driveRevocation(bench, drive, id);
  } finally {
    drive.release();
  }
}

/** Repeats the revocation of an entry until it is confirmed. */
export async function driveRevocation(bench: Workbench, drive: Drive, id: string): Promise<string> {
  let uncertain = drive.entry.attempts > 0;
  try {
    const text = await untilRevoked(bench, id, (before) => {
      if (before === "send") drive.record({ attempts: drive.entry.attempts + 1, resource_id: id });
      else {
        uncertain = true;
        recordAfterwards(bench, drive, { state: "unknown", last_error: errorOf(before) });
      }
    });
    recordAfterwards(bench, drive, { state: "done", last_error: null });
    return text;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // A 404 says that there is nothing of ours under this id: an earlier attempt that arrived would still be seen (§3.1).
    const settles = !uncertain || error.kind === "not_found";
    recordAfterwards(bench, drive, { state: settles ? "refused" : "unknown", last_error: errorOf(error) });
    throw settles
      ? new Failure(error.kind, error.message, detailsOf(drive.entry, error.details))
      : outcomeUnknown(drive.entry, error);
  }
}

/**
 * DELETE until the answer says `revoked`, retried within `retryForMs`.
 * @param mark told before each request, and of every attempt whose outcome is unknown
 * @returns the revoked client's text
 */
export async function untilRevoked(
  bench: Workbench,
  id: string,
  mark: (before: "send" | Failure) => void = () => {},
): Promise<string> {
  const startedAt = bench.clock.now();
  for (let attempt = 1; ; attempt++) {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    mark("send");
    const answer = await bench.clock.finishing(() => bench.account.service.oauthClients.revoke(id));
    if (answer.kind === "answered" && answer.value.status === "revoked") return answer.text;
    const failure = notRevoked(answer);
    if (answer.kind === "unknown" || answer.kind === "answered") mark(failure);
    const elapsedMs = bench.clock.now() - startedAt;
    const delay = delayBefore(bench, answer, { attempt, elapsedMs });
    if (delay === null || bench.clock.interruption.aborted) throw failure;
    const done = bench.tell.waiting(`${failure.message} Trying again`, delay);
    try {
      await bench.clock.sleep(delay);
    } finally {
      done();
    }
  }
}

function notRevoked(answer: Attempt<OAuthClient>): Failure {
  if (answer.kind !== "answered") return failureOf(answer, { what: "revoke OAuth client", change: true });
  return new Failure(
    "outcome_unknown",
    `The service answered "${answer.value.status}" to the revocation, not "revoked".`,
  );
}

function delayBefore(
  bench: Workbench,
  answer: Attempt<OAuthClient>,
  at: { attempt: number; elapsedMs: number },
): number | null {
  if (answer.kind === "refused" && answer.status !== 429) return null;
  if ((answer.kind === "unknown" || answer.kind === "not_sent") && !mayPass(answer.reason)) return null;
  const retryAfterSeconds =
    answer.kind === "refused" || answer.kind === "unknown" ? answer.retryAfterSeconds : undefined;
  return nextDelay({ ...at, retryForMs: bench.retryForMs, retryAfterSeconds, random: () => bench.clock.random() });
}

function errorOf(failure: Failure): NonNullable<Drive["entry"]["last_error"]> {
  const { status, code, request_id } = failure.details.problem ?? {};
  return { kind: failure.kind, message: failure.message, status, code, request_id };
}
