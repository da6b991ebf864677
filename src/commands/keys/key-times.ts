// Owns: the times of an access key as its row tells them (§2.4), with words for what makes no sense. Pure.
// Must not know: rules, thresholds.
import type { AccessKey } from "../../api/access-keys.ts";

/** Clocks differ by this much before a time in the future makes no sense. */
const clockSkewMs = 5 * 60_000;

/** A key as it was seen at a moment. */
export interface KeyAt {
  readonly key: AccessKey;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** The row has the member, whatever its type. */
  readonly has: (member: string) => boolean;
}

/** Milliseconds since 1970; null where the key never expires; words where the row does not tell. */
export function expiryOf({ key, has }: KeyAt): number | null | string {
  if (key.expiresAt === null) return null;
  if (key.expiresAt === undefined)
    return has("expiresAt") ? "its expiresAt makes no sense" : "the answer has no expiresAt";
  return timeOf(key.expiresAt) ?? `its expiresAt is no time: ${key.expiresAt}`;
}

/** Milliseconds since 1970, null for null; words where there is none or it lies in the future. */
export function pastTime({ key, now, has }: KeyAt, member: "lastUsedAt" | "createdAt"): number | null | string {
  const text = key[member];
  if (text === null) return null;
  if (text === undefined) return has(member) ? `its ${member} makes no sense` : `the answer has no ${member}`;
  const time = timeOf(text);
  if (time === undefined) return `its ${member} is no time: ${text}`;
  return time - now > clockSkewMs ? `its ${member} lies in the future: ${text}` : time;
}

/** Milliseconds, at least 0, or words. */
export function ageOf(subject: KeyAt): number | string {
  const created = pastTime(subject, "createdAt");
  if (typeof created === "number") return Math.max(0, subject.now - created);
  return created ?? "its createdAt is null";
}

/** A date-time as RFC 3339 writes it. `Date.parse` alone takes almost anything for a time. */
export function timeOf(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/i.test(text)) return undefined;
  const time = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(time) ? undefined : time;
}

/** `2 days`, `5 hours`, `less than an hour`. */
export function days(ms: number): string {
  const hours = Math.floor(ms / 3_600_000);
  if (hours < 1) return "less than an hour";
  const [count, unit] = hours < 48 ? [hours, "hour"] : [Math.floor(hours / 24), "day"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
