// Records become entries: the last sound record of an entry wins, and what contradicts an earlier one is damage.
import { type Entry, formatVersion, isSettled } from "./entry.ts";
import type { Damage, Found, Scan } from "./file/scan.ts";
import { type Step, type EntryRecord, stepOf, hashOfRecord, type Slice, sameBytes, stateOf } from "./record.ts";
import { namesOf, type EntryFilter, isOfUnsettled, nameIn } from "./lookup.ts";
import { readEntry } from "./read-entry.ts";

/** A record and where it is in its file. */
export interface PlacedRecord {
  readonly record: EntryRecord;
  readonly offset: number;
}

/** A sound record in the wrong place: one that was appended again, or whose order was changed. */
export interface Misplaced {
  /** Undefined of the record that begins a journal. */
  readonly id: string | undefined;
  readonly line: number;
}

/** What a file says as a whole. */
export interface FoldFacts {
  /** Format that the first record names; 0 while there is none. */
  readonly format: number;
  /** True once any sound record was seen: the file is a journal. */
  readonly isJournal: boolean;
  /** Places that hold no sound record, for good. */
  readonly damage: readonly Damage[];
  /** Records that were ignored: an old one must not undo what came after it. */
  readonly misplaced: readonly Misplaced[];
  /** The checksum of the last sound record. */
  readonly lastSum: string | undefined;
  /** Entries whose history had a gap when the journal was written again. */
  readonly gaps: ReadonlySet<string>;
}

/** What is in the file before the records that a fold takes in, asked for piece by piece instead of held. */
export interface Earlier extends FoldFacts {
  /** How many entries it has, and the highest id of them. */
  readonly count: number;
  readonly newest: string | undefined;
  readonly unsettled: readonly string[];
  /** The records of an entry that a fold accepted, the oldest first. */
  records(id: string): PlacedRecord[];
  newestRecord(id: string): EntryRecord | undefined;
  /** From the highest to the lowest. */
  ids(): Iterable<string>;
  /** Of entries touched then or later, and perhaps of others. @param since ISO 8601 UTC */
  idsSince(since: string): Iterable<string>;
  /** Of entries that have the name, and perhaps of others. */
  named(name: string): Iterable<string>;
  beginning(start: string): Iterable<string>;
}

interface Slot {
  readonly intent: Slice | undefined;
  /** Highest format among its records: above ours the entry is shown and never changed. */
  format: number;
  /** The highest sequence number among its records. */
  last: number;
  /** Its sound records, oldest first. */
  readonly records: PlacedRecord[];
  /** How many of them are in the part before. */
  readonly earlier: number;
  entry: Entry | undefined;
  /** Names of the entry, once it was looked for by one. */
  names: readonly string[] | undefined;
}

/** What a fold took in itself of an entry. */
export interface Touched {
  readonly id: string;
  readonly added: readonly PlacedRecord[];
  readonly isNew: boolean;
  readonly isUnsettled: boolean;
  readonly entry: Entry | undefined;
}

export class Fold implements FoldFacts {
  format: number;
  isJournal: boolean;
  readonly damage: Damage[];
  readonly misplaced: Misplaced[];
  lastSum: string | undefined;
  readonly gaps: Set<string>;
  readonly earlier: Earlier | undefined;
  readonly #slots = new Map<string, Slot>();
  /** Unfinished entries of the part before: asked for again and again. */
  readonly #open = new Map<string, Entry | undefined>();
  #newest: string | undefined;

  constructor(earlier?: Earlier) {
    this.earlier = earlier;
    this.format = earlier?.format ?? 0;
    this.isJournal = earlier?.isJournal ?? false;
    this.damage = [...(earlier?.damage ?? [])];
    this.misplaced = [...(earlier?.misplaced ?? [])];
    this.lastSum = earlier?.lastSum;
    this.gaps = new Set(earlier?.gaps);
    this.#newest = earlier?.newest;
  }

  /** Takes in what was found after all that it knows. */
  add(scan: Pick<Scan, "found" | "damage">): void {
    this.damage.push(...scan.damage);
    for (const found of scan.found) this.#addRecord(found);
  }

  #addRecord(found: Found): void {
    const { record, offset } = found;
    this.lastSum = record.sum;
    if (record.kind === "header") {
      if (this.isJournal) this.misplaced.push({ id: undefined, line: found.line });
      this.format = Math.max(this.format, record.format);
      for (const id of record.kept?.gaps ?? []) this.gaps.add(id);
    }
    this.isJournal = true;
    if (record.kind !== "entry") return;
    const slot = this.#slotOf(record.id);
    if (slot === undefined) {
      this.#slots.set(record.id, { ...slotFor({ record, offset }), earlier: 0 });
      if (this.#newest === undefined || record.id > this.#newest) this.#newest = record.id;
      return;
    }
    if (slot.intent && record.intent && !sameBytes(slot.intent, record.intent)) {
      const { line, text } = found;
      const bytes = text.bytes.subarray(text.start, text.end);
      this.damage.push({ offset, line, bytes, reason: `it contradicts an earlier record of entry ${record.id}` });
      return;
    }
    if (isOld(record, slot)) {
      this.misplaced.push({ id: record.id, line: found.line });
      return;
    }
    grow(slot, { record, offset });
  }

  /** The entry's records so far, those of the part before too: what comes after them is measured by them. */
  #slotOf(id: string): Slot | undefined {
    const known = this.#slots.get(id);
    const { earlier } = this;
    if (known || earlier?.newest === undefined || id > earlier.newest) return known;
    const slot = slotFrom(earlier.records(id));
    if (slot) this.#slots.set(id, slot);
    this.#open.delete(id);
    return slot;
  }

  /** Whether it took in an entry, besides what is in the part before. */
  get hasOwn(): boolean {
    return this.#slots.size > 0;
  }

  /** True if a newer program has written the file: it is read and never changed. */
  get isNewer(): boolean {
    return this.format > formatVersion;
  }

  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    if (slot) return (slot.entry ??= this.#entryOf(slot));
    if (this.#open.has(id)) return this.#open.get(id);
    const record = this.earlier?.newestRecord(id);
    if (record?.sequence !== undefined && record.format <= formatVersion) {
      const entry = readEntry(record.line, { record: record.format, entry: Math.max(record.format, this.format) });
      if (entry) return entry;
    }
    const before = record && slotFrom(this.earlier?.records(id) ?? []);
    return before && this.#entryOf(before);
  }

  #entryOf(slot: Slot): Entry | undefined {
    for (const { record } of slot.records.toReversed()) {
      const formats = { record: record.format, entry: Math.max(slot.format, this.format) };
      const entry = readEntry(record.line, formats);
      if (entry) return { ...entry, sequence: slot.last };
    }
    return undefined;
  }

  count(): number {
    let count = this.earlier?.count ?? 0;
    for (const { earlier } of this.#slots.values()) if (earlier === 0) count += 1;
    return count;
  }

  /** All ids, the highest first: the order of their admission, the newest first. */
  *ids(): Iterable<string> {
    const own = [...this.#slots].filter(([, { earlier }]) => earlier === 0).map(([id]) => id);
    yield* merged(own.sort().toReversed(), this.earlier?.ids() ?? []);
  }

  /** The entries with these ids, in their order. */
  *entriesOf(ids: Iterable<string>): Iterable<Entry> {
    for (const id of ids) {
      const entry = this.get(id);
      if (entry) yield entry;
    }
  }

  /** All entries, the newest first. */
  entries(): Iterable<Entry> {
    return this.entriesOf(this.ids());
  }

  /** Entries touched then or later, and perhaps others, the newest first. @param since ISO 8601 UTC */
  since(since: string): Iterable<Entry> {
    return this.#among(this.#slots.keys(), this.earlier?.idsSince(since));
  }

  /** Entries that have the name, and perhaps others, the newest first. */
  named(name: string): Iterable<Entry> {
    const own: string[] = [];
    for (const [id, slot] of this.#slots) {
      slot.entry ??= this.#entryOf(slot);
      slot.names ??= slot.entry && namesOf(slot.entry);
      if (slot.names?.includes(name)) own.push(id);
    }
    return this.#among(own, this.earlier?.named(name));
  }

  #among(own: Iterable<string>, earlier: Iterable<string> = []): Iterable<Entry> {
    return this.entriesOf([...new Set([...own, ...earlier])].sort().toReversed());
  }

  /** Ids that begin so, the highest first. */
  beginning(start: string): string[] {
    const own = [...this.#slots.keys()].filter((id) => id.startsWith(start));
    return [...new Set([...own, ...(this.earlier?.beginning(start) ?? [])])].sort().toReversed();
  }

  /** Entries that want something done, the newest first; the others are not even parsed. */
  unsettled(): Entry[] {
    const all: Entry[] = [];
    for (const [id, slot] of this.#slots) {
      const entry = mayBeUnsettled(slot) ? this.get(id) : undefined;
      if (entry && !isSettled(entry.state)) all.push(entry);
    }
    for (const id of this.earlier?.unsettled ?? []) {
      if (this.#slots.has(id)) continue;
      const entry = this.get(id);
      this.#open.set(id, entry);
      if (entry && !isSettled(entry.state)) all.push(entry);
    }
    return all.sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** The highest id there is. */
  newest(): string | undefined {
    return this.#newest;
  }

  /** The sound records of an entry, oldest first. */
  records(id: string): readonly PlacedRecord[] {
    return this.#slots.get(id)?.records ?? this.earlier?.records(id) ?? [];
  }

  lines(id: string): Slice[] {
    return this.records(id).map(({ record }) => record.line);
  }

  history(id: string): Step[] {
    return this.lines(id).map(stepOf);
  }

  /** The hash of the newest record of an entry. */
  newestHash(id: string): string | undefined {
    const slot = this.#slots.get(id);
    const newest = slot ? slot.records.at(-1)?.record : this.earlier?.newestRecord(id);
    return newest && hashOfRecord(newest.line);
  }

  /** What it took in, entry by entry. */
  *touched(): Iterable<Touched> {
    for (const [id, slot] of this.#slots) {
      const { records, earlier } = slot;
      if (records.length === earlier) continue;
      const added = records.slice(earlier);
      yield { id, added, isNew: earlier === 0, isUnsettled: mayBeUnsettled(slot), entry: this.get(id) };
    }
  }
}

function mayBeUnsettled({ records }: Slot): boolean {
  const last = records.at(-1);
  const state = last && stateOf(last.record);
  return state === undefined || !isSettled(state);
}

function slotFor({ record, offset }: PlacedRecord): Slot {
  const { intent, format, sequence: last = 0 } = record;
  return { intent, format, last, records: [{ record, offset }], earlier: 1, entry: undefined, names: undefined };
}

function slotFrom(records: readonly PlacedRecord[]): Slot | undefined {
  const [first, ...rest] = records;
  if (first === undefined) return undefined;
  const slot = { ...slotFor(first), earlier: records.length };
  for (const record of rest) grow(slot, record);
  return slot;
}

function grow(slot: Slot, placed: PlacedRecord): void {
  slot.records.push(placed);
  slot.last = placed.record.sequence ?? slot.last;
  slot.format = Math.max(slot.format, placed.record.format);
  slot.entry = undefined;
  slot.names = undefined;
}

/** Of an earlier version only a repeated record is found. */
function isOld({ sequence, line }: EntryRecord, { last, records }: Slot): boolean {
  return sequence === undefined ? records.some(({ record }) => sameBytes(record.line, line)) : sequence <= last;
}

/** Two rows of ids, each from the highest to the lowest, as one. */
function* merged(own: readonly string[], earlier: Iterable<string>): Iterable<string> {
  let at = 0;
  for (const id of earlier) {
    for (let mine = own[at]; mine !== undefined && mine > id; mine = own[at]) {
      yield mine;
      at += 1;
    }
    if (own[at] === id) at += 1;
    yield id;
  }
  yield* own.slice(at);
}

/** @param ids the highest first: those below are not even looked at */
function* newerThan(id: string, ids: Iterable<string>): Iterable<string> {
  for (const one of ids) {
    if (one <= id) return;
    yield one;
  }
}

/** Every entry that may fit, the newest first: as few as possible without reading them. */
export function candidates(fold: Fold, filter: EntryFilter): Iterable<Entry> {
  if (filter.ids !== undefined) return fold.entriesOf([...new Set(filter.ids)].sort().toReversed());
  const name = nameIn(filter);
  if (name !== undefined) return fold.named(name);
  if (isOfUnsettled(filter)) return fold.unsettled();
  if (filter.after !== undefined) return fold.entriesOf(newerThan(filter.after, fold.ids()));
  return filter.since === undefined ? fold.entries() : fold.since(filter.since);
}
