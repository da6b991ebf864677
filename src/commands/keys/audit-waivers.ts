// Findings that are accepted until a date.
import { Failure } from "../../errors.ts";
import { type Finding, type RuleName, ruleNames, timeOf } from "./audit-rules.ts";

export interface Waiver {
  readonly rule: RuleName;
  /** Id of the key. */
  readonly key: string;
  /** As written. */
  readonly until: string;
  /** The first moment at which it no longer holds, milliseconds since 1970. */
  readonly endsAt: number;
  readonly reason: string | null;
}

/** What waivers leave of the findings. */
export interface Waived {
  readonly findings: readonly Finding[];
  readonly waived: readonly (Finding & { readonly until: string; readonly reason: string | null })[];
  /** Waivers whose day has passed, and whose finding is back. */
  readonly ended: readonly Waiver[];
  /** Waivers that no finding needs any more. */
  readonly unused: readonly Waiver[];
}

/** A waiver that ends in ten years does not end. */
const longestMs = 366 * 86_400_000;

const example = '{"waivers":[{"rule":"no_expiry","key":"ak_1","until":"2027-01-31","reason":"replaced in January"}]}';

/**
 * Reads a waiver file: `{"waivers":[{"rule","key","until","reason"?}]}`. `until` is a date, which counts to its end in
 * UTC, or a time; at most a year ahead.
 * @param at `path` for messages; `now` in milliseconds since 1970
 * @throws Failure `usage` for anything else: a mistyped waiver would hide nothing or too much
 */
export function readWaivers(text: string, at: { readonly path: string; readonly now: number }): Waiver[] {
  const refuse = (why: string): Failure =>
    new Failure("usage", `${at.path}: ${why}.`, { meaning: `It looks like ${example}` });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw refuse("it is not valid JSON");
  }
  const list = typeof file === "object" && file !== null ? (file as { waivers?: unknown }).waivers : undefined;
  if (!Array.isArray(list)) throw refuse('a list under "waivers" is missing');
  return list.map((item: unknown, index) => {
    const found = readWaiver(item, at.now);
    if (typeof found === "string") throw refuse(`waiver ${index + 1}: ${found}`);
    return found;
  });
}

const members = new Set(["rule", "key", "until", "reason"]);

function readWaiver(item: unknown, now: number): Waiver | string {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return "it is not an object";
  const { rule, key, until, reason = null } = item as Record<string, unknown>;
  const stranger = Object.keys(item).find((name) => !members.has(name));
  if (stranger !== undefined) return `it has an unknown member "${stranger}"`;
  const known = ruleNames.find((name) => name === rule);
  if (known === undefined) return `unknown rule "${String(rule)}"; the rules are ${ruleNames.join(", ")}`;
  if (typeof key !== "string" || key === "") return '"key" must be the id of a key';
  if (reason !== null && typeof reason !== "string") return '"reason" must be a text';
  const endsAt = typeof until === "string" ? endOf(until) : undefined;
  if (typeof until !== "string" || endsAt === undefined) return '"until" must be a date like 2027-01-31: a waiver ends';
  if (endsAt - now > longestMs) return `it lasts until ${until}: a year is the longest`;
  return { rule: known, key, until, endsAt, reason };
}

function endOf(until: string): number | undefined {
  const day = /^(\d{4})-(\d{2})-(\d{2})$/.exec(until);
  if (!day) return timeOf(until);
  const [year, month, date] = day.slice(1).map(Number) as [number, number, number];
  const start = new Date(Date.UTC(year, month - 1, date));
  // The 31st of February is not a day, and Date would call it the 3rd of March.
  return start.getUTCMonth() === month - 1 && start.getUTCDate() === date ? start.getTime() + 86_400_000 : undefined;
}

/** Takes the waived findings out, and says which waivers ended or are not needed. */
export function applyWaivers(findings: readonly Finding[], waivers: readonly Waiver[], now: number): Waived {
  // Of two waivers of one finding the one that ends last counts.
  const byFinding = new Map(
    waivers.toSorted((a, b) => a.endsAt - b.endsAt).map((waiver) => [findingOf(waiver), waiver]),
  );
  const pairs = findings.map((finding) => ({
    finding,
    waiver: finding.key_id === null ? undefined : byFinding.get(finding.id),
  }));
  const met = new Set(pairs.flatMap(({ finding, waiver }) => (waiver === undefined ? [] : [finding.id])));
  const holds = (waiver: Waiver | undefined): waiver is Waiver => waiver !== undefined && waiver.endsAt > now;
  return {
    findings: pairs.filter(({ waiver }) => !holds(waiver)).map(({ finding }) => finding),
    waived: pairs.flatMap(({ finding, waiver }) =>
      holds(waiver) ? [{ ...finding, until: waiver.until, reason: waiver.reason }] : [],
    ),
    ended: pairs.flatMap(({ waiver }) => (waiver !== undefined && !holds(waiver) ? [waiver] : [])),
    unused: waivers.filter((waiver) => !met.has(findingOf(waiver))),
  };
}

/** @returns the id of the finding that a waiver accepts */
function findingOf({ rule, key }: Waiver): string {
  return `${rule}:${key}`;
}
