// Owns: what makes an access key a risk (§2.4, §3.2), told from its row alone: findings, and what the row does not let
// anybody judge. Pure: time is handed in.
// Must not know: the API, files, how a finding is shown. Waivers: waivers.ts.
import { readAccessKey } from "../../api/access-keys.ts";
import { ageOf, days, expiryOf, type KeyAt, pastTime } from "./key-times.ts";

export type Severity = "high" | "medium" | "low";

/** Every rule, in the order in which findings of one key are listed. */
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

/** Limits in milliseconds. */
export interface Thresholds {
  readonly maxAgeMs: number;
  readonly maxIdleMs: number;
  readonly expiresWithinMs: number;
}

export interface Finding {
  readonly object: "finding";
  /** `<rule>:<key id>`: stable, what a waiver names. */
  readonly id: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly key_id: string | null;
  readonly key_name: string | null;
  /** What was seen, with the dates that it rests on. */
  readonly message: string;
  /** What to do about it: a command where one does it. */
  readonly remedy: string;
}

/** A rule that could not be judged for a key: said, not guessed. */
export interface Unjudged {
  readonly object: "unjudged";
  readonly rule: RuleName;
  readonly key_id: string | null;
  readonly key_name: string | null;
  /** Why: the field that is missing or makes no sense. */
  readonly reason: string;
}

export interface Judgement {
  readonly findings: readonly Finding[];
  readonly unjudged: readonly Unjudged[];
  /** Keys that were judged: all but the revoked ones. */
  readonly judged: number;
}

type Verdict =
  | { readonly kind: "fine" }
  | { readonly kind: "finding"; readonly severity: Severity; readonly message: string; readonly remedy: string }
  | { readonly kind: "unjudged"; readonly reason: string };

interface Case extends KeyAt {
  /** As commands write it. */
  readonly id: string;
  readonly limits: Thresholds;
}

const fine: Verdict = { kind: "fine" };

function finding(severity: Severity, message: string, remedy: string): Verdict {
  return { kind: "finding", severity, message, remedy };
}

function unjudged(reason: string): Verdict {
  return { kind: "unjudged", reason };
}

/**
 * Judges every key that is not revoked.
 * @param rows the rows of the list as they came; any shape
 * @param at `now`: milliseconds since 1970, this machine's clock
 */
export function auditKeys(
  rows: readonly Readonly<Record<string, unknown>>[],
  at: { readonly now: number; readonly limits: Thresholds },
): Judgement {
  const findings: Finding[] = [];
  const open: Unjudged[] = [];
  let judged = 0;
  for (const [index, row] of rows.entries()) {
    const key = readAccessKey(row);
    if (key.status === "revoked") continue;
    judged += 1;
    const facts = { key_id: key.id ?? null, key_name: key.name ?? null };
    const subject: Case = {
      ...at,
      key,
      id: key.id === undefined ? "<id>" : shellWord(key.id),
      has: (member) => Object.hasOwn(row, member),
    };
    for (const rule of ruleNames) {
      const verdict = judge(rule, subject);
      if (verdict.kind === "unjudged") open.push({ object: "unjudged", rule, ...facts, reason: verdict.reason });
      if (verdict.kind !== "finding") continue;
      const { severity, message, remedy } = verdict;
      const id = `${rule}:${key.id ?? `row-${index + 1}`}`;
      findings.push({ object: "finding", id, rule, severity, ...facts, message, remedy });
    }
  }
  return { findings: findings.sort(worstFirst), unjudged: open, judged };
}

const rank: Readonly<Record<Severity, number>> = { high: 0, medium: 1, low: 2 };

/** True where `severity` is as bad as `least`, or worse. */
export function isAsBadAs(severity: Severity, least: Severity): boolean {
  return rank[severity] <= rank[least];
}

function worstFirst(a: Finding, b: Finding): number {
  return rank[a.severity] - rank[b.severity];
}

function judge(rule: RuleName, subject: Case): Verdict {
  const { status } = subject.key;
  // §3.2 knows two states. A third one may mean anything, so nothing is claimed about such a key.
  if (status !== undefined && status !== "active") return unjudged(`status "${status}" is not documented`);
  return rules[rule](subject);
}

const rules: Readonly<Record<RuleName, (subject: Case) => Verdict>> = {
  expired_active(subject) {
    const expiry = expiryOf(subject);
    // What cannot be told of the expiry is said once, by `no_expiry`.
    if (typeof expiry !== "number" || expiry > subject.now) return fine;
    if (subject.key.status === undefined)
      return unjudged(`it expired at ${subject.key.expiresAt}, and the answer has no status`);
    return finding("high", `expired at ${subject.key.expiresAt}, and its status is active`, revoke(subject));
  },
  expiring(subject) {
    const expiry = expiryOf(subject);
    const { now, limits, key } = subject;
    if (typeof expiry !== "number" || expiry <= now || expiry - now > limits.expiresWithinMs) return fine;
    return finding(
      "medium",
      `expires at ${key.expiresAt}, in ${days(expiry - now)}`,
      `${replace(subject)} --expires-in 90d`,
    );
  },
  no_expiry(subject) {
    const expiry = expiryOf(subject);
    if (expiry === null) return finding("medium", "has no expiry", `${replace(subject)} --expires-in 90d`);
    return typeof expiry === "string" ? unjudged(expiry) : fine;
  },
  never_used(subject) {
    const used = pastTime(subject, "lastUsedAt");
    if (typeof used === "string") return unjudged(used);
    if (used !== null) return fine;
    const age = ageOf(subject);
    if (typeof age === "string") return unjudged(`it was never used, and ${age}`);
    const severity = age > subject.limits.maxIdleMs ? "medium" : "low";
    return finding(severity, `was never used; created at ${subject.key.createdAt}, ${days(age)} ago`, revoke(subject));
  },
  idle(subject) {
    const used = pastTime(subject, "lastUsedAt");
    // Said by `never_used`.
    if (typeof used !== "number" || subject.now - used <= subject.limits.maxIdleMs) return fine;
    return finding(
      "medium",
      `was last used at ${subject.key.lastUsedAt}, ${days(subject.now - used)} ago`,
      revoke(subject),
    );
  },
  too_old(subject) {
    const age = ageOf(subject);
    if (typeof age === "string") return unjudged(age);
    if (age <= subject.limits.maxAgeMs) return fine;
    return finding(
      "medium",
      `was created at ${subject.key.createdAt}, ${days(age)} ago`,
      `${replace(subject)} --overlap 1d`,
    );
  },
  full_access(subject) {
    const { key, has } = subject;
    if (key.scopes === undefined)
      return unjudged(has("scopes") ? "its scopes make no sense" : "the answer has no scopes");
    if (!key.scopes.includes("*")) return fine;
    return finding(
      "medium",
      "may do everything (scope *); pushing data alone takes push-ingest:*",
      `${replace(subject)} --scope 'push-ingest:*'`,
    );
  },
  user_bound({ key, id, has }) {
    if (key.keyType === undefined)
      return unjudged(has("keyType") ? "its keyType makes no sense" : "the answer has no keyType");
    if (key.keyType !== "user_bound") return fine;
    const whose = key.boundEmail === undefined ? "a person" : key.boundEmail;
    return finding(
      "low",
      `is bound to ${whose}: it stands and falls with that account`,
      `integ keys rotate ${id} --by-replacement --type service_account`,
    );
  },
};

function revoke({ id }: Case): string {
  return `integ keys revoke ${id}`;
}

function replace({ id }: Case): string {
  return `integ keys rotate ${id} --by-replacement`;
}

/** The service's word as one word of a command that somebody may copy into a shell. */
function shellWord(text: string): string {
  return /^[\w.:@%+=/][\w.:@%+=/-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
