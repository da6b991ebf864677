// What the sound records of a file are together: entries, and where the order of the records is broken.
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, isOfUnsettled } from "../lookup.ts";
import { entryIn, finishedEntryIn, type HeaderFacts, type Signed, signedIn } from "../record.ts";
import type { Damage, Found } from "./scan.ts";

/** A record of an entry, as far as it is kept in memory: its line is read again when it is asked for. */
interface Kept {
  readonly n: number;
  readonly state: string;
  readonly offset: number;
  readonly length: number;
}

interface Slot {
  readonly records: Kept[];
  /** An unfinished entry, once it was read. Finished ones are not kept, since they may be more than memory holds. */
  entry?: Entry | undefined;
}

/** Bytes of the file; fewer if it ends before. */
type ReadAgain = (offset: number, length: number) => Buffer;

export class Contents {
  header: HeaderFacts | undefined;
  /** Places that hold no sound record, for good. */
  readonly damage: Damage[] = [];
  /** Lines before which another was edited, removed or moved. */
  readonly breaks: number[] = [];
  /** The checksum of the last sound line; empty until one is seen. */
  lastSum = "";
  newest = "";
  readonly #slots = new Map<string, Slot>();
  readonly #again: ReadAgain;

  constructor(again: ReadAgain = () => Buffer.alloc(0)) {
    this.#again = again;
  }

  /** Takes in a sound line behind all that it knows, and the damage between. */
  add({ record, offset, length, line }: Found, damage: readonly Damage[]): void {
    const isFirst = this.lastSum === "";
    if (record.kind === "header" && isFirst) this.header = record;
    const follows = record.kind === "record" && record.after === this.lastSum;
    // Damage explains itself: a record behind it is not reported.
    if (!isFirst && !follows && damage.length === 0) this.breaks.push(line);
    this.damage.push(...damage);
    this.lastSum = record.sum;
    if (record.kind !== "record") return;
    const { id, n, state } = record;
    if (id > this.newest) this.newest = id;
    const slot = this.#slots.get(id) ?? { records: [] };
    this.#slots.set(id, slot);
    // An old one must not undo what came after it.
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

  /** The newest record that is one decides; its number is that of the last. */
  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    if (slot?.entry !== undefined) return slot.entry;
    for (const kept of slot?.records.toReversed() ?? []) {
      const { content } = this.#signed(kept);
      const read = isSettled(kept.state) ? finishedEntryIn(content) : entryIn(content);
      // Another one: what was read was cut back meanwhile, as an append that failed.
      if (read?.id !== id) continue;
      const entry = { ...read, sequence: slot!.records.at(-1)!.n };
      if (!isSettled(kept.state)) slot!.entry = entry;
      return entry;
    }
    return undefined;
  }

  stateOf(id: string): string | undefined {
    return this.#slots.get(id)?.records.at(-1)?.state;
  }

  /** In the order in which they are in the file. */
  ids(): string[] {
    return [...this.#slots.keys()];
  }

  /** The sound records of an entry, the oldest first. */
  records(id: string): Signed[] {
    return (this.#slots.get(id)?.records ?? []).map((kept) => this.#signed(kept));
  }
}

/** The journal, and where it is asked for the archive: of an entry in both, the journal's copy counts. */
export class Shelf {
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

  /** The highest first: the order of their admission, the newest first. */
  ids(): string[] {
    return [...new Set(this.#parts.flatMap((part) => part.ids()))].sort().toReversed();
  }

  /** Entries that may fit, the newest first: as few as possible are parsed. */
  *candidates(filter: EntryFilter): Iterable<Entry> {
    const { ids, after = "", start = "", states } = filter;
    const isOpen = isOfUnsettled(filter);
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
