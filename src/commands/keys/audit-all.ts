// Audits a list of keys: applies the rules to each key, and the waivers to the findings.
import {
  type AuditInput,
  type Finding,
  type JudgedKey,
  judgeKey,
  rank,
  type Severity,
  type Unjudged,
} from "./audit-rules.ts";
import { applyWaivers, type Waived, type Waiver } from "./audit-waivers.ts";

export interface KeysAudit extends Waived {
  /** Number of keys in the list. */
  readonly keys: number;
  /** Number of judged keys, without revoked keys and keys with an undocumented status. */
  readonly judged: number;
  readonly unjudged: readonly Unjudged[];
  readonly counts: Readonly<Record<Severity, number>>;
}

type KeyRow = Readonly<Record<string, unknown>>;

/**
 * @param rows the list's rows, of any shape
 * @returns findings grouped by key, the worst key first
 */
export function auditKeys(rows: readonly KeyRow[], at: AuditInput, waivers: readonly Waiver[] = []): KeysAudit {
  const keys = rows.flatMap((row, index) => judgeKey(row, index + 1, at) ?? []);
  const findings = keys.toSorted((one, other) => worstOf(one) - worstOf(other)).flatMap((key) => key.findings);
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
  return worst === undefined ? Number.POSITIVE_INFINITY : rank[worst.severity];
}

export function countOf(findings: readonly Finding[]): Record<Severity, number> {
  const counts = { high: 0, medium: 0, low: 0 };
  for (const { severity } of findings) counts[severity] += 1;
  return counts;
}
