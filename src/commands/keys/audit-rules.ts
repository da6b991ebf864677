// Judges an access key (§2.4, §3.2) by its row in the list, which may lack fields that a rule needs (§2.5).
import { readAccessKey, type AccessKey } from "../../api/access-keys.ts";
import { clockSkewMs } from "../../journal/entry.ts";
import { type Advice, type NextCommand, shell } from "../../next-step.ts";
import { roundedDuration } from "../../output/relative-time.ts";
import type { Ownership } from "./own-key.ts";

export type Severity = "high" | "medium" | "low";

/** The order of a key's findings of equal severity. */
export const ruleNames = [
  "expired_active",
  "expiring",
  "no_expiry",
  "never_used",
  "idle",
  "too_old",
  "full_access",
  "user_bound",
] as const;
export type RuleName = (typeof ruleNames)[number];

export interface Thresholds {
  readonly maxAgeMs: number;
  readonly maxIdleMs: number;
  readonly expiresWithinMs: number;
}

export interface Finding {
  readonly object: "finding";
  /** `<rule>:<key id>`. Waivers match by this id, so it must stay stable. */
  readonly id: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly key_id: string | null;
  readonly key_name: string | null;
  readonly message: string;
  readonly remedy: NextCommand | Advice;
}

export interface UnjudgedRule {
  readonly object: "unjudged";
  readonly rule: RuleName;
  readonly key_id: string | null;
  readonly key_name: string | null;
  readonly reason: string;
}

/** Findings are sorted, the worst first. */
export interface JudgedKey {
  readonly findings: readonly Finding[];
  readonly unjudged: readonly UnjudgedRule[];
  /** The expiry in milliseconds since 1970; `Number.MAX_VALUE` without a known one. */
  readonly endsMs: number;
  /** False for an invalid or undocumented status. */
  readonly isJudged: boolean;
}

export interface AuditInput {
  /** Milliseconds since 1970, by the service's clock. */
  readonly now: number;
  readonly limits: Thresholds;
  readonly caller: Caller;
  /** Remedies by key id, in place of those of the rules, for keys in a policy or a running overlap. */
  readonly ending?: ReadonlyMap<string, Advice>;
}

type Remedy = "revoke" | "keep" | "narrow" | { readonly replaceWith: readonly string[] };

interface FindingVerdict {
  readonly kind: "finding";
  readonly severity: Severity;
  readonly message: string;
  readonly remedy: Remedy;
}

type Verdict = FindingVerdict | { readonly kind: "fine" } | { readonly kind: "unjudged"; readonly reason: string };

interface JudgedCase extends KeyAt {
  readonly id: string | undefined;
  readonly limits: Thresholds;
  readonly ownership: Ownership;
  readonly caller: Caller;
}

/** The profile that runs the audit. A remedy must not lock this profile out. */
export interface Caller {
  /** Such as `profile prod`. */
  readonly name: string;
  readonly isSecretStored: boolean;
  readonly ownership: (id: string) => Ownership;
}

/** Omits exact durations below an hour, so that repeated runs print the same message. */
const whole = (ms: number): string => (ms < 3_600_000 ? "less than an hour" : roundedDuration(ms, true));
const fine: Verdict = { kind: "fine" };

function finding(severity: Severity, message: string, remedy: Remedy): Verdict {
  return { kind: "finding", severity, message, remedy };
}

function unjudged(reason: string): Verdict {
  return { kind: "unjudged", reason };
}

/** @param index of the row in the list, from 1. @returns undefined for a revoked key */
export function judgeKey(row: Readonly<Record<string, unknown>>, index: number, at: AuditInput): JudgedKey | undefined {
  const key = readAccessKey(row);
  if (key.status === "revoked") return undefined;
  // Objects are written out, because spreads would be much slower for 100,000 keys.
  const [key_id, key_name] = [key.id ?? null, key.name ?? null];
  const { now, limits, caller, ending } = at;
  const ownership = key.id === undefined ? "maybe" : caller.ownership(key.id);
  const subject: JudgedCase = {
    now,
    limits,
    caller,
    key,
    id: key.id,
    ownership,
    has: (member) => Object.hasOwn(row, member),
  };
  const undocumented = statusVerdict(subject);
  const unjudgedRules: UnjudgedRule[] = [];
  const verdicts: { readonly rule: RuleName; readonly verdict: FindingVerdict }[] = [];
  for (const rule of ruleNames) {
    const verdict = undocumented ?? rules[rule](subject);
    if (verdict.kind === "finding") verdicts.push({ rule, verdict });
    if (verdict.kind !== "unjudged") continue;
    unjudgedRules.push({ object: "unjudged", rule, key_id, key_name, reason: verdict.reason });
  }
  const remedies = verdicts.map(({ verdict }) => verdict.remedy);
  const remedy =
    ending?.get(key.id ?? "") ?? (verdicts.length === 0 ? remedyWithoutId : mergedRemedy(subject, remedies));
  const expiry = expiryOf(subject);
  const endsMs = typeof expiry === "number" ? expiry : Number.MAX_VALUE;
  const findings = verdicts.map(({ rule, verdict: { severity, message } }): Finding => {
    const id = `${rule}:${key.id ?? `row-${index}`}`;
    return { object: "finding", id, rule, severity, key_id, key_name, message, remedy };
  });
  const isJudged = undocumented === undefined;
  return { findings: findings.sort(bySeverity), unjudged: unjudgedRules, endsMs, isJudged };
}

export const rank: Readonly<Record<Severity, number>> = { high: 0, medium: 1, low: 2 };

export function isAtLeast(severity: Severity, least: Severity): boolean {
  return rank[severity] <= rank[least];
}

function bySeverity(a: Finding, b: Finding): number {
  return rank[a.severity] - rank[b.severity];
}

/** @param unjudged grouped by key */
export function* unjudgedLines(unjudged: Iterable<UnjudgedRule>): Iterable<string> {
  let rules = new Map<string, string[]>();
  let last: string | undefined;
  for (const { rule, key_id, key_name, reason } of unjudged) {
    const key = key_id ?? key_name ?? "a key without id";
    if (key !== last) yield* linesOf(last, rules);
    if (key !== last) rules = new Map();
    last = key;
    rules.set(reason, [...(rules.get(reason) ?? []), rule]);
  }
  yield* linesOf(last, rules);
}

function* linesOf(key: string | undefined, rules: ReadonlyMap<string, readonly string[]>): Iterable<string> {
  for (const [reason, names] of rules)
    yield `${key}: ${names.length === ruleNames.length ? "the key" : names.join(", ")} could not be judged: ${reason}.`;
}

/** `judgeKey` skips revoked keys. §3.2 documents only one other status: `active`, in lower case. */
function statusVerdict({ key: { status }, has }: JudgedCase): Verdict | undefined {
  if (status === undefined) return has("status") ? unjudged("its status is invalid") : undefined;
  return status === "active" ? undefined : unjudged(`status "${status}" is not documented`);
}

/** A younger unused key may be used soon. */
const firstUseMs = 86_400_000;

const rules: Readonly<Record<RuleName, (subject: JudgedCase) => Verdict>> = {
  expired_active(subject) {
    const expiry = expiryOf(subject);
    // `no_expiry` reports a missing or unknown expiry.
    if (typeof expiry !== "number" || expiry > subject.now) return fine;
    if (subject.key.status === undefined)
      return unjudged(`it expired at ${subject.key.expiresAt}, and the response has no status`);
    return finding("high", `expired at ${subject.key.expiresAt}, but the API still reports it as active`, "revoke");
  },
  expiring(subject) {
    const expiry = expiryOf(subject);
    const { now, limits, key } = subject;
    if (typeof expiry !== "number" || expiry <= now || expiry - now > limits.expiresWithinMs) return fine;
    return finding("medium", `expires at ${key.expiresAt}, in ${whole(expiry - now)}`, {
      replaceWith: ["--expires-in", "90d"],
    });
  },
  no_expiry(subject) {
    const expiry = expiryOf(subject);
    if (expiry === null) return finding("medium", "has no expiry", { replaceWith: ["--expires-in", "90d"] });
    return typeof expiry === "string" ? unjudged(expiry) : fine;
  },
  never_used(subject) {
    const used = pastTime(subject, "lastUsedAt");
    if (typeof used === "string") return unjudged(used);
    if (used !== null) return fine;
    const age = ageOf(subject);
    if (typeof age === "string") return unjudged(`it was never used, and ${age}`);
    if (age <= firstUseMs) return fine;
    const severity = age > subject.limits.maxIdleMs ? "medium" : "low";
    return finding(severity, `was never used in the ${whole(age)} since its creation`, "revoke");
  },
  idle(subject) {
    const used = pastTime(subject, "lastUsedAt");
    // `never_used` judges a missing, null or unusable time.
    if (typeof used !== "number" || subject.now - used <= subject.limits.maxIdleMs) return fine;
    return finding("medium", `was last used at ${subject.key.lastUsedAt}, ${whole(subject.now - used)} ago`, "revoke");
  },
  too_old(subject) {
    const age = ageOf(subject);
    if (typeof age === "string") return unjudged(age);
    if (age <= subject.limits.maxAgeMs) return fine;
    return finding("medium", `was created at ${subject.key.createdAt}, ${whole(age)} ago`, {
      replaceWith: ["--overlap", "1d"],
    });
  },
  full_access(subject) {
    const { key, has } = subject;
    if (key.scopes === undefined)
      return unjudged(has("scopes") ? "its scopes are invalid" : "the response has no scopes");
    if (!key.scopes.includes("*")) return fine;
    // The caller's own key needs this scope. For another key, a person must find out its use.
    const remedy = subject.ownership === "own" ? "keep" : "narrow";
    return finding("medium", "has full access (scope *)", remedy);
  },
  user_bound(subject) {
    const { key, has } = subject;
    if (key.keyType === undefined)
      return unjudged(has("keyType") ? "its keyType is invalid" : "the response has no keyType");
    if (key.keyType !== "user_bound") return fine;
    const whose = key.boundEmail === undefined ? "a person" : key.boundEmail;
    return finding("low", `is bound to ${whose}: it stops working when that account does`, {
      replaceWith: ["--type", "service_account"],
    });
  },
};

const remedyWithoutId: Advice = "Ask the service's operator for the id of this key.";

/**
 * A revocation fixes all findings; a replacement has the flags of all. The caller's own key is never revoked before the
 * caller has another one.
 */
function mergedRemedy(subject: JudgedCase, remedies: readonly Remedy[]): NextCommand | Advice {
  const { id, ownership, caller } = subject;
  if (id === undefined) return remedyWithoutId;
  if (remedies.every((remedy) => remedy === "keep"))
    return `Keep its scope: ${caller.name} needs it to administer keys.`;
  if (remedies.every((remedy) => remedy === "narrow"))
    return `Check that this key only pushes data, then: ${shell`integ keys rotate ${id} --by-replacement --scope ${"push-ingest:*"}`}`;
  const revokes = remedies.includes("revoke");
  if (ownership === "own" && !caller.isSecretStored)
    return `Give ${caller.name} another key, then: ${shell`integ keys revoke ${id}`}`;
  if (revokes && ownership !== "own") return guardedRemedy(subject, shell`integ keys revoke ${id}`);
  const flags = remedies.flatMap((remedy) => (typeof remedy === "object" ? [remedy.replaceWith] : []));
  const once = [...new Map(flags.map((words) => [words.join("\0"), words])).values()].flat();
  const own = ownership === "own" ? ["--update-profile"] : [];
  return guardedRemedy(subject, shell`integ keys rotate ${id} --by-replacement ${[...own, ...once]}`);
}

function guardedRemedy({ ownership, caller }: JudgedCase, command: NextCommand): NextCommand | Advice {
  return ownership === "maybe" ? `Check that ${caller.name} does not use this key, then: ${command}` : command;
}

export interface KeyAt {
  readonly key: AccessKey;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Also true if the member has an invalid type. */
  readonly has: (member: string) => boolean;
}

/** @returns milliseconds since 1970, null if the key never expires, or a text that says why the expiry is unknown */
export function expiryOf({ key, has }: KeyAt): number | null | string {
  if (key.expiresAt === null) return null;
  if (key.expiresAt === undefined)
    return has("expiresAt") ? "its expiresAt is invalid" : "the response has no expiresAt";
  return timeOf(key.expiresAt) ?? `its expiresAt is not a time: ${key.expiresAt}`;
}

/** @returns milliseconds since 1970, null for null, or a text that says why the time is unusable */
export function pastTime({ key, now, has }: KeyAt, member: "lastUsedAt" | "createdAt"): number | null | string {
  const text = key[member];
  if (text === null) return null;
  if (text === undefined) return has(member) ? `its ${member} is invalid` : `the response has no ${member}`;
  const time = timeOf(text);
  if (time === undefined) return `its ${member} is not a time: ${text}`;
  return time - now > clockSkewMs ? `its ${member} lies in the future: ${text}` : time;
}

/** @returns milliseconds, or why the age is unknown */
export function ageOf(subject: KeyAt): number | string {
  const created = pastTime(subject, "createdAt");
  if (typeof created === "number") return Math.max(0, subject.now - created);
  return created ?? "its createdAt is null";
}

/** @returns milliseconds since 1970. Unlike `Date.parse`, requires a time of day and a zone. */
export function timeOf(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/i.test(text)) return undefined;
  const time = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(time) ? undefined : time;
}
