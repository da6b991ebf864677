// Owns: the fold of records into entries: the last sound record of an entry wins, and what contradicts an earlier one is
// damage. Pure.
// Must not know: files, locks, the API.
import { type Entry, formatVersion } from "./entry.ts";
import { readEntry } from "./record.ts";
import type { Damage, Found, Scan } from "./scan.ts";

interface Slot {
  readonly intent: Buffer;
  /** Highest format among its records: above ours the entry is shown and never changed. */
  format: number;
  /** Its sound records, oldest first, as they stand in the file. */
  readonly records: { readonly line: Buffer; readonly format: number }[];
  entry: Entry | undefined;
}

export class Fold {
  /** Format that the first record names; 0 while there is none. */
  format = 0;
  /** True once any sound record was seen: the file is a journal. */
  isJournal = false;
  /** Places that hold no sound record, for good. */
  readonly damage: Damage[] = [];
  readonly #slots = new Map<string, Slot>();
  #sorted: readonly Entry[] | undefined;

  /** Takes in what was found after all that it knows. */
  add(scan: Pick<Scan, "found" | "damage">): void {
    this.damage.push(...scan.damage);
    if (scan.found.length > 0) this.#sorted = undefined;
    for (const found of scan.found) this.#addRecord(found);
  }

  #addRecord(found: Found): void {
    const { record } = found;
    this.isJournal = true;
    if (record.kind === "header") this.format = Math.max(this.format, record.format);
    if (record.kind !== "entry") return;
    const slot = this.#slots.get(record.id);
    const kept = { line: record.line, format: record.format };
    if (slot === undefined) {
      this.#slots.set(record.id, { intent: record.intent, format: record.format, records: [kept], entry: undefined });
      return;
    }
    const comparable = record.format <= formatVersion && slot.intent.length > 0;
    if (comparable && !slot.intent.equals(record.intent)) {
      const { offset, line, bytes } = found;
      this.damage.push({ offset, line, bytes, reason: `it contradicts an earlier record of entry ${record.id}` });
      return;
    }
    slot.records.push(kept);
    slot.format = Math.max(slot.format, record.format);
    slot.entry = undefined;
  }

  /** True where a newer program has written the file: it is read and never changed. */
  get isNewer(): boolean {
    return this.format > formatVersion;
  }

  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    if (slot === undefined) return undefined;
    for (let at = slot.records.length - 1; at >= 0 && slot.entry === undefined; at -= 1) {
      const record = slot.records[at];
      const entry = record && readEntry(record.line, record.format);
      if (entry) slot.entry = { ...entry, format: Math.max(slot.format, this.format) };
    }
    return slot.entry;
  }

  /** Ids of all entries, in the order of their admission. */
  ids(): string[] {
    return [...this.#slots.keys()];
  }

  /** All entries, the newest first. */
  entries(): readonly Entry[] {
    if (this.#sorted) return this.#sorted;
    const all: Entry[] = [];
    for (const id of this.#slots.keys()) {
      const entry = this.get(id);
      if (entry) all.push(entry);
    }
    this.#sorted = all.sort((a, b) => (a.id < b.id ? 1 : -1));
    return this.#sorted;
  }

  /** The last sound record of an entry, as it stands in the file. */
  lastLine(id: string): Buffer | undefined {
    return this.#slots.get(id)?.records.at(-1)?.line;
  }

  /** Ids whose records are sound and yet have no shape that this program knows. */
  unreadable(): string[] {
    return this.ids().filter((id) => this.get(id) === undefined);
  }
}
