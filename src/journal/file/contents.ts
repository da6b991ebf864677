// What the sound records of a file are together: entries, and where the order of the records is broken.
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, isOfUnsettled } from "../lookup.ts";
import { entryIn, finishedEntryIn, type HeaderLine, type Signed, signedIn, type Slice } from "../record.ts";
import type { Damage, Found } from "./scan.ts";

/** A record of an entry, as far as it is kept in memory. */
interface Kept {
  readonly n: number;
  readonly state: string;
  readonly text: Slice;
}

interface Slot {
  readonly records: Kept[];
  /** As the newest record that is one says; read when it is asked for. */
  entry?: Entry | undefined;
}

/** Reads bytes of the file again. */
export type ReadAgain = (offset: number, length: number) => Buffer;

export class Contents {
  /** True once any sound line was seen: the file is a journal. */
  isJournal = false;
  /** What the first line says. */
  header: HeaderLine | undefined;
  /** Places that hold no sound record, for good. */
  readonly damage: Damage[] = [];
  /** Lines before which another was edited, removed or moved. */
  readonly breaks: number[] = [];
  /** The checksum of the last sound line. */
  lastSum = "";
  /** The highest id there is. */
  newest = "";
  #lastOffset = 0;
  readonly #slots = new Map<string, Slot>();
  readonly #again: ReadAgain | undefined;

  /** @param again of the archive, which is too long for memory: reads its records again */
  constructor(again?: ReadAgain) {
    this.#again = again;
  }

  get isWhole(): boolean {
    return this.damage.length + this.breaks.length === 0;
  }

  /** Takes in what was found after all that it knows. */
  add({ found, damage }: { readonly found: readonly Found[]; readonly damage: readonly Damage[] }): void {
    this.damage.push(...damage);
    for (const one of found) this.#add(one);
  }

  #add({ record, offset, line, text }: Found): void {
    const [lastSum, lastOffset, isFirst] = [this.lastSum, this.#lastOffset, !this.isJournal];
    [this.lastSum, this.#lastOffset, this.isJournal] = [record.sum, offset, true];
    if (record.kind === "header" && isFirst) this.header = record;
    // Damage explains itself: a record behind it is not reported.
    const isExplained = (): boolean => this.damage.some((one) => one.offset > lastOffset && one.offset < offset);
    const follows = record.kind === "record" && record.after === lastSum;
    if (!isFirst && !follows && !isExplained()) this.breaks.push(line);
    if (record.kind !== "record") return;
    const { id, n, state } = record;
    if (id > this.newest) this.newest = id;
    const slot = this.#slots.get(id) ?? { records: [] };
    this.#slots.set(id, slot);
    // An old one must not undo what came after it.
    if (n <= (slot.records.at(-1)?.n ?? 0)) return;
    slot.records.push({ n, state, text: this.#kept(text, offset) });
    slot.entry = undefined;
  }

  #kept(text: Slice, offset: number): Slice {
    const again = this.#again;
    if (again === undefined) return text;
    const length = text.end - text.start;
    return {
      get bytes() {
        return again(offset, length);
      },
      start: 0,
      end: length,
    };
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  /** The newest record that is one decides; its number is that of the last. */
  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    if (slot?.entry !== undefined) return slot.entry;
    for (const { text, state } of slot?.records.toReversed() ?? []) {
      const { content } = signedIn(text);
      const read = isSettled(state) ? finishedEntryIn(content) : entryIn(content);
      if (read === undefined) continue;
      const entry = { ...read, sequence: slot!.records.at(-1)!.n };
      if (this.#again === undefined) slot!.entry = entry;
      return entry;
    }
    return undefined;
  }

  /** The state that the newest record of an entry says. */
  stateOf(id: string): string {
    return this.#slots.get(id)?.records.at(-1)?.state ?? "";
  }

  /** In the order in which they are in the file. */
  ids(): string[] {
    return [...this.#slots.keys()];
  }

  /** The sound records of an entry, the oldest first. */
  records(id: string): Signed[] {
    return (this.#slots.get(id)?.records ?? []).map(({ text }) => signedIn(text));
  }
}

/** The journal, and where it is asked for the archive: of an entry in both, the journal's copy counts. */
export class Shelf {
  readonly #parts: readonly Contents[];

  constructor(...parts: readonly Contents[]) {
    this.#parts = parts;
  }

  /** The file that has the entry. */
  of(id: string): Contents | undefined {
    return this.#parts.find((part) => part.has(id));
  }

  records(id: string): Signed[] {
    return this.of(id)?.records(id) ?? [];
  }

  /** The highest first: the order of their admission, the newest first. */
  ids(): string[] {
    return [...new Set(this.#parts.flatMap((part) => part.ids()))].sort().toReversed();
  }

  /** Entries that may fit, the newest first: as few as possible are parsed. */
  *candidates(filter: EntryFilter): Iterable<Entry> {
    const { ids, after = "", start = "", states } = filter;
    const isOpen = isOfUnsettled(filter);
    for (const id of ids === undefined ? this.ids() : [...new Set(ids)].sort().toReversed()) {
      const part = this.of(id);
      if (part === undefined || id <= after || !id.startsWith(start)) continue;
      const state = part.stateOf(id);
      if (states === undefined ? isOpen && isSettled(state) : !states.includes(state)) continue;
      const entry = part.get(id);
      if (entry) yield entry;
    }
  }
}
