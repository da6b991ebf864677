// The revocation of an access key (§3.2, §4.4): repeated until the service has said so, and the end state seen in the list
// if the answer does not show it; journalled, so that a crash on the way is finished later.
import { type AccessKey, readAccessKey } from "../../api/access-keys.ts";
import type { Service } from "../../api/connect.ts";
import { type Answered, type Attempt, failureOf } from "../../api/http/attempt.ts";
import { segment } from "../../api/http/request-rules.ts";
import { Failure } from "../../errors.ts";
import { detailOf } from "../../journal/entry.ts";
import type { EntryLease, Intent } from "../../journal/journal.ts";
import { type Mark, type Reading, revoke, revokeUnderEntry, type RevocationGrounds } from "../revocation.ts";
import { madeFor, readUntilAnswered, type Workbench } from "../workbench.ts";

/** How the end of a key was seen. */
export interface KeyRevoked {
  /** JSON text: the API's own object if one shows the status, else what is known. */
  readonly receipt: string;
  /** False if the service said yes and neither its answer nor its list shows the status. */
  readonly seen: boolean;
}

export async function revokeAccessKey(bench: Workbench, id: string): Promise<KeyRevoked> {
  const { lease } = await bench.journal.admit(keyRevocationIntent(bench, id));
  try {
    return await finishKeyRevocation(bench, lease);
  } finally {
    await lease.release();
  }
}

/** The intent of a revocation as the journal admits it. */
export function keyRevocationIntent({ account }: Workbench, id: string): Intent {
  return {
    ...madeFor(account),
    operation: "access_key.revoke",
    method: "DELETE",
    path: `/api/v1/access-keys/${segment(id, "key id")}`,
    request_text: JSON.stringify({ id }),
    fingerprint: JSON.stringify([id]),
    idempotent: false,
    detail: { key_id: id },
  };
}

/** Repeats the revocation of an entry until it is confirmed. */
export function finishKeyRevocation(bench: Workbench, lease: EntryLease): Promise<KeyRevoked> {
  const id = detailOf(lease.entry, "access_key.revoke").key_id;
  const mayHaveArrived = lease.entry.state === "unknown" || lease.entry.attempts > 0;
  return revokeUnderEntry(bench, lease, {
    id,
    work: (mark) => untilKeyRevoked(bench, id, { grounds: { kind: "named" }, lease, mayHaveArrived, mark }),
  });
}

export interface KeyRevocationOptions {
  readonly grounds: RevocationGrounds;
  readonly lease: EntryLease;
  readonly mark?: Mark;
  /** An earlier request of this work may have arrived. */
  readonly mayHaveArrived?: boolean;
  /** Instead of the workbench's: the service as the profile is after its credential was replaced. */
  readonly service?: Service;
}

/**
 * DELETE until the key is seen revoked, or is no longer listed, retried within `retryForMs`.
 * @assumed §4.4 does not show the operation, nor §3.2 its effect: repeating it is safe (RFC 9110 §9.2.2), 404 and 409 after
 * an attempt that may have arrived can mean that it did; then the list decides.
 */
export function untilKeyRevoked(bench: Workbench, id: string, options: KeyRevocationOptions): Promise<KeyRevoked> {
  const { grounds, lease, mark, service = bench.account.service } = options;
  let mayHaveArrived = options.mayHaveArrived === true;
  const read = async (answer: Attempt<AccessKey>): Promise<Reading<KeyRevoked>> => {
    if (answer.kind === "answered") return { isOver: true, end: await confirmed(bench, { id, service }, answer) };
    mayHaveArrived ||= answer.kind === "unknown";
    const mayBeOver = answer.kind === "refused" && (answer.status === 409 || (answer.status === 404 && mayHaveArrived));
    if (mayBeOver && isRevoked(await listedStatus(bench, { id, service })))
      return { isOver: true, end: { receipt: JSON.stringify({ id, status: "revoked" }), seen: true } };
    const failure = failureOf(answer, { what: "revoke the access key", change: true });
    return { isOver: false, failure, mayHaveArrived: answer.kind === "unknown" };
  };
  return revoke(bench, { send: () => service.accessKeys.revoke(id), read, grounds, lease, mark });
}

interface ListedKey {
  readonly id: string;
  readonly service: Service;
}

function isRevoked(status: string | undefined): boolean {
  return status === "revoked" || status === "absent";
}

/** A yes whose body shows the status is believed; if it is empty or shows nothing, the list is looked at. */
async function confirmed(bench: Workbench, key: ListedKey, answer: Answered<AccessKey>): Promise<KeyRevoked> {
  const { id } = key;
  const { status } = answer.value;
  if (status === "revoked") return { receipt: answer.text, seen: true };
  const listed = await listedStatus(bench, key);
  if (isRevoked(listed)) return { receipt: JSON.stringify({ id, status: "revoked" }), seen: true };
  const still = listed ?? status;
  if (still === undefined) return { receipt: JSON.stringify({ id }), seen: false };
  throw new Failure(
    "outcome_unknown",
    `The service accepted the revocation, and the key's status is still "${still}".`,
  );
}

/** @returns the key's status in the list, `absent` if a whole list leaves it out, nothing if it does not say */
export async function listedStatus(bench: Workbench, { id, service }: ListedKey): Promise<string | undefined> {
  try {
    const { clock } = bench;
    const briefly = { clock, retryForMs: Math.min(bench.retryForMs, 10_000) };
    const list = await readUntilAnswered(briefly, () => service.accessKeys.list(), { what: "list access keys" });
    const keys = list.rows.map((row) => readAccessKey(row.value));
    const key = keys.find((found) => found.id === id);
    if (key) return key.status;
    return list.saysMore || keys.length === 0 ? undefined : "absent";
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
