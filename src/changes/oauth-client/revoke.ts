// The revocation of an OAuth client (§3.1, §4.2): repeated until the service has said `revoked`, and journalled, so that a
// crash on the way is finished later.
import { type Attempt, failureOf } from "../../api/http/attempt.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import { segment } from "../../api/http/request-rules.ts";
import { Failure } from "../../errors.ts";
import type { EntryLease, Intent } from "../../journal/journal.ts";
import { type Mark, type Reading, revoke, revokeUnderEntry, type RevocationGrounds } from "../revocation.ts";
import { madeFor, type Workbench } from "../workbench.ts";

/** @returns the API's object, status `revoked`, as it came */
export async function revokeOAuthClient(bench: Workbench, id: string): Promise<string> {
  const { lease } = await bench.journal.admit(clientRevocationIntent(bench, id));
  try {
    return await finishClientRevocation(bench, lease);
  } finally {
    await lease.release();
  }
}

/** The intent of a revocation as the journal admits it. */
export function clientRevocationIntent({ account }: Workbench, id: string): Intent {
  return {
    ...madeFor(account),
    operation: "oauth_client.revoke",
    method: "DELETE",
    path: `/v1/oauth_clients/${segment(id, "client id")}`,
    request_text: JSON.stringify({ id }),
    fingerprint: JSON.stringify([id]),
    idempotent: false,
  };
}

/** Repeats the revocation of an entry until it is confirmed. */
export function finishClientRevocation(bench: Workbench, lease: EntryLease): Promise<string> {
  // The entry names its client from the start in its request alone: a crash may have come before the first attempt.
  const { id } = JSON.parse(lease.entry.request_text) as { id: string };
  return revokeUnderEntry(bench, lease, {
    id,
    work: (mark) => untilClientRevoked(bench, id, { grounds: { kind: "named" }, lease, mark }),
  });
}

/**
 * DELETE until the answer says `revoked`, retried within `retryForMs`.
 * @returns the revoked client's text
 */
export function untilClientRevoked(
  bench: Workbench,
  id: string,
  about: { readonly grounds: RevocationGrounds; readonly lease: EntryLease; readonly mark?: Mark },
): Promise<string> {
  return revoke(bench, {
    ...about,
    send: () => bench.account.service.oauthClients.revoke(id),
    read: readClientRevoked,
  });
}

async function readClientRevoked(answer: Attempt<OAuthClient>): Promise<Reading<string>> {
  if (answer.kind !== "answered") {
    const failure = failureOf(answer, { what: "revoke the OAuth client", change: true });
    return { isOver: false, failure, mayHaveArrived: answer.kind === "unknown" };
  }
  const { status } = answer.value;
  if (status === "revoked") return { isOver: true, end: answer.text };
  const failure = new Failure(
    "outcome_unknown",
    `The service responded with "${status}" to the revocation, not "revoked".`,
  );
  return { isOver: false, failure, mayHaveArrived: true };
}
