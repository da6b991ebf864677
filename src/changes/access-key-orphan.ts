// Owns: finding the key that a creation of unknown outcome may have made: which key of the list it can be, how certain
// that is, and when its absence is certain. Pure: §4.4 shows neither list nor paging, so every doubt is said.
// Must not know: the journal, how the list was read, what is done about an orphan.
import { type AccessKey, type AccessKeyRequest, readAccessKey } from "../api/access-keys.ts";
import type { Rows } from "../api/json/unknown-list.ts";

/** Clocks of this machine and the service differ by this much at most. */
const clockSkewMs = 5 * 60_000;
/** A request whose connection broke is still being worked on for so long at most. */
const longestWorkMs = 10 * 60_000;
/** No clock is wrong by more: a key made so long before or after cannot be ours. */
const farAwayMs = 24 * 60 * 60_000;
/** The list shows a key this long after it was made, whatever copy of the data it is read from. */
export const settleMs = 15_000;

export interface Sought {
  /** As it was sent. */
  readonly request: AccessKeyRequest;
  /** The name carries an unguessable mark: a key of that name is ours for certain. */
  readonly marked: boolean;
  /** When the entry was written, before the first request, milliseconds since 1970. */
  readonly madeAfter: number;
  /** When the last request may still have been under way. */
  readonly sentUntil: number;
  /** Who acts, where the journal or the list tell it. */
  readonly userId?: string;
  /** Keys that other entries of the journal stand for: never an orphan. */
  readonly knownIds: ReadonlySet<string>;
  /** The profile's own key, where it is known: a list without it is not the whole list. */
  readonly ownId?: string;
}

export type Search =
  /** One key fits and nobody has used it. `certain`: it carries the mark. */
  | { readonly kind: "one"; readonly key: AccessKey & { readonly id: string }; readonly certain: boolean }
  /** A key fits and was used: somebody has its secret. */
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
  const namesakes = keys.filter(
    (key) => key.name === sought.request.name && key.status !== "revoked" && !(key.id && sought.knownIds.has(key.id)),
  );
  const fitting = sought.marked ? namesakes : namesakes.filter((key) => fits(key, sought));
  const [first] = fitting;
  if (first === undefined) return { kind: "none", doubts: doubtsOf(rows, { keys, namesakes, sought, now }) };
  if (fitting.length > 1 || first.id === undefined) return { kind: "several", keys: fitting };
  if (typeof first.lastUsedAt === "string") return { kind: "used", key: first };
  return { kind: "one", key: { ...first, id: first.id }, certain: sought.marked };
}

/** What a key tells must agree with what was sent; what it does not tell excludes nothing. */
function fits(key: AccessKey, { request, madeAfter, sentUntil, userId }: Sought): boolean {
  const created = key.createdAt === undefined ? Number.NaN : Date.parse(key.createdAt);
  if (created < madeAfter - clockSkewMs || created > sentUntil + longestWorkMs + clockSkewMs) return false;
  if (userId !== undefined && key.createdByUserId !== undefined && key.createdByUserId !== userId) return false;
  if (key.keyType !== undefined && key.keyType !== (request.keyType ?? "user_bound")) return false;
  if (key.scopes !== undefined && setOf(key.scopes) !== setOf(request.scopes ?? ["*"])) return false;
  return key.expiresAt === undefined || isSameTime(key.expiresAt, request.expiresAt ?? null);
}

function setOf(scopes: readonly string[]): string {
  return JSON.stringify([...new Set(scopes)].sort());
}

/** To the second: a service may keep no more than that. */
function isSameTime(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(Date.parse(a) - Date.parse(b)) < 1000;
}

function isFarAway({ createdAt = "" }: AccessKey, { madeAfter, sentUntil }: Sought): boolean {
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
  if (rows.saysMore) doubts.push("the list says that there is more, and the document shows no way to ask for it");
  // Whoever may list keys has one: a list without any, or without ours, leaves keys out.
  if (keys.length === 0) doubts.push("the list is empty, and yet a key was used to ask for it");
  else if (sought.ownId !== undefined && !keys.some((key) => key.id === sought.ownId))
    doubts.push("the list leaves out the profile's own key, so it may leave out others");
  if (keys.some((key) => key.name === undefined)) doubts.push("not every key of the list has a name");
  for (const key of namesakes.filter((one) => !isFarAway(one, sought)))
    doubts.push(`the key ${key.id ?? "without id"} has that name, and differs in time, user, type, scopes or expiry`);
  if (now - sought.sentUntil < settleMs) doubts.push("the request was sent a moment ago");
  return doubts;
}
