// The revocation of a client or key under an entry of its own, and what a response to one means. The act: acts/revoke.ts.
import { type Attempt, failureOf, type Answered } from "../api/call/attempt.ts";
import { Failure } from "../errors.ts";
import { type Entry, detailOf, mayHaveArrived } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import { isTooEarly, readUntilAnswered } from "./sending.ts";
import { type Mark, type Reading, revoke, type RevocationGrounds } from "./acts/revoke.ts";
import {
  detailsOf,
  lastErrorOf,
  outcomeUnknown,
  recordAfterwards,
  serviceTime,
  type Workbench,
  madeFor,
} from "./workbench.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { segment } from "../api/call/request.ts";
import type { AccessKey } from "../api/access-keys.ts";
import type { Service } from "../api/connect.ts";
import { shell, flags } from "../next-step.ts";
import { type DestinationRecord, namesOf, placesOf } from "../secrets/destination.ts";

/** Recorded before the first request to revoke what an entry made: later no one takes its end for someone else's. */
export async function markRevoking(lease: EntryLease): Promise<void> {
  const { detail } = lease.entry;
  if (detail.revoking !== true) await lease.record({ detail: { ...detail, revoking: true } });
}

/** The end of an entry whose client or key someone else has revoked: nothing is made in its place. */
export async function goneOnPurpose(bench: Workbench, lease: EntryLease, what: string): Promise<Failure> {
  await recordAfterwards(bench, lease, { state: "unusable", last_error: null });
  return new Failure("unusable", `${what}, and integ did not revoke it.`, {
    ...detailsOf(lease.entry),
    meaning: "Nothing was sent, and nothing is created in its place. If you still need one, create another.",
  });
}

export interface JournalledRevocation<R> {
  /** Resource id of what is revoked. */
  readonly id: string;
  readonly work: (mark: Mark) => Promise<R>;
}

/** Does the work under an entry: `done` at its end; else `unknown` if any attempt may have arrived, `open` if it was too early, or `refused`. */
export async function revokeUnderEntry<R>(
  bench: Workbench,
  lease: EntryLease,
  { id, work }: JournalledRevocation<R>,
): Promise<R> {
  let hasArrived = mayHaveArrived(lease.entry);
  try {
    const end = await work(async (event) => {
      if (event === "send") {
        const { attempts, detail } = lease.entry;
        await lease.record({ attempts: attempts + 1, resource_id: id, detail: { ...detail, in_flight: true } });
        return;
      }
      hasArrived = true;
      await recordAfterwards(bench, lease, { state: "unknown", last_error: lastErrorOf(event) });
    });
    await recordAfterwards(bench, lease, { state: "done", last_error: null });
    return end;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    hasArrived ||= error.kind === "outcome_unknown";
    // What is refused after an attempt that may have arrived can have another cause: it settles nothing.
    const isLater = isTooEarly(error) || lease.entry.detail.put_off_until !== undefined;
    const state = hasArrived ? "unknown" : isLater ? "open" : "refused";
    const detail = { ...lease.entry.detail, in_flight: hasArrived };
    await recordAfterwards(bench, lease, { state, last_error: lastErrorOf(error), detail });
    throw !hasArrived
      ? new Failure(error.kind, error.message, detailsOf(lease.entry, error.details))
      : outcomeUnknown(lease.entry, error);
  }
}

// The revocation of an OAuth client (§3.1, §4.2): repeated until the service has said `revoked`, and journalled, so that a
// crash on the way is finished later.

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
 * DELETE until the response says `revoked`, retried within `retryForMs`.
 * @returns the revoked client's text
 */
export function untilClientRevoked(
  bench: Workbench,
  id: string,
  about: { readonly grounds: RevocationGrounds; readonly lease: EntryLease; readonly mark?: Mark },
): Promise<string> {
  return revoke(bench, { ...about, change: "revoke client", id, read: readClientRevoked });
}

async function readClientRevoked(answer: Attempt<OAuthClient>): Promise<Reading<string>> {
  if (answer.kind !== "answered") {
    const failure = failureOf(answer, { what: "revoke the OAuth client", change: true });
    return { isOver: false, failure, mayHaveArrived: answer.kind === "unknown" };
  }
  const { status } = answer.value;
  if (status === "revoked") return { isOver: true, end: answer.body.toString() };
  const failure = new Failure(
    "outcome_unknown",
    `The service responded with "${status}" to the revocation, not "revoked".`,
  );
  return { isOver: false, failure, mayHaveArrived: true };
}

// The revocation of an access key (§3.2, §4.4): repeated until the service has said so, and the end state seen in the list
// if the response does not show it; journalled, so that a crash on the way is finished later.

/** How the end of a key was seen. */
export interface KeyRevoked {
  /** JSON text: the API's own object if one shows the status, else what is known. */
  readonly receipt: string;
  /** False if the service said yes and neither its response nor its list shows the status. */
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
  const hasArrived = mayHaveArrived(lease.entry);
  return revokeUnderEntry(bench, lease, {
    id,
    work: (mark) => untilKeyRevoked(bench, id, { grounds: { kind: "named" }, lease, mayHaveArrived: hasArrived, mark }),
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
  return revoke(bench, { change: "revoke key", id, service, read, grounds, lease, mark });
}

interface ListedKey {
  readonly id: string;
  readonly service: Service;
}

function isRevoked(status: string | undefined): boolean {
  return status === "revoked" || status === "absent";
}

/** A yes whose body shows the key's status is believed; if it shows nothing, or another key, the list is looked at. */
async function confirmed(bench: Workbench, key: ListedKey, answer: Answered<AccessKey>): Promise<KeyRevoked> {
  const { id } = key;
  const { id: shown = id, status } = answer.value;
  if (shown === id && status === "revoked") return { receipt: answer.body.toString(), seen: true };
  const listed = await listedStatus(bench, key);
  if (isRevoked(listed)) return { receipt: JSON.stringify({ id, status: "revoked" }), seen: true };
  if (shown !== id)
    throw new Failure("outcome_unknown", `The service responded to the revocation with another key (${shown}).`);
  const still = listed ?? status;
  if (still === undefined) return { receipt: JSON.stringify({ id }), seen: false };
  throw new Failure(
    "outcome_unknown",
    `The service accepted the revocation, and the key's status is still "${still}".`,
  );
}

/** @returns the key's status in the list, `absent` if a whole list leaves it out, nothing if it does not say */
export function listedStatus(bench: Workbench, key: ListedKey): Promise<string | undefined> {
  return statusInList(bench, key).catch((error: unknown) => {
    if (error instanceof Failure) return undefined;
    throw error;
  });
}

/**
 * The same before something is revoked because of it: a list that this credential may not read says nothing, and one
 * that is not available now is requested again later.
 * @throws Failure of the read
 */
export function statusBeforeRevocation(bench: Workbench, key: ListedKey): Promise<string | undefined> {
  return statusInList(bench, key).catch((error: unknown) => {
    if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return undefined;
    throw error;
  });
}

async function statusInList(bench: Workbench, { id, service }: ListedKey): Promise<string | undefined> {
  const { clock } = bench;
  const briefly = { clock, retryForMs: Math.min(bench.retryForMs, 10_000) };
  const list = await readUntilAnswered(briefly, () => service.accessKeys.list(), { what: "list access keys" });
  const { readAccessKey } = await import("../api/access-keys.ts");
  const keys = list.rows.map((row) => readAccessKey(row.value));
  const key = keys.find((found) => found.id === id);
  if (key) return hasExpired(key, serviceTime(bench)) ? "expired" : key.status;
  return list.saysMore || keys.length === 0 ? undefined : "absent";
}

/** The list calls a key active whose time is over. */
function hasExpired({ expiresAt }: AccessKey, now: number): boolean {
  return typeof expiresAt === "string" && Date.parse(expiresAt) <= now;
}

// Secrets that profiles authenticate with: one that a profile has is not lost, and a profile whose own credential is rotated
// is locked out without the new one.

/** The two credentials of a rotation. */
interface Replaced {
  readonly noun: "client" | "key";
  readonly oldId: string;
  readonly newId: string;
  /** The creation of the new one. */
  readonly child: Entry;
}

/**
 * A rotation that was started to replace the credential of its own profile, and whose secret was sent elsewhere later.
 * @throws Failure `pending`: without the old one the profile could do nothing more
 */
export function assertProfileHasIt(
  { bench, lease }: { readonly bench: Pick<Workbench, "account">; readonly lease: Pick<EntryLease, "entry"> },
  { noun, oldId, newId, child }: Replaced,
): void {
  const { id, profile, destination } = lease.entry;
  const hasIt = [newId, child.detail.client_id].includes(bench.account.keyId ?? bench.account.principal);
  if (hasIt || !isForProfile(destination, profile) || isForProfile(child.destination, profile)) return;
  const how =
    noun === "key" ? [flags.apiKeyStdin, flags.apiKeyId, newId] : [flags.clientId, "<id>", flags.clientSecretStdin];
  throw new Failure(
    "pending",
    `Profile ${profile} does not have the new secret, which went to ${child.destination ? namesOf(child.destination) : "standard output"}.`,
    {
      meaning: `The old ${noun} ${oldId} is not revoked: profile ${profile} would be locked out.`,
      hint: `Give the profile the new secret (${shell`integ profiles edit ${profile} ${how}`}), then run: ${shell`integ journal recover ${id}`}`,
    },
  );
}

/** Whether a secret goes to a profile, so that a rotation of its own credential leaves it working. */
export function isForProfile(destination: DestinationRecord | null, profile: string): boolean {
  return destination !== null && placesOf(destination).some((at) => at.kind === "profile" && at.name === profile);
}
