// Owns: what an audit came to, as a document for programs. Pure.
// Must not know: rules, how anything is printed.
import type { Finding, Judgement, Severity, Thresholds } from "./audit-rules.ts";
import type { Waived } from "./waivers.ts";

/** An audit with its waivers applied. */
export type Report = Judgement &
  Waived & {
    readonly keys: number;
    readonly complete: boolean;
    readonly limits: Thresholds;
    readonly now: number;
  };

/** All that an audit came to as one document: a list envelope of its findings, and beside it what is no finding. */
export function documentOf(report: Report, where: string): object {
  const { findings, waived, unjudged, ended, unused, limits } = report;
  return {
    object: "list",
    data: findings,
    next_page_token: null,
    has_more: false,
    audit: {
      checked_at: new Date(report.now).toISOString(),
      where,
      keys: report.keys,
      keys_judged: report.judged,
      complete: report.complete,
      findings_by_severity: countOf(findings),
      thresholds_seconds: {
        max_age: limits.maxAgeMs / 1000,
        max_idle: limits.maxIdleMs / 1000,
        expires_within: limits.expiresWithinMs / 1000,
      },
    },
    unjudged,
    waived,
    waivers_ended: ended.map(({ rule, key, until }) => ({ rule, key, until })),
    waivers_unused: unused.map(({ rule, key, until }) => ({ rule, key, until })),
  };
}

export function countOf(findings: readonly Finding[]): Record<Severity, number> {
  const count = { high: 0, medium: 0, low: 0 };
  for (const { severity } of findings) count[severity] += 1;
  return count;
}
