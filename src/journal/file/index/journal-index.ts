// What a command needs of the part of the journal's file that it does not read: where the records of each entry stand, and
// which entries have a name. Nothing is taken from here that the file does not confirm: each record is read where it stands
// and checked, and if anything does not fit, the file is read as a whole.
import { hash } from "node:crypto";
import { idOf, idPattern, numberOf, numbersBeginning, namesOf } from "../../lookup.ts";
import { type Earlier, type EntryRecord, Fold, type FoldFacts, type PlacedRecord } from "../../fold.ts";
import { readBytes, scanPieces, scanBytes } from "../scan.ts";
import { type Cursor, cursorAtEnd, cursorFrom, type Rows, Table, valuesOf } from "./rows.ts";

/** What is in the index is not what is in the file. */
export class Unfit extends Error {}

/** An entry has an id that integ does not make: only a journal whose ids are numbers has an index. */
export class Irregular extends Error {}

/** The index of some records that stand one behind the other in the file. */
export interface Segment {
  /** Number of an entry's id, offset of a record of it. */
  readonly records: Rows;
  /** Digest of a name, number of the id of an entry that has it. */
  readonly names: Rows;
  /** The lowest and the highest number of an entry. */
  readonly first: number;
  readonly last: number;
  /** When the last of its entries was touched, ISO 8601 UTC. */
  readonly updated: string;
}

export interface IndexedFacts extends FoldFacts {
  readonly count: number;
  readonly newest: string | undefined;
  readonly unsettled: readonly string[];
}

/** The part of the journal's file that an index is of. */
export interface IndexedPart {
  /** Open for as long as anything is asked: another file may take its name. */
  readonly fd: number;
  /** Where the part ends, at the end of a line. */
  readonly end: number;
}

interface Parts extends IndexedPart {
  readonly facts: IndexedFacts;
  /** In the order of the file. */
  readonly segments: readonly Segment[];
}

const lineBytes = 2048;

export class JournalIndex implements Earlier {
  #parts: Parts;
  #isMended = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** What a fold knows, with all that is before it. @throws Irregular */
  static of(fold: Fold, part: IndexedPart, before?: JournalIndex): JournalIndex {
    const unsettled = new Set(before?.unsettled);
    const segment = segmentOf(fold, unsettled);
    const { format, isJournal, damage, misplaced, lastSum, gaps } = fold;
    const all = { format, isJournal, damage, misplaced, lastSum, gaps };
    const facts = { ...all, count: fold.count(), newest: fold.newest(), unsettled: [...unsettled] };
    return new JournalIndex({ ...part, facts, segments: [...(before?.segments ?? []), ...segment] });
  }

  /** The same with its segments kept elsewhere. */
  with(segments: readonly Segment[]): JournalIndex {
    return new JournalIndex({ ...this.#parts, segments });
  }

  get segments(): readonly Segment[] {
    return this.#parts.segments;
  }
  get format(): number {
    return this.#parts.facts.format;
  }
  get isJournal(): boolean {
    return this.#parts.facts.isJournal;
  }
  get damage(): FoldFacts["damage"] {
    return this.#parts.facts.damage;
  }
  get misplaced(): FoldFacts["misplaced"] {
    return this.#parts.facts.misplaced;
  }
  get lastSum(): string | undefined {
    return this.#parts.facts.lastSum;
  }
  get gaps(): ReadonlySet<string> {
    return this.#parts.facts.gaps;
  }
  get count(): number {
    return this.#parts.facts.count;
  }
  get newest(): string | undefined {
    return this.#parts.facts.newest;
  }
  get unsettled(): readonly string[] {
    return this.#parts.facts.unsettled;
  }

  records(id: string): PlacedRecord[] {
    return this.#mending(() => this.#offsets(id).map((offset) => ({ offset, record: this.#recordAt(offset, id) })));
  }

  newestRecord(id: string): EntryRecord | undefined {
    return this.#mending(() => {
      const offset = this.#offsets(id).at(-1);
      return offset === undefined ? undefined : this.#recordAt(offset, id);
    });
  }

  ids(): Iterable<string> {
    return this.#resuming((below) => descending(this.segments, below));
  }

  idsSince(since: string): Iterable<string> {
    return this.#resuming((below) =>
      descending(
        this.segments.filter(({ updated }) => updated >= since),
        below,
      ),
    );
  }

  named(name: string): string[] {
    const digest = digestOfName(name);
    return this.#mending(() => this.segments.flatMap(({ names }) => valuesOf(names, digest).map(idOf)));
  }

  beginning(start: string): string[] {
    const range = numbersBeginning(start);
    if (range === undefined) return [];
    const [low, high] = range;
    return this.#mending(() => {
      const found = new Set<number>();
      for (const { records } of this.segments)
        for (const cursor = cursorFrom(records, low); cursor.isAt && cursor.key <= high; cursor.move(1))
          found.add(cursor.key);
      return [...found].map(idOf);
    });
  }

  #offsets(id: string): number[] {
    if (!idPattern.test(id)) return [];
    const number = numberOf(id);
    const holding = this.segments.filter(({ first, last }) => first <= number && number <= last);
    return holding.flatMap(({ records }) => valuesOf(records, number));
  }

  /** @throws Unfit if no such record is there */
  #recordAt(offset: number, id: string): EntryRecord {
    const { fd } = this.#parts;
    for (let length = lineBytes; ; length *= 4) {
      const bytes = readBytes(fd, offset, length);
      const end = bytes.indexOf(10);
      if (end < 0 && bytes.length === length) continue; // a longer line
      const [found] = scanBytes(bytes.subarray(0, end < 0 ? bytes.length : end + 1), { offset, line: 1 }).found;
      if (found?.record.kind === "entry" && found.offset === offset && found.record.id === id) return found.record;
      throw new Unfit(`no record of ${id} stands at ${offset}`);
    }
  }

  #mending<T>(ask: () => T): T {
    const asked = this.#parts;
    try {
      return ask();
    } catch (error) {
      this.#mend(error, asked);
      return ask();
    }
  }

  /** Continues behind what was given out already. */
  *#resuming(ask: (below: number) => Iterable<string>): Iterable<string> {
    let below = Number.POSITIVE_INFINITY;
    for (;;) {
      const asked = this.#parts;
      try {
        for (const id of ask(below)) {
          yield id;
          below = numberOf(id);
        }
        return;
      } catch (error) {
        this.#mend(error, asked);
      }
    }
  }

  /** @param asked what did not fit; others may have found out before */
  #mend(error: unknown, asked: Parts): void {
    if (error instanceof Unfit && asked !== this.#parts) return;
    if (!(error instanceof Unfit) || this.#isMended) throw error;
    this.#isMended = true;
    const whole = readAgain(this.#parts);
    if (whole === undefined) throw error;
    this.#parts = whole.#parts;
  }
}

/** The index of all that a fold knows; undefined of a journal that can have none. */
export function indexBehind(fold: Fold, part: IndexedPart): JournalIndex | undefined {
  const { earlier } = fold;
  if (earlier !== undefined && !(earlier instanceof JournalIndex)) return undefined;
  try {
    return JournalIndex.of(fold, part, earlier);
  } catch (error) {
    if (error instanceof Irregular) return undefined;
    throw error;
  }
}

/** The same part of the file, every byte of it. */
function readAgain({ fd, end }: IndexedPart): JournalIndex | undefined {
  let index: JournalIndex | undefined;
  for (const piece of scanPieces(fd, { offset: 0, line: 1 }, end)) {
    const fold = new Fold(index);
    fold.add(piece);
    index = indexBehind(fold, { fd, end: piece.end });
    if (index === undefined) return undefined;
  }
  return index;
}

/** @param unfinished of all entries before; of those too that the fold touched, afterwards */
function segmentOf(fold: Fold, unsettled: Set<string>): Segment[] {
  const [records, names] = [new Table(), new Table()];
  let [first, last, updated] = [Number.POSITIVE_INFINITY, 0, ""];
  for (const { id, added, isUnsettled, entry } of fold.touched()) {
    if (!idPattern.test(id)) throw new Irregular(id);
    const number = numberOf(id);
    [first, last] = [Math.min(first, number), Math.max(last, number)];
    for (const { offset } of added) records.add(number, offset);
    if (isUnsettled) unsettled.add(id);
    else unsettled.delete(id);
    if (entry === undefined) continue;
    for (const name of namesOf(entry)) names.add(digestOfName(name), number);
    if (entry.updated_at > updated) updated = entry.updated_at;
  }
  return records.count === 0 ? [] : [{ records, names, first, last, updated }];
}

/** Ids from the highest to the lowest, each once. */
function* descending(segments: readonly Segment[], below: number): Iterable<string> {
  let left: Cursor[] = segments.map(({ records }) => {
    if (below === Number.POSITIVE_INFINITY) return cursorAtEnd(records);
    const cursor = cursorFrom(records, below);
    cursor.move(-1);
    return cursor;
  });
  for (left = left.filter(({ isAt }) => isAt); left.length > 0; left = left.filter(({ isAt }) => isAt)) {
    let highest = -1;
    for (const { key } of left) if (key > highest) highest = key;
    yield idOf(highest);
    for (const cursor of left) while (cursor.isAt && cursor.key === highest) cursor.move(-1);
  }
}

export function digestOfName(name: string): number {
  return Number.parseInt(hash("sha256", name, "hex").slice(0, 13), 16);
}
