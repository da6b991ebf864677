// The entries that a file's sound records form, and the places where a record is missing or moved.
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, excludesFinished } from "../lookup.ts";
import { entryIn, finishedEntryIn, type HeaderFacts, type Signed, signedIn } from "../record.ts";
import type { Damage, Found } from "./scan.ts";

/** A record's place in the file; its line is read again on demand. */
interface Kept {
  readonly n: number;
  readonly state: string;
  readonly offset: number;
  readonly length: number;
}

interface Slot {
  readonly records: Kept[];
  /** The entry once it was read; see `mostKept`. */
  entry?: Entry | undefined;
}

/** Finished entries stay in memory while the file has at most this many entries: more would slow down every start. */
const mostKept = 500;

/** Reads bytes of the file; fewer at its end. */
type ReadAgain = (offset: number, length: number) => Buffer;

export class Contents {
  header: HeaderFacts | undefined;
  /** Damage before the last sound record. Bytes behind it may be an append under way, and the next read looks at them again. */
  readonly damage: Damage[] = [];
  /** Lines after an edited, removed or moved line. */
  readonly breaks: number[] = [];
  /** The checksum of the last sound line; empty at first. */
  lastSum = "";
  newest = "";
  readonly #slots = new Map<string, Slot>();
  readonly #again: ReadAgain;

  constructor(again: ReadAgain = () => Buffer.alloc(0)) {
    this.#again = again;
  }

  /** Adds the next sound line, and the damage before it. */
  add({ record, offset, length, line }: Found, damage: readonly Damage[]): void {
    const isFirst = this.lastSum === "";
    if (record.kind === "header" && isFirst) this.header = record;
    const follows = record.kind === "record" && record.after === this.lastSum;
    // Damage before a record explains the break in the order.
    if (!isFirst && !follows && damage.length === 0) this.breaks.push(line);
    this.damage.push(...damage);
    this.lastSum = record.sum;
    if (record.kind !== "record") return;
    const { id, n, state } = record;
    if (id > this.newest) this.newest = id;
    const slot = this.#slots.get(id) ?? { records: [] };
    this.#slots.set(id, slot);
    // An old copy of a record must not undo a newer one.
    if (n <= (slot.records.at(-1)?.n ?? 0)) return;
    slot.records.push({ n, state, offset, length });
    slot.entry = undefined;
  }

  #signed({ offset, length }: Kept): Signed {
    return signedIn(this.#again(offset, length));
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  /** The entry from its newest readable record, with the number of its last record. */
  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    if (slot?.entry !== undefined) return slot.entry;
    for (const kept of slot?.records.toReversed() ?? []) {
      const { content } = this.#signed(kept);
      const read = isSettled(kept.state) ? finishedEntryIn(content) : entryIn(content);
      // The bytes are another record's: a failed append was cut off meanwhile.
      if (read?.id !== id) continue;
      const entry = { ...read, sequence: slot!.records.at(-1)!.n };
      if (!isSettled(kept.state) || this.#slots.size <= mostKept) slot!.entry = entry;
      return entry;
    }
    return undefined;
  }

  stateOf(id: string): string | undefined {
    return this.#slots.get(id)?.records.at(-1)?.state;
  }

  /** In the order of their first records. */
  ids(): string[] {
    return [...this.#slots.keys()];
  }

  /** The sound records of an entry, the oldest first. */
  records(id: string): Signed[] {
    return (this.#slots.get(id)?.records ?? []).map((kept) => this.#signed(kept));
  }
}

/** The journal, with the archive if requested: for an entry in both, the journal's copy counts. */
export class JournalView {
  readonly #parts: readonly Contents[];

  constructor(...parts: readonly Contents[]) {
    this.#parts = parts;
  }

  of(id: string): Contents | undefined {
    return this.#parts.find((part) => part.has(id));
  }

  records(id: string): Signed[] {
    return this.of(id)?.records(id) ?? [];
  }

  /** The highest first, which is the newest first. */
  ids(): string[] {
    return [...new Set(this.#parts.flatMap((part) => part.ids()))].sort().toReversed();
  }

  /** Entries that may match, the newest first: as few as possible are parsed. */
  *candidates(filter: EntryFilter): Iterable<Entry> {
    const { ids, after = "", start = "", states } = filter;
    const isOpen = excludesFinished(filter);
    const mayFit = (id: string): boolean => {
      const state = this.of(id)?.stateOf(id);
      if (state === undefined || id <= after || !id.startsWith(start)) return false;
      return states === undefined ? !(isOpen && isSettled(state)) : states.includes(state);
    };
    const known = new Set(ids ?? this.#parts.flatMap((part) => part.ids()));
    for (const id of [...known].filter(mayFit).sort().toReversed()) {
      const entry = this.of(id)?.get(id);
      if (entry) yield entry;
    }
  }
}
