// What `journal verify` finds in entries: histories with a gap, names of entries that are not there, keys that two of them hold.
import { formatVersion } from "../entry.ts";
import type { Fold, Touched } from "../fold.ts";
import { brokenStep, historyFinding } from "../record.ts";
import type { Finding } from "../journal.ts";
import { digestOfName, keyName } from "../lookup.ts";
import type { PieceFacts } from "./piece-facts.ts";
import { Numbers } from "./numbers.ts";

/** Is shown each fold of a file; keeps a few bytes of each entry, and more only of those with something to say. */
export class EntriesCheck {
  readonly #gaps = new Map<string, number>();
  readonly #unreadable = new Set<string>();
  readonly #newer = new Set<string>();
  readonly #named = new Map<string, readonly string[]>();
  /** Digests of base URL and key. */
  readonly #keys = new Numbers();

  add(fold: Fold): void {
    for (const touched of fold.touched()) this.#addEntry(fold, touched);
  }

  /** What is known of entries that begin in a piece, and end there as far as it goes. */
  addFacts({ gaps, named, keys }: PieceFacts): void {
    for (const [id, place] of gaps) this.#gaps.set(id, place);
    for (const [id, others] of named) this.#named.set(id, others);
    for (const key of keys) this.#keys.add(key);
  }

  #addEntry(fold: Fold, { id, added, isNew, entry }: Touched): void {
    const records = fold.records(id).map(({ record }) => record);
    const broken = brokenStep(records, records.length - added.length);
    if (broken !== undefined && !this.#gaps.has(id)) this.#gaps.set(id, broken);
    if (entry === undefined) return void this.#unreadable.add(id);
    this.#unreadable.delete(id);
    if (entry.format > formatVersion) this.#newer.add(id);
    const named = [entry.parent, entry.replaces, entry.replaced_by].filter((other) => other !== null);
    if (named.length > 0) this.#named.set(id, named);
    if (isNew && entry.idempotency_key !== null)
      this.#keys.add(digestOfName(keyName(entry.base_url, entry.idempotency_key)));
  }

  /** @param fold of the whole file */
  findings(fold: Fold): Finding[] {
    const found: Finding[] = [];
    for (const [id, place] of this.#gaps) found.push(historyFinding(id, place, fold.gaps.has(id)));
    for (const id of this.#unreadable)
      found.push({
        severity: "problem",
        where: `entry ${id}`,
        message: "its records are complete and do not form an entry",
      });
    for (const id of this.#newer)
      found.push({
        severity: "warning",
        where: `entry ${id}`,
        message: "written by a newer integ: shown, never changed; upgrade integ",
      });
    for (const [id, named] of this.#named)
      for (const other of named)
        if (fold.get(other) === undefined) {
          const message = `it names entry ${other}, which is not in the journal`;
          found.push({ severity: "warning", where: `entry ${id}`, message });
        }
    return [...found, ...this.#doubleKeys(fold)];
  }

  /** Each is a digest at first, which two keys may share. */
  #doubleKeys(fold: Fold): Finding[] {
    const double = this.#keys.repeated();
    if (double.size === 0) return [];
    const holders = new Map<string, string>();
    const found: Finding[] = [];
    for (const { id, base_url, idempotency_key: key } of [...fold.entries()].toReversed()) {
      if (key === null || !double.has(digestOfName(keyName(base_url, key)))) continue;
      const name = keyName(base_url, key);
      const first = holders.get(name);
      if (first === undefined) holders.set(name, id);
      else
        found.push({
          severity: "problem",
          where: `entry ${id}`,
          message: `it has the idempotency key of entry ${first}`,
        });
    }
    return found;
  }
}
