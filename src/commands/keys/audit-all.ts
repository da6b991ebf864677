import {
  type AuditInput,
  type Finding,
  type JudgedKey,
  judgeKey,
  rank,
  type Severity,
  type UnjudgedRule,
} from "./audit-rules.ts";
import { applyWaivers, type Waived, type Waiver } from "./audit-waivers.ts";

export interface KeysAudit extends Waived {
  readonly keys: number;
  /** Number of keys, except those that are revoked or have an invalid or undocumented status. */
  readonly judged: number;
  readonly unjudged: readonly UnjudgedRule[];
  readonly counts: Readonly<Record<Severity, number>>;
}

type KeyRow = Readonly<Record<string, unknown>>;

/** @returns findings grouped by key, the key with the worst finding first */
export function auditKeys(rows: readonly KeyRow[], at: AuditInput, waivers: readonly Waiver[] = []): KeysAudit {
  const keys = rows.flatMap((row, index) => judgeKey(row, index + 1, at) ?? []);
  const findings = keys
    .toSorted((one, other) => worstOf(one) - worstOf(other) || one.endsMs - other.endsMs)
    .flatMap((key) => key.findings);
  const waived = applyWaivers(findings, waivers, at.now);
  return {
    ...waived,
    keys: rows.length,
    judged: keys.filter(({ isJudged }) => isJudged).length,
    unjudged: keys.flatMap(({ unjudged }) => unjudged),
    counts: countOf(waived.findings),
  };
}

function worstOf({ findings: [worst] }: JudgedKey): number {
  return worst === undefined ? Number.MAX_VALUE : rank[worst.severity];
}

export function countOf(findings: readonly Finding[]): Record<Severity, number> {
  const counts = { high: 0, medium: 0, low: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}
