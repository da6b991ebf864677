// Owns: the fold of records into entries: the last sound record of an entry wins, and what contradicts an earlier one is
// damage. Pure.
// Must not know: files, locks, the API.
import { type Entry, formatVersion, isSettled } from "./entry.ts";
import { readEntry, type Slice, type SoundRecord, sameBytes, stateOf } from "./file/record.ts";
import type { Damage, Found, Scan } from "./file/scan.ts";

type EntryRecord = Extract<SoundRecord, { kind: "entry" }>;

interface Slot {
  readonly intent: Slice | undefined;
  /** Highest format among its records: above ours the entry is shown and never changed. */
  format: number;
  /** Its sound records, oldest first. */
  readonly records: EntryRecord[];
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
    if (slot === undefined) {
      this.#slots.set(record.id, { intent: record.intent, format: record.format, records: [record], entry: undefined });
      return;
    }
    if (slot.intent && record.intent && !sameBytes(slot.intent, record.intent)) {
      const { offset, line, text } = found;
      const bytes = text.bytes.subarray(text.start, text.end);
      this.damage.push({ offset, line, bytes, reason: `it contradicts an earlier record of entry ${record.id}` });
      return;
    }
    slot.records.push(record);
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
      const formats = { record: record?.format ?? 0, entry: Math.max(slot.format, this.format) };
      if (record) slot.entry = readEntry(record.line, formats);
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

  /** Entries that want something done, the newest first; the others are not even parsed. */
  unsettled(): Entry[] {
    const all: Entry[] = [];
    for (const [id, slot] of this.#slots) {
      const last = slot.records.at(-1);
      const state = last && stateOf(last);
      const entry = state !== undefined && isSettled(state) ? undefined : this.get(id);
      if (entry && !isSettled(entry.state)) all.push(entry);
    }
    return all.sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** The highest id there is. */
  newest(): string | undefined {
    let newest: string | undefined;
    for (const id of this.#slots.keys()) if (newest === undefined || id > newest) newest = id;
    return newest;
  }

  /** The last sound record of an entry, as it stands in the file. */
  lastLine(id: string): Buffer | undefined {
    const line = this.#slots.get(id)?.records.at(-1)?.line;
    return line?.bytes.subarray(line.start, line.end);
  }

  /** Ids whose records are sound and yet have no shape that this program knows. */
  unreadable(): string[] {
    return this.ids().filter((id) => this.get(id) === undefined);
  }
}
