// Owns: the revocation of an OAuth client (§3.1, §4.2): safe to repeat, so it is repeated until the service has said
// `revoked`, and journalled, so that a crash on the way is finished later.
// Must not know: flags, terminals, files.
import { type Attempt, failureOf } from "../api/http/attempt.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import type { EntryLease } from "../journal/journal.ts";
import { driveRepeated, type Mark, type Reading, repeatRevocation } from "./revocation.ts";
import { madeFor, type Workbench } from "./workbench.ts";

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
    await drive.release();
  }
}

/** Repeats the revocation of an entry until it is confirmed. */
export function driveRevocation(bench: Workbench, drive: EntryLease, id: string): Promise<string> {
  return driveRepeated(bench, drive, {
    id,
    work: (mark) => untilRevoked(bench, id, mark),
    // A 404 says that there is nothing of ours under this id: an earlier attempt that arrived would still be seen (§3.1).
    settles: ({ kind }) => kind === "not_found",
  });
}

/**
 * DELETE until the answer says `revoked`, retried within `retryForMs`.
 * @returns the revoked client's text
 */
export function untilRevoked(bench: Workbench, id: string, mark?: Mark): Promise<string> {
  return repeatRevocation(bench, { send: () => bench.account.service.oauthClients.revoke(id), read, mark });
}

async function read(answer: Attempt<OAuthClient>): Promise<Reading<string>> {
  if (answer.kind !== "answered") {
    const failure = failureOf(answer, { what: "revoke OAuth client", change: true });
    return { isOver: false, failure, mayHaveArrived: answer.kind === "unknown" };
  }
  const { status } = answer.value;
  if (status === "revoked") return { isOver: true, end: answer.text };
  const failure = new Failure("outcome_unknown", `The service answered "${status}" to the revocation, not "revoked".`);
  return { isOver: false, failure, mayHaveArrived: true };
}
