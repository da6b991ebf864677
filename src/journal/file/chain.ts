// Whether the records of a file stand as they were appended: each names the checksum of the line before it, and a journal
// that was written again begins with a digest of what it kept.
import { createHash, type Hash } from "node:crypto";
import type { Finding } from "../journal.ts";
import type { KeptPart } from "../record.ts";
import type { PieceFacts } from "./piece-facts.ts";
import type { Damage, LineStart, Scan } from "./scan.ts";

const tampered = "a record was edited, removed or moved since it was written";

/** Is shown a file from its beginning, in as many pieces as it is read in. */
export class ChainCheck {
  #kept: KeptPart | undefined;
  #digest: Hash | undefined;
  /** Records so far. */
  #count = 0;
  #before: { readonly sum: string; readonly offset: number } | undefined;
  #damage: readonly Damage[] = [];
  readonly #broken: number[] = [];
  #isDamaged = false;

  add({ found, damage }: Pick<Scan, "found" | "damage">): void {
    this.#damage = [...this.#damage, ...damage];
    this.#isDamaged ||= damage.length > 0;
    for (const one of found) this.#addRecord(one);
    this.#damage = damage.slice(-1);
  }

  /** Whether they are beyond what was kept, or all of them within. */
  takes({ records }: PieceFacts): boolean {
    if (this.#before === undefined) return false;
    const kept = 1 + (this.#kept?.records ?? 0);
    return this.#count >= kept || this.#count + records <= kept;
  }

  /** @param at where the piece begins, right behind a sound record */
  addFacts({ records, sums, after, firstLine, lastSum, lastPlace, broken }: PieceFacts, at: LineStart): void {
    const before = this.#before;
    this.#before = { sum: lastSum, offset: lastPlace.offset };
    this.#damage = [];
    const isKept = this.#kept !== undefined && this.#count <= this.#kept.records;
    this.#count += records;
    if (isKept) return void this.#digest?.update(sums);
    const first = after === before?.sum ? [] : [firstLine];
    for (const line of [...first, ...broken]) this.#broken.push(at.line + line);
  }

  #addRecord(one: Scan["found"][number]): void {
    const { record, offset } = one;
    const before = this.#before;
    this.#before = { sum: record.sum, offset };
    this.#count += 1;
    if (before === undefined) {
      this.#kept = record.kind === "header" ? record.kept : undefined;
      this.#digest = this.#kept && createHash("sha256");
      return;
    }
    if (this.#kept && this.#count <= this.#kept.records + 1) {
      this.#digest?.update(record.sum);
      return;
    }
    if (record.after === undefined || record.after === before.sum) return;
    // Damage explains itself: records after it are not reported.
    if (!this.#damage.some(({ offset }) => offset < one.offset && offset > before.offset)) this.#broken.push(one.line);
  }

  findings(path: string): Finding[] {
    const findings: Finding[] = this.#broken.map((line) => ({
      severity: "problem",
      where: `${path}: before line ${line}`,
      message: tampered,
    }));
    const kept = this.#kept;
    const isWhole = kept === undefined || (this.#count > kept.records && this.#digest?.digest("hex") === kept.digest);
    if (isWhole || this.#isDamaged) return findings;
    const where = `${path}: lines 2 to ${kept.records + 1}, which \`integ journal prune\` kept`;
    return [{ severity: "problem", where, message: tampered }, ...findings];
  }
}
