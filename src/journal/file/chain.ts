// Whether the records of a file stand as they were appended: each names the checksum of the line before it, and a journal
// that was written anew begins with a digest of what it kept.
import type { Finding } from "../journal.ts";
import { digestOf, type KeptPart } from "../record.ts";
import type { Found, Scan } from "./scan.ts";

const tampered = "a record was edited, removed or moved since it was written";

/** Damage explains itself: of a record behind it nothing more is said. */
export function chainFindings(path: string, { found, damage }: Scan): Finding[] {
  const kept = found[0]?.record.kind === "header" ? found[0].record.kept : undefined;
  const isWhole = kept === undefined || isKept(found, kept);
  const from = kept === undefined ? 1 : kept.records + 1;
  const broken = found.slice(from).filter((one, index) => {
    const before = found[from + index - 1];
    const isAsAppended = one.record.after === undefined || one.record.after === before?.record.sum;
    return !isAsAppended && !damage.some(({ offset }) => offset < one.offset && offset > (before?.offset ?? 0));
  });
  const findings: Finding[] = broken.map(({ line }) => ({
    severity: "problem",
    where: `${path}: before line ${line}`,
    message: tampered,
  }));
  if (isWhole || damage.length > 0) return findings;
  const where = `${path}: lines 2 to ${from}, which \`integ journal prune\` kept`;
  return [{ severity: "problem", where, message: tampered }, ...findings];
}

function isKept(found: readonly Found[], { records, digest }: KeptPart): boolean {
  const sums = found.slice(1, records + 1).map(({ record }) => record.sum);
  return sums.length === records && digestOf(sums) === digest;
}
