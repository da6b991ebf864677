// Indexes a journal file: entries, damage, and lines before which a record is missing or moved.
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, excludesFinished } from "../lookup.ts";
import { entryIn, finishedEntryIn, type HeaderFacts, type Signed, signedIn } from "../record.ts";
import type { Damage, FoundRecord } from "./scan.ts";

interface RecordPlace {
  readonly n: number;
  readonly state: string;
  readonly offset: number;
  readonly length: number;
}

interface IndexedEntry {
  readonly records: RecordPlace[];
  entry?: Entry | undefined;
}

/** Finished entries are cached only if the file has at most this many entries, which limits the memory. */
const cacheLimit = 500;

type ReadBytes = (offset: number, length: number) => Buffer;

export class Contents {
  header: HeaderFacts | undefined;
  /** Excludes bytes after the last valid record, which may be an append in progress. */
  readonly damage: Damage[] = [];
  /** Line numbers of records that do not continue the previous line: a record was edited, removed, repeated or moved. */
  readonly breaks: number[] = [];
  lastSum = "";
  newest = "";
  readonly #entries = new Map<string, IndexedEntry>();
  readonly #readBytes: ReadBytes;

  constructor(readBytes: ReadBytes = () => Buffer.alloc(0)) {
    this.#readBytes = readBytes;
  }

  add({ record, offset, length, line }: FoundRecord, damage: readonly Damage[]): void {
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
    const indexed = this.#entries.get(id) ?? { records: [] };
    this.#entries.set(id, indexed);
    // An old copy of a record must not replace a newer record.
    if (n <= (indexed.records.at(-1)?.n ?? 0)) return;
    indexed.records.push({ n, state, offset, length });
    indexed.entry = undefined;
  }

  #signed({ offset, length }: RecordPlace): Signed {
    return signedIn(this.#readBytes(offset, length));
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** @returns the entry of the newest readable record, with the `sequence` of the last record */
  get(id: string): Entry | undefined {
    const indexed = this.#entries.get(id);
    if (indexed?.entry !== undefined) return indexed.entry;
    for (const place of indexed?.records.toReversed() ?? []) {
      const { content } = this.#signed(place);
      const read = isSettled(place.state) ? finishedEntryIn(content) : entryIn(content);
      // After a failed append was truncated, these bytes may belong to another record.
      if (read?.id !== id) continue;
      const entry = { ...read, sequence: indexed!.records.at(-1)!.n };
      if (!isSettled(place.state) || this.#entries.size <= cacheLimit) indexed!.entry = entry;
      return entry;
    }
    return undefined;
  }

  stateOf(id: string): string | undefined {
    return this.#entries.get(id)?.records.at(-1)?.state;
  }

  ids(): string[] {
    return [...this.#entries.keys()];
  }

  records(id: string): Signed[] {
    return (this.#entries.get(id)?.records ?? []).map((place) => this.#signed(place));
  }
}

/** The journal, alone or with its archive. For an entry in both, the journal's copy counts. */
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

  ids(): string[] {
    return [...new Set(this.#parts.flatMap((part) => part.ids()))].sort().toReversed();
  }

  /** Selects by id and state before it parses an entry. The newest entry comes first. */
  *candidates(filter: EntryFilter): Iterable<Entry> {
    const { ids, after = "", start = "", states } = filter;
    const excludes = excludesFinished(filter);
    const mayFit = (id: string): boolean => {
      const state = this.of(id)?.stateOf(id);
      if (state === undefined || id <= after || !id.startsWith(start)) return false;
      return states === undefined ? !(excludes && isSettled(state)) : states.includes(state);
    };
    const all = new Set(ids ?? this.#parts.flatMap((part) => part.ids()));
    for (const id of [...all].filter(mayFit).sort().toReversed()) {
      const entry = this.of(id)?.get(id);
      if (entry) yield entry;
    }
  }
}
