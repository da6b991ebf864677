// An entry of the journal as data. No field has space for a secret.
import type * as z from "zod/mini";
import { type NextCommand, shell, flags } from "../next-step.ts";
import type { Fixed } from "./entry-destination.ts";
import type { detailShape, JournalRecord } from "./record-schema.ts";

export const operations = [
  "oauth_client.create",
  "oauth_client.revoke",
  "oauth_client.rotate",
  "oauth_client.adopt",
  "access_key.create",
  "access_key.rotate",
  "access_key.revoke",
  "access_key.adopt",
] as const;

export type Operation = (typeof operations)[number];

/** The states that want something done: what `journal list` shows without `--all`. */
export const unsettledStates = ["open", "unknown", "pending", "waiting", "secret_lost", "undelivered"] as const;

export const settledStates = ["done", "refused", "unusable", "replaced", "abandoned"] as const;

export type EntryState = (typeof unsettledStates)[number] | (typeof settledStates)[number];

const settled: ReadonlySet<string> = new Set(settledStates);

/** A state that a newer program invented counts as unfinished: better mentioned once too often than forgotten. */
export function isSettled(state: string): boolean {
  return settled.has(state);
}

/** When the next step of an entry is due, ISO 8601 UTC; undefined if that is now. */
export function dueAt({ state, detail }: Pick<Entry, "state" | "detail">): string | undefined {
  if (state === "waiting") return detail.overlap_until;
  return state === "open" && detail.in_flight !== true ? detail.put_off_until : undefined;
}

/**
 * When an overlap ends, milliseconds since 1970; 0 if its entry does not say. One by use ends as soon as the old key was not used
 * for long enough, counted from the start of the overlap at the earliest: before, no one had a new key to change to.
 * @param lastUsedAt of the old key; null: never; undefined: not shown, so that only the time ends it
 * @assumed §2.5 does not show the fields of a listed key, and "Last use." is all that is said of `lastUsedAt` of a created one: null
 * is taken as never, and any use as shown immediately. A time in the future keeps the key.
 */
export function overlapEnd(detail: Entry["detail"], lastUsedAt?: string | null): number {
  const { overlap_until = "", overlap_ms = 0, overlap_unused_ms: unusedMs } = detail;
  const latest = Date.parse(overlap_until) || 0;
  const isShown = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)$/i.test(lastUsedAt ?? "");
  const used = lastUsedAt === null ? 0 : isShown ? Date.parse(lastUsedAt ?? "") : Number.NaN;
  if (unusedMs === undefined || Number.isNaN(used)) return latest;
  return Math.min(latest, Math.max(latest - overlap_ms, used) + unusedMs);
}

type Sent = Pick<Entry, "state" | "attempts" | "detail">;

/** A request of the entry may have arrived, and its outcome is not known. A crash before the response is recorded leaves this true. */
export function mayHaveArrived({ state, detail }: Pick<Sent, "state" | "detail">): boolean {
  return state === "unknown" || detail.in_flight === true;
}

/** Requests left, and the service refused each one as too early (429): none of them changed anything. */
export function isPutOff({ state, attempts, detail }: Sent): boolean {
  return state === "open" && attempts > 0 && detail.in_flight !== true;
}

/** The client of a key that was given by hand may have been made elsewhere: its creator has its secret. */
export function mayBeMadeElsewhere({ operation, detail }: Pick<Entry, "operation" | "detail">): boolean {
  return operation === "oauth_client.create" && detail.own_key !== true;
}

/** True if something is to be done now: unfinished, and not before its time (an overlap that runs, a wait that was asked for). */
export function needsAttention(entry: Entry, nowMs: number): boolean {
  return !isSettled(entry.state) && !(Date.parse(dueAt(entry) ?? "") > nowMs);
}

/** The format of the records that this program writes, and the only one that it reads. */
export const formatVersion = 3;

/** What the work of an entry needs in order to continue, by the names that the schema explains. */
export type EntryDetail = Fixed<z.infer<z.ZodMiniObject<typeof detailShape>>>;

export type ClientProof = NonNullable<EntryDetail["proof"]>;

export type KeyExchange = NonNullable<EntryDetail["exchange"]>;

/** The intent of an entry, with its key and its exact request: never changed once admitted. */
export interface EntryIdentity extends Omit<Fixed<JournalRecord["intent"]>, "operation"> {
  readonly id: string;
  readonly operation: Operation;
}

/** The fields that a step may change. */
export interface EntryProgress extends Omit<Fixed<JournalRecord["now"]>, "detail"> {
  readonly state: EntryState;
  readonly detail: EntryDetail;
}

export interface Entry extends EntryIdentity, EntryProgress {
  /** ISO 8601 UTC, milliseconds. */
  readonly updated_at: string;
  /** Number of its last record, counted from 1. */
  readonly sequence: number;
}

/** What the detail of these operations always has: the schema refuses a record without it. */
interface NeededDetail {
  readonly "oauth_client.rotate": "old_client";
  readonly "access_key.revoke": "key_id";
}

/** The detail of an entry whose operation the caller knows. */
export function detailOf<O extends keyof NeededDetail>(
  { id, operation: is, detail }: Entry,
  operation: O,
): EntryDetail & Required<Pick<EntryDetail, NeededDetail[O]>> {
  if (is !== operation) throw new Error(`journal entry ${id} is a ${is}, not a ${operation}`);
  return detail as ReturnType<typeof detailOf<O>>;
}

/** The key of an entry was found by its name and time alone: it may be another's, until a person names it. */
export function isGuess({ detail }: Pick<Entry, "detail">): boolean {
  return detail.orphan_certain === false;
}

/** The command that a person types next, or null if nothing is left to do. */
export function nextStep(entry: Pick<Entry, "id" | "state" | "resource_id" | "detail">): NextCommand | null {
  switch (entry.state) {
    case "open":
    case "unknown":
    case "pending":
    case "waiting":
      return shell`integ journal recover ${entry.id}`;
    case "secret_lost":
      return isGuess(entry)
        ? shell`integ journal recover ${entry.id} ${flags.revoke} ${entry.resource_id ?? ""}`
        : shell`integ journal recover ${entry.id} ${flags.replaceLostSecret}`;
    case "undelivered":
      return shell`integ journal claim ${entry.id}`;
    default:
      return null;
  }
}

type RequestIdentity = Pick<Entry, "operation" | "base_url" | "organization_id" | "service_version" | "fingerprint">;

/** Text that all requests have in common which can be the same one; which of them are, `isSameRequest` says. */
export function requestKey(entry: Omit<RequestIdentity, "organization_id">): string {
  return JSON.stringify([entry.operation, entry.base_url, entry.service_version, entry.fingerprint]);
}

export function isSameRequest(entry: RequestIdentity, intent: RequestIdentity): boolean {
  const isSameOrganization = entry.organization_id?.toLowerCase() === intent.organization_id?.toLowerCase();
  return isSameOrganization && requestKey(entry) === requestKey(intent);
}

/** Names an idempotency key, which is one entry's within an address; null: it has none. */
export function keyName({ base_url, idempotency_key }: Pick<Entry, "base_url" | "idempotency_key">): string | null {
  return idempotency_key === null ? null : JSON.stringify([base_url, idempotency_key]);
}

/** An account as a team's journal identifies it: each machine names its profiles differently. */
export interface EntryAccount extends Pick<Entry, "base_url"> {
  readonly organization_id: string | null;
  /** The client that acts; an API key does not say whose it is. */
  readonly principal: string | undefined;
}

export function isOfAccount(entry: Entry, { base_url, organization_id, principal }: EntryAccount): boolean {
  const isSameClient = principal === undefined || entry.principal === undefined || principal === entry.principal;
  const isSameOrganization = organization_id?.toLowerCase() === entry.organization_id?.toLowerCase();
  return base_url === entry.base_url && isSameOrganization && isSameClient;
}

/** The clients and keys that an entry names: what it made, changed or was to revoke, a client by its `client_id` too. */
export function resourcesOf({ resource_id, detail }: Pick<Entry, "resource_id" | "detail">): string[] {
  const { client_id, old_client, key_id, old_key } = detail;
  return [resource_id, client_id, old_client, key_id, old_key].filter((id) => typeof id === "string");
}

/** The client or key that an entry saw revoked, if it is one that revokes. */
export function revokedBy({ operation, state, resource_id, detail }: Entry): string | undefined {
  if (state !== "done") return undefined;
  if (operation === "oauth_client.revoke") return resource_id ?? undefined;
  if (operation === "access_key.revoke") return resource_id ?? detail.key_id;
  if (operation === "oauth_client.rotate" && detail.keep_old !== true) return detail.old_client;
  return operation === "access_key.rotate" ? detail.old_key : undefined;
}

// A secret that is kept on this machine until a person claims it: what it opens, and what its entry becomes then.

/** True if the entry does not say which client or key its secret opens: the response was cut, or its process ended too early. */
export function isUnnamed(entry: Entry): boolean {
  return entry.operation.endsWith(".create") && entry.resource_id === null;
}

/** True if a person has claimed the secret: it is not lost, wherever it went. */
export function wasClaimed(entry: Entry): boolean {
  return entry.detail.secret_claimed === true;
}

/** Id of the client or key that a rotation is of. */
export function rotatedBy({ detail }: { readonly detail?: EntryDetail }): string | undefined {
  return detail?.old_client ?? detail?.old_key ?? detail?.key_id;
}

/** The entry whose lost client or key was seen revoked before this one's request left. */
export function revokedFirst({ replaces, attempts }: Pick<Entry, "replaces" | "attempts">): string | null {
  return attempts > 0 ? replaces : null;
}

/** True of a rotation of a key that gives it a new secret (§4.4). */
export function isInPlace({ detail }: Pick<Entry, "detail">): boolean {
  return detail.mode === "in_place";
}

/** What the mark of a journal says whose entries are elsewhere. */
export interface Moved {
  readonly to: string;
  /** They are being copied: neither journal may have all of them. */
  readonly isUnfinished: boolean;
}

export function movedWords({ to, isUnfinished }: Moved, journal = "this journal"): string {
  return `The entries of ${journal} ${isUnfinished ? "are being" : "were"} moved to ${to}.`;
}
