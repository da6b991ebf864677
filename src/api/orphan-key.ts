// Which key of a list a lost creation made: what fits, what does not, and when its absence proves that nothing was made.
import { type AccessKey, type AccessKeyRequest, readAccessKey } from "./access-keys.ts";
import type { Rows } from "./json/unknown-list.ts";
/** @assumed a request whose connection broke is processed for this long at most (§4.4 "not shown") */
const longestWorkMs = 10 * 60_000;
/** @assumed `createdAt` is the time of the request by the service's clock (§4.4 "not shown"): a key made so long before or after cannot be ours */
const farAwayMs = 24 * 60 * 60_000;
/** @assumed the list shows a key this long after it was made, from whatever copy of the data it is read (§4.4 "not shown") */
export const settleMs = 15_000;

export interface Sought {
  /** As it was sent. */
  readonly request: AccessKeyRequest;
  /** The name carries an unguessable mark: a key of that name is certainly ours. */
  readonly marked: boolean;
  /** When the entry was written, before the first request, milliseconds since 1970. */
  readonly madeAfter: number;
  /** When the last request may still have been under way. Both by the service's clock. */
  readonly sentUntil: number;
  /** False if the times of the entry may be wrong by any amount: then they exclude no key of that name. */
  readonly isClockKnown: boolean;
  /** How far clocks that agree are apart at most. */
  readonly skewMs: number;
  /** Who acts, if the journal or the list give it. */
  readonly userId?: string;
  /** Keys of that name that other entries of the journal stand for: never an orphan. */
  readonly knownIds: ReadonlySet<string>;
  /** The profile's own key, if it is known: a list without it is not the whole list. */
  readonly ownId?: string;
}

export type Search =
  /** One key fits and was never used. `certain`: it carries the mark. */
  | { readonly kind: "one"; readonly key: AccessKey & { readonly id: string }; readonly certain: boolean }
  /** A key fits and was used: its secret is in use. */
  | { readonly kind: "used"; readonly key: AccessKey }
  | { readonly kind: "several"; readonly keys: readonly AccessKey[] }
  /** `doubts`: why its absence proves nothing; none of them left means that nothing was made. */
  | { readonly kind: "none"; readonly doubts: readonly string[] };

/**
 * @param rows the list as it came
 * @param now milliseconds since 1970, when the list was asked for
 */
export function findOrphan(rows: Rows, sought: Sought, now: number): Search {
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

/** Every field of the key must fit the request; a missing field excludes nothing. */
function fits(key: AccessKey, { request, madeAfter, sentUntil, skewMs, userId }: Sought): boolean {
  const created = key.createdAt === undefined ? Number.NaN : Date.parse(key.createdAt);
  if (created < madeAfter - skewMs || created > sentUntil + longestWorkMs + skewMs) return false;
  if (userId !== undefined && key.createdByUserId !== undefined && key.createdByUserId !== userId) return false;
  if (key.keyType !== undefined && key.keyType !== (request.keyType ?? "user_bound")) return false;
  if (key.scopes !== undefined && scopeSet(key.scopes) !== scopeSet(request.scopes ?? ["*"])) return false;
  return key.expiresAt === undefined || isSameTime(key.expiresAt, request.expiresAt ?? null);
}

function scopeSet(scopes: readonly string[]): string {
  return JSON.stringify([...new Set(scopes)].sort());
}

/** To the second: a service may keep no more than that. */
function isSameTime(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(Date.parse(a) - Date.parse(b)) < 1000;
}

function isFarAway({ createdAt = "" }: AccessKey, { madeAfter, sentUntil, isClockKnown }: Sought): boolean {
  if (!isClockKnown) return false;
  const created = Date.parse(createdAt);
  return created < madeAfter - farAwayMs || created > sentUntil + farAwayMs;
}

interface Seen {
  readonly keys: readonly AccessKey[];
  readonly namesakes: readonly AccessKey[];
  readonly sought: Sought;
  readonly now: number;
}

function doubtsOf(rows: Rows, { keys, namesakes, sought, now }: Seen): string[] {
  const doubts: string[] = [];
  if (rows.saysMore) doubts.push("the list says that more keys exist, and the API document shows no way to fetch them");
  // Anyone who may list keys has one: a list without any, or without ours, leaves keys out.
  if (keys.length === 0) doubts.push("the list is empty, although a key was used to request it");
  else if (sought.ownId !== undefined && !keys.some((key) => key.id === sought.ownId))
    doubts.push("the list does not contain the profile's own key, so others may be missing too");
  if (keys.some((key) => key.name === undefined)) doubts.push("some keys of the list have no name");
  for (const key of namesakes.filter((one) => !isFarAway(one, sought)))
    doubts.push(`the key ${key.id ?? "without id"} has that name, but differs in time, user, type, scopes or expiry`);
  if (!sought.isClockKnown && namesakes.length > 0)
    doubts.push("this machine's clock was wrong, or not compared with the service's, when the key was requested");
  if (now - sought.sentUntil < settleMs) doubts.push("the request was sent a moment ago");
  return doubts;
}
