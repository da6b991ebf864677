// The audit of all keys of a list, however many there are: what was found of a key is worked out again when it is printed.
import {
  type AuditedAt,
  type Finding,
  type JudgedKey,
  judgeKey,
  rank,
  type Severity,
  type Unjudged,
} from "./audit-rules.ts";
import { applyWaivers, type Waived, type Waiver } from "./audit-waivers.ts";

type KeyRows = Iterable<Readonly<Record<string, unknown>>>;

/** What is known of a key after it was judged once. */
const [nothing, isUnsure] = [0, 4];
const severities = Object.keys(rank) as Severity[];

export class KeysAudit {
  /** Keys that were judged: all but the revoked ones and those whose status says nothing. */
  judged = 0;
  /** Rows of the list. */
  keys = 0;
  readonly counts: Record<Severity, number> = { high: 0, medium: 0, low: 0 };
  isUnsure = false;
  readonly ended: readonly Waiver[];
  readonly unused: readonly Waiver[];
  readonly waived: Waived["waived"];
  readonly #rows: KeyRows;
  readonly #at: AuditedAt;
  readonly #waivers = new Map<string, Waiver[]>();
  /** For each row how bad its worst finding is, from 1 on, and whether something of it could not be judged. */
  #known = new Uint8Array(1024);

  /** @param rows the rows of the list as they came, read several times; any shape */
  constructor(rows: KeyRows, at: AuditedAt, waivers: readonly Waiver[] = []) {
    this.#rows = rows;
    this.#at = at;
    for (const waiver of waivers) this.#waivers.set(waiver.key, [...(this.#waivers.get(waiver.key) ?? []), waiver]);
    const used = new Set<Waiver>();
    const met = [...this.#judge(used)];
    // The worst first, as the findings.
    met.sort((a, b) => a.worst - b.worst);
    this.waived = met.flatMap(({ waived }) => waived);
    this.ended = met.flatMap(({ ended }) => ended);
    this.unused = waivers.filter((waiver) => !used.has(waiver));
  }

  /** Judges every key. @returns what waivers did to those that have any */
  *#judge(used: Set<Waiver>): Iterable<Pick<Waived, "waived" | "ended"> & { readonly worst: number }> {
    for (const row of this.#rows) {
      const place = this.keys++;
      const key = judgeKey(row, this.keys, this.#at);
      if (key === undefined) continue;
      if (key.isJudged) this.judged += 1;
      const worst = key.findings[0] === undefined ? nothing : 1 + rank[key.findings[0].severity];
      this.#note(place, worst + (key.unjudged.length > 0 ? isUnsure : 0));
      this.isUnsure ||= key.unjudged.length > 0;
      const { findings, waived, ended, unused } = this.#applied(key.findings);
      for (const { severity } of findings) this.counts[severity] += 1;
      const own = this.#waiversOf(key.findings);
      for (const waiver of own) if (!unused.includes(waiver)) used.add(waiver);
      if (own.length > 0) yield { waived, ended, worst };
    }
  }

  #note(place: number, known: number): void {
    if (place >= this.#known.length) {
      const larger = new Uint8Array(Math.max(2 * this.#known.length, place + 1));
      larger.set(this.#known);
      this.#known = larger;
    }
    this.#known[place] = known;
  }

  #waiversOf([first]: readonly Finding[]): readonly Waiver[] {
    return (first && this.#waivers.get(first.key_id ?? "")) ?? [];
  }

  #applied(findings: readonly Finding[]): Waived {
    const waivers = this.#waiversOf(findings);
    if (waivers.length === 0) return { findings, waived: [], ended: [], unused: [] };
    return applyWaivers(findings, waivers, this.#at.now);
  }

  /** Those that are not waived, the worst key first; those of one key stand together. */
  *findings(): Iterable<Finding> {
    for (const severity of severities)
      for (const key of this.#again((known) => known % isUnsure === 1 + rank[severity]))
        yield* this.#applied(key.findings).findings;
  }

  *unjudged(): Iterable<Unjudged> {
    for (const key of this.#again((known) => known >= isUnsure)) yield* key.unjudged;
  }

  *#again(isWanted: (known: number) => boolean): Iterable<JudgedKey> {
    let place = 0;
    for (const row of this.#rows) {
      place += 1;
      if (!isWanted(this.#known[place - 1]!)) continue;
      const key = judgeKey(row, place, this.#at);
      if (key) yield key;
    }
  }
}
