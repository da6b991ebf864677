// Finds the key of a creation whose response was lost. If no listed key fits, gives the reasons why the key may exist
// anyway.
import { type AccessKey, type AccessKeyRequest, readAccessKey } from "./access-keys.ts";
import type { Rows } from "./json/unknown-list.ts";
/** @assumed after a lost connection, a request is processed for this long at most (§4.4 "not shown") */
const longestWorkMs = 10 * 60_000;
/** @assumed `createdAt` is the time of the request (§4.4 "not shown"): a key that differs by more is another key */
const longestDistanceMs = 24 * 60 * 60_000;
/** @assumed the list shows a key this long after its creation at the latest, from any replica (§4.4 "not shown") */
export const settleMs = 15_000;

export interface Criteria {
  readonly request: AccessKeyRequest;
  /**
   * True if the name ends with this entry's random mark, so that only its requests can have created a key of that name.
   */
  readonly marked: boolean;
  /** When the entry was created, before its first request; ms since 1970 by the service's clock. */
  readonly createdAfter: number;
  /** The latest time at which a request may have been in progress; ms since 1970 by the service's clock. */
  readonly sentUntil: number;
  /** False if the entry's times may be wrong by any amount. A namesake that does not fit is then always a doubt. */
  readonly isClockKnown: boolean;
  readonly skewMs: number;
  /** The creator of the newest other key that this profile created. */
  readonly userId?: string;
  readonly knownIds: ReadonlySet<string>;
  /** The profile's own key. A list without it is incomplete. */
  readonly ownId?: string;
}

export type Search =
  /** One unused key fits. `certain`: its name has the random mark. */
  | { readonly kind: "one"; readonly key: AccessKey & { readonly id: string }; readonly certain: boolean }
  /** The only key that fits has been used: someone has its secret. */
  | { readonly kind: "used"; readonly key: AccessKey }
  | { readonly kind: "several"; readonly keys: readonly AccessKey[] }
  /** No key fits. If `doubts` is empty, the service created none. */
  | { readonly kind: "none"; readonly doubts: readonly string[] };

export function findOrphan(rows: Rows, sought: Criteria, now: number): Search {
  const keys = rows.rows.map((row) => readAccessKey(row.value));
  const namesakes = namesakesIn(rows, sought.request).filter((key) => !(key.id && sought.knownIds.has(key.id)));
  const fitting = sought.marked ? namesakes : namesakes.filter((key) => fits(key, sought));
  const [first] = fitting;
  if (first === undefined) return { kind: "none", doubts: doubtsOf(rows, { keys, namesakes, sought, now }) };
  if (fitting.length > 1 || first.id === undefined) return { kind: "several", keys: fitting };
  if (typeof first.lastUsedAt === "string") return { kind: "used", key: first };
  return { kind: "one", key: { ...first, id: first.id }, certain: sought.marked };
}

export function namesakesIn({ rows }: Rows, { name }: AccessKeyRequest): AccessKey[] {
  return rows.map((row) => readAccessKey(row.value)).filter((key) => key.name === name && key.status !== "revoked");
}

function fits(key: AccessKey, { request, createdAfter, sentUntil, skewMs, userId }: Criteria): boolean {
  const created = key.createdAt === undefined ? Number.NaN : Date.parse(key.createdAt);
  if (created < createdAfter - skewMs || created > sentUntil + longestWorkMs + skewMs) return false;
  if (userId !== undefined && key.createdByUserId !== undefined && key.createdByUserId !== userId) return false;
  if (key.keyType !== undefined && key.keyType !== (request.keyType ?? "user_bound")) return false;
  if (key.scopes !== undefined && scopeSet(key.scopes) !== scopeSet(request.scopes ?? ["*"])) return false;
  return key.expiresAt === undefined || isSameTime(key.expiresAt, request.expiresAt ?? null);
}

function scopeSet(scopes: readonly string[]): string {
  return JSON.stringify([...new Set(scopes)].sort());
}

/** A service may drop fractions of a second. */
function isSameTime(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(Date.parse(a) - Date.parse(b)) < 1000;
}

function isTooDistant({ createdAt = "" }: AccessKey, { createdAfter, sentUntil, isClockKnown }: Criteria): boolean {
  if (!isClockKnown) return false;
  const created = Date.parse(createdAt);
  return created < createdAfter - longestDistanceMs || created > sentUntil + longestDistanceMs;
}

interface ListedKeys {
  readonly keys: readonly AccessKey[];
  readonly namesakes: readonly AccessKey[];
  readonly sought: Criteria;
  readonly now: number;
}

function doubtsOf(rows: Rows, { keys, namesakes, sought, now }: ListedKeys): string[] {
  const doubts: string[] = [];
  if (rows.saysMore) doubts.push("the list says that more keys exist, and the API document shows no way to fetch them");
  // A list without any key, or without the profile's key, is incomplete: the request itself used a key.
  if (keys.length === 0) doubts.push("the list is empty, although a key was used to request it");
  else if (sought.ownId !== undefined && !keys.some((key) => key.id === sought.ownId))
    doubts.push("the list does not contain the profile's own key, so others may be missing too");
  if (keys.some((key) => key.name === undefined)) doubts.push("some keys of the list have no name");
  for (const key of namesakes.filter((one) => !isTooDistant(one, sought)))
    doubts.push(`the key ${key.id ?? "without id"} has that name, but differs in time, user, type, scopes or expiry`);
  if (!sought.isClockKnown && namesakes.length > 0)
    doubts.push("this machine's clock was wrong, or not compared with the service's, when the key was requested");
  if (now - sought.sentUntil < settleMs) doubts.push("the request was sent a moment ago");
  return doubts;
}
