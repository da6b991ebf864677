// Owns: the revocation of an access key (§3.2, §4.4): DELETE, which may be repeated, until the service has said so, and
// the end state seen in the list where the answer does not tell it; journalled, so that a crash on the way is finished.
// Must not know: flags, terminals, files.
import { type AccessKey, readAccessKey } from "../api/access-keys.ts";
import { type Attempt, failureOf } from "../api/http/attempt.ts";
import { retryRead } from "../api/http/retry.ts";
import type { Service } from "../api/connect.ts";
import { Failure } from "../errors.ts";
import { detailOf } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { driveRepeated, type Mark, type Reading, repeatRevocation } from "./revocation.ts";
import { madeFor, type Workbench } from "./workbench.ts";

/** How the end of a key was seen. */
export interface KeyRevoked {
  /** JSON text: the API's own object where one tells the status, else what is known. */
  readonly receipt: string;
  /** False where the service said yes and neither its answer nor its list tells the status. */
  readonly seen: boolean;
}

export async function revokeAccessKey(bench: Workbench, id: string): Promise<KeyRevoked> {
  const { drive } = await bench.journal.admit({
    ...madeFor(bench.account),
    operation: "access_key.revoke",
    method: "DELETE",
    path: `/api/v1/access-keys/${encodeURIComponent(id)}`,
    request_text: JSON.stringify({ id }),
    twin: JSON.stringify([id]),
    idempotent: false,
    detail: { key_id: id },
  });
  try {
    return await driveKeyRevocation(bench, drive);
  } finally {
    await drive.release();
  }
}

/** Repeats the revocation of an entry until it is confirmed. */
export function driveKeyRevocation(bench: Workbench, drive: EntryLease): Promise<KeyRevoked> {
  const id = detailOf(drive.entry, "access_key.revoke").key_id;
  const mayHaveArrived = drive.entry.state === "unknown" || drive.entry.attempts > 0;
  return driveRepeated(bench, drive, {
    id,
    work: (mark) => untilKeyRevoked(bench, id, { mayHaveArrived, mark }),
  });
}

export interface RevocationOptions {
  readonly mark?: Mark;
  /** An earlier request of this work may have arrived. */
  readonly mayHaveArrived?: boolean;
  /** Instead of the workbench's: the service as the profile is after its credential was replaced. */
  readonly service?: Service;
}

/**
 * DELETE until the key is seen revoked, or gone, retried within `retryForMs`.
 * @assumed §4.4 does not show the operation, nor §3.2 its effect: repeating it is safe (RFC 9110 §9.2.2), 404 and 409 after an attempt that may
 * have arrived can mean that it did; then the list decides.
 */
export function untilKeyRevoked(bench: Workbench, id: string, options: RevocationOptions = {}): Promise<KeyRevoked> {
  const { mark, service = bench.account.service } = options;
  let mayHaveArrived = options.mayHaveArrived === true;
  const read = async (answer: Attempt<AccessKey>): Promise<Reading<KeyRevoked>> => {
    if (answer.kind === "answered") return { isOver: true, end: await confirmed(bench, { id, answer, service }) };
    mayHaveArrived ||= answer.kind === "unknown";
    const mayBeOver = answer.kind === "refused" && (answer.status === 409 || (answer.status === 404 && mayHaveArrived));
    if (mayBeOver && (await isRevokedInList(bench, { id, service })))
      return { isOver: true, end: { receipt: JSON.stringify({ id, status: "revoked" }), seen: true } };
    const failure = failureOf(answer, { what: "revoke access key", change: true });
    return { isOver: false, failure, mayHaveArrived: answer.kind === "unknown" };
  };
  return repeatRevocation(bench, { send: () => service.accessKeys.revoke(id), read, mark });
}

interface Seen {
  readonly id: string;
  readonly service: Service;
}

/** A yes whose body tells the status is taken at its word; where it is empty or tells nothing the list is looked at. */
async function confirmed(
  bench: Workbench,
  { id, answer, service }: Seen & { answer: Extract<Attempt<AccessKey>, { kind: "answered" }> },
): Promise<KeyRevoked> {
  const { status } = answer.value;
  if (status === "revoked") return { receipt: answer.text, seen: true };
  const listed = await listedStatus(bench, { id, service });
  if (listed === "revoked" || listed === "absent")
    return { receipt: JSON.stringify({ id, status: "revoked" }), seen: true };
  const still = listed ?? status;
  if (still === undefined) return { receipt: JSON.stringify({ id }), seen: false };
  throw new Failure(
    "outcome_unknown",
    `The service accepted the revocation, and the key's status is still "${still}".`,
  );
}

async function isRevokedInList(bench: Workbench, seen: Seen): Promise<boolean> {
  const status = await listedStatus(bench, seen);
  return status === "revoked" || status === "absent";
}

/** @returns the key's status in the list, `absent` where a whole list leaves it out, nothing where it does not tell */
export async function listedStatus(bench: Workbench, { id, service }: Seen): Promise<string | undefined> {
  try {
    const { value } = await retryRead(() => service.accessKeys.list(), {
      what: "list access keys",
      retryForMs: Math.min(bench.retryForMs, 10_000),
      clock: bench.clock,
      random: () => bench.clock.random(),
      signal: bench.clock.interruption,
    });
    const keys = value.rows.map((row) => readAccessKey(row.value));
    const key = keys.find((found) => found.id === id);
    if (key) return key.status;
    return value.saysMore || keys.length === 0 ? undefined : "absent";
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
