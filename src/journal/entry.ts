// Defines a journal entry and pure rules about entries. No field holds a secret.
import type * as z from "zod/mini";
import type { Failure } from "../errors.ts";
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

export const unfinishedStates = ["open", "unknown", "pending", "waiting", "secret_lost", "undelivered"] as const;

export const settledStates = ["done", "refused", "unusable", "replaced", "abandoned"] as const;

export type EntryState = (typeof unfinishedStates)[number] | (typeof settledStates)[number];

const settled: ReadonlySet<string> = new Set(settledStates);

/** A state of a newer program, unknown here, counts as unfinished. */
export function isSettled(state: string): boolean {
  return settled.has(state);
}

/** @returns when the next step is due, ISO 8601 UTC; undefined if no time was set for it */
export function dueAt({ state, detail }: Pick<Entry, "state" | "detail">): string | undefined {
  if (state === "waiting") return detail.overlap_until;
  return state === "open" && detail.in_flight !== true ? detail.put_off_until : undefined;
}

/**
 * Milliseconds since 1970 at the end of an overlap; 0 without an overlap. With `overlap_unused_ms`, the overlap ends
 * early, as soon as the old key has been unused for that long. Time before the overlap does not count, because no one
 * had the new key then.
 * @param lastUsedAt of the old key; null if never used, undefined if not shown, so that only the time limit counts
 * @assumed §2.5 does not show a listed key's fields, and describes a created key's `lastUsedAt` only as "Last use.": null means
 * never used, and a use is visible immediately. A time in the future keeps the key.
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

/** True if a request may have arrived and its outcome is unknown, for example after a crash. */
export function mayHaveArrived({ state, detail }: Pick<Sent, "state" | "detail">): boolean {
  return state === "unknown" || detail.in_flight === true;
}

/** True if the last request had no effect and may be repeated: the service refused it with 429, or integ did not send it. */
export function isDeferred({ state, attempts, detail }: Sent): boolean {
  return state === "open" && attempts > 0 && detail.in_flight !== true;
}

/** True for a user's idempotency key: another program may have created the client with it and have its secret. */
export function mayBeCreatedElsewhere({ operation, detail }: Pick<Entry, "operation" | "detail">): boolean {
  return operation === "oauth_client.create" && detail.own_key !== true;
}

export function needsAttention(entry: Entry, nowMs: number): boolean {
  return !isSettled(entry.state) && !(Date.parse(dueAt(entry) ?? "") > nowMs);
}

/** True while a rotation waits for the end of its overlap. An overlap that disuse may end earlier does not count. */
export function isEarly(entry: Entry, nowMs: number): boolean {
  return entry.state === "waiting" && entry.detail.overlap_unused_ms === undefined && !needsAttention(entry, nowMs);
}

export const formatVersion = 3;

export type EntryDetail = Fixed<z.infer<z.ZodMiniObject<typeof detailShape>>>;

export type ClientProof = NonNullable<EntryDetail["proof"]>;

export type KeyExchange = NonNullable<EntryDetail["exchange"]>;

export interface EntryIdentity extends Omit<Fixed<JournalRecord["intent"]>, "operation"> {
  readonly id: string;
  readonly operation: Operation;
}

export interface EntryProgress extends Omit<Fixed<JournalRecord["now"]>, "detail"> {
  readonly state: EntryState;
  readonly detail: EntryDetail;
}

export interface Entry extends EntryIdentity, EntryProgress {
  readonly updated_at: string;
  readonly sequence: number;
}

interface NeededDetail {
  readonly "oauth_client.rotate": "old_client";
  readonly "access_key.revoke": "key_id";
}

export function detailOf<O extends keyof NeededDetail>(
  { id, operation: actual, detail }: Entry,
  operation: O,
): EntryDetail & Required<Pick<EntryDetail, NeededDetail[O]>> {
  if (actual !== operation) throw new Error(`journal entry ${id} is a ${actual}, not a ${operation}`);
  return detail as ReturnType<typeof detailOf<O>>;
}

/** The largest difference between clocks that count as synchronized. */
export const clockSkewMs = 5 * 60_000;

/** @returns milliseconds since 1970, by the service's clock if its offset is known */
export function startedAt({ created_at, clock_offset_ms, detail: { sent_at = created_at } }: Entry): number {
  // The offset is of the machine that sent the request, and another machine's fast clock may have recorded the creation.
  return Math.min(Date.parse(created_at), Date.parse(sent_at)) + (clock_offset_ms ?? 0);
}

interface Here {
  readonly place: string;
  readonly machine: { copy(): string };
}

/** A replaced state folder counts as another place, because the earlier folder may have kept secrets. */
export function attemptedPlaces(
  { place, machine }: Here,
  { attempted_at: places = [], attempted_by: ids = [] }: Entry["detail"],
): readonly string[] {
  const isReplaced = places.includes(place) && ids.length > 0 && !ids.includes(machine.copy());
  return isReplaced ? [...new Set([...places, `a state folder that was at ${place}`])] : places;
}

/** Machines and folders other than `here` that may keep a secret of the entry. */
export function otherPlaces({ detail }: Pick<Entry, "detail">, here: Here): string[] {
  return attemptedPlaces(here, detail).filter((place) => place !== here.place);
}

export function lastErrorOf(failure: Failure): NonNullable<Entry["last_error"]> {
  const { status, code, request_id } = failure.details.problem ?? {};
  return { kind: failure.kind, message: failure.message, status, code, request_id };
}

export function kindOf({ operation }: { readonly operation: string }): "oauth_client" | "access_key" {
  return operation.startsWith("access_key.") ? "access_key" : "oauth_client";
}

export function nounOf(entry: Pick<Entry, "operation">): "client" | "key" {
  return kindOf(entry) === "oauth_client" ? "client" : "key";
}

/** True if the key was found only by name and creation time: it may be someone else's until a person confirms its id. */
export function isGuess({ detail }: Pick<Entry, "detail">): boolean {
  return detail.orphan_certain === false;
}

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

export function requestKey(entry: Omit<RequestIdentity, "organization_id">): string {
  return JSON.stringify([entry.operation, entry.base_url, entry.service_version, entry.fingerprint]);
}

export function isSameRequest(entry: RequestIdentity, intent: RequestIdentity): boolean {
  const isSameOrganization = entry.organization_id?.toLowerCase() === intent.organization_id?.toLowerCase();
  return isSameOrganization && requestKey(entry) === requestKey(intent);
}

/** An idempotency key is unique within its base URL. */
export function keyName({ base_url, idempotency_key }: Pick<Entry, "base_url" | "idempotency_key">): string | null {
  return idempotency_key === null ? null : JSON.stringify([base_url, idempotency_key]);
}

/** An account without its profile: each machine of a team may name the profile differently. */
export interface EntryAccount extends Pick<Entry, "base_url"> {
  readonly organization_id: string | null;
  /** The acting client; undefined for an API key, which does not name its client. */
  readonly principal: string | undefined;
}

/** A profile without an organization id, and its entries, may be of any organization at the address. */
export function mayBeSameOrganization(one: string | null, other: string | null): boolean {
  return one === null || other === null || one.toLowerCase() === other.toLowerCase();
}

export function isOfAccount(entry: Entry, { base_url, organization_id, principal }: EntryAccount): boolean {
  const isSameClient = principal === undefined || entry.principal === undefined || principal === entry.principal;
  const isSameOrganization = organization_id?.toLowerCase() === entry.organization_id?.toLowerCase();
  return base_url === entry.base_url && isSameOrganization && isSameClient;
}

export function resourcesOf({ resource_id, detail }: Pick<Entry, "resource_id" | "detail">): string[] {
  const { client_id, old_client, key_id, old_key } = detail;
  return [resource_id, client_id, old_client, key_id, old_key].filter((id) => typeof id === "string");
}

/** @returns the client or key that a finished entry revoked or found revoked */
export function revokedBy({ operation, state, resource_id, detail }: Entry): string | undefined {
  if (state !== "done") return undefined;
  if (operation === "oauth_client.revoke") return resource_id ?? undefined;
  if (operation === "access_key.revoke") return resource_id ?? detail.key_id;
  if (operation === "oauth_client.rotate" && detail.keep_old !== true) return detail.old_client;
  return operation === "access_key.rotate" ? detail.old_key : undefined;
}

export function hasNoId(entry: Entry): boolean {
  return entry.operation.endsWith(".create") && entry.resource_id === null;
}

export function wasClaimed(entry: Entry): boolean {
  return entry.detail.secret_claimed === true;
}

export function rotatedBy({ detail }: { readonly detail?: EntryDetail }): string | undefined {
  return detail?.old_client ?? detail?.old_key ?? detail?.key_id;
}

/** A replacement is sent only after the replaced client or key is revoked. */
export function revokedEntry({ replaces, attempts }: Pick<Entry, "replaces" | "attempts">): string | null {
  return attempts > 0 ? replaces : null;
}

/** True for a rotation that gives the same key a new secret (§4.4). */
export function isInPlace({ detail }: Pick<Entry, "detail">): boolean {
  return detail.mode === "in_place";
}

/** Marks a journal whose entries were moved, or are being moved, to another journal. */
export interface MoveMark {
  readonly to: string;
  readonly isUnfinished: boolean;
}

export function movedWords({ to, isUnfinished }: MoveMark, journal = "this journal"): string {
  return `The entries of ${journal} ${isUnfinished ? "are being" : "were"} moved to ${to}.`;
}

/** True if the key had expired when `later` began: its secret can no longer work. */
export function isExpiredKey({ operation, request_text }: Entry, later: Entry): boolean {
  if (operation !== "access_key.create") return false;
  return Date.parse((JSON.parse(request_text) as { expiresAt?: string }).expiresAt ?? "") < startedAt(later);
}
