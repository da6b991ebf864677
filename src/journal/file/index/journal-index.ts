// What a command needs of the part of the journal's file that it does not read: where the records of each entry stand, and
// which entries have a name. Nothing is taken from here that the file does not confirm: each record is read where it stands
// and checked, and if anything does not fit, the file is read as a whole.
import { digestOfName, idOf, idPattern, numberOf, numbersBeginning, namesOf } from "../../lookup.ts";
import { type Earlier, Fold, type FoldFacts, type PlacedRecord } from "../../fold.ts";
import { formatVersion } from "../../entry.ts";
import type { EntryRecord } from "../../record.ts";
import type { PieceFacts } from "../piece-facts.ts";
import {
  type Found,
  type LineStart,
  NearReader,
  type Piece,
  readBytes,
  type ReadPiece,
  readPieces,
  scanBytes,
} from "../scan.ts";
import { Cursor, cursorAtEnd, cursorFrom, type Rows, Table, valuesOf } from "./rows.ts";

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
  /** In the order of the file. An index behind this one may have added its own. */
  readonly segments: Segment[];
}

const lineBytes = 2048;

export class JournalIndex implements Earlier {
  #parts: Parts;
  /** How many segments are its own. */
  #count: number;
  #isMended = false;
  readonly #near = new NearReader();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#count = parts.segments.length;
  }

  /** What a fold knows, with all that is before it. @throws Irregular */
  static of(fold: Fold, part: IndexedPart, before?: JournalIndex): JournalIndex {
    const unsettled = new Set(before?.unsettled);
    const segment = segmentOf(fold, unsettled);
    const { format, isJournal, damage, misplaced, lastSum, gaps } = fold;
    const all = { format, isJournal, damage, misplaced, lastSum, gaps };
    const facts = { ...all, count: fold.count(), newest: fold.newest(), unsettled: [...unsettled] };
    return new JournalIndex({
      ...part,
      facts,
      segments: before === undefined ? segment : before.#segmentsWith(segment),
    });
  }

  /**
   * With the entries that begin in a piece, right behind it; records of others are in neither.
   * @returns undefined if it has one of them already
   */
  extended(facts: PieceFacts, end: number): JournalIndex | undefined {
    const { facts: before } = this.#parts;
    const { count, first, last, updated, newest, unsettled, lastSum } = facts;
    const records = facts.table;
    if (
      before.newest !== undefined &&
      count > 0 &&
      idOf(first) <= before.newest &&
      this.#mending(() => this.#hasAny(records))
    )
      return undefined;
    const isNewest = before.newest === undefined || newest > before.newest;
    const all = {
      ...before,
      lastSum,
      count: before.count + count,
      newest: isNewest && count > 0 ? newest : before.newest,
      unsettled: unsettled.length === 0 ? before.unsettled : [...before.unsettled, ...unsettled],
    };
    const segment = { records, names: facts.names, first, last, updated };
    const more = count === 0 ? [] : [segment];
    return new JournalIndex({ ...this.#parts, end, facts: all, segments: this.#segmentsWith(more) });
  }

  #hasAny(records: Rows): boolean {
    for (const cursor = new Cursor(records, 0); cursor.isAt; cursor.move(1))
      if (this.#offsetsOf(cursor.key).length > 0) return true;
    return false;
  }

  /** The same with its segments kept elsewhere. */
  with(segments: readonly Segment[]): JournalIndex {
    return new JournalIndex({ ...this.#parts, segments: [...segments] });
  }

  get segments(): readonly Segment[] {
    const { segments } = this.#parts;
    return segments.length === this.#count ? segments : segments.slice(0, this.#count);
  }

  /** Reading a long file makes thousands of indexes, each of the one before and a little more: their list is one. */
  #segmentsWith(more: readonly Segment[]): Segment[] {
    const { segments } = this.#parts;
    const list = segments.length === this.#count ? segments : segments.slice(0, this.#count);
    list.push(...more);
    return list;
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

  /** What it was loaded from is not what the file says. */
  get isMended(): boolean {
    return this.#isMended;
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
    return this.#offsetsOf(numberOf(id));
  }

  #offsetsOf(number: number): number[] {
    const holding = this.segments.filter(({ first, last }) => first <= number && number <= last);
    return holding.flatMap(({ records }) => valuesOf(records, number));
  }

  /** @throws Unfit if no such record is there */
  #recordAt(offset: number, id: string): EntryRecord {
    const { fd } = this.#parts;
    for (let length = lineBytes; ; length *= 4) {
      const bytes = this.#near.read(fd, offset, length);
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
    this.#count = whole.#count;
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
  for (const piece of readPieces(fd, { offset: 0, line: 1 }, { size: end })) {
    const scanned = piece.scan();
    const fold = new Fold(index);
    fold.add(scanned);
    index = indexBehind(fold, { fd, end: scanned.end });
    if (index === undefined) return undefined;
  }
  return index;
}

/** Is shown a file while it is read: each piece as it is, or what it says of itself. */
export interface Watcher {
  readonly add: (piece: Piece, fold: Fold) => void;
  /** Whether a summary is enough. */
  readonly takes: (facts: PieceFacts) => boolean;
  /** @param strays what became of entries that began before the piece */
  readonly addFacts: (facts: PieceFacts, start: LineStart, strays: Fold | undefined) => void;
}

/**
 * A fold for what comes after a piece, by what the piece says of itself: the same as if each record of it had been taken in.
 * @returns that, and the last record of the piece; undefined if the piece has to be read
 */
export function takeFacts(
  fold: Fold,
  { facts, start }: Pick<ReadPiece, "facts" | "start">,
  { fd, watcher }: { readonly fd: number; readonly watcher: Watcher | undefined },
): { readonly fold: Fold; readonly anchor: LineStart & { bytes: Buffer; isChained: boolean } } | undefined {
  if (facts === undefined || watcher?.takes(facts) === false) return undefined;
  const taken = indexWith(fold, { facts, start }, fd);
  if (taken === undefined) return undefined;
  watcher?.addFacts(facts, start, taken.strays);
  const { offset, length, line } = facts.lastPlace;
  const bytes = readBytes(fd, offset, length);
  return { fold: new Fold(taken.index), anchor: { offset, line: start.line + line, bytes, isChained: true } };
}

interface Taken {
  readonly index: JournalIndex;
  /** What became of entries that began before the piece. */
  readonly strays: Fold | undefined;
}

function indexWith(
  fold: Fold,
  { facts, start }: { readonly facts: PieceFacts; readonly start: LineStart },
  fd: number,
): Taken | undefined {
  const { earlier } = fold;
  if (fold.hasOwn || !(earlier instanceof JournalIndex) || earlier.format !== formatVersion) return undefined;
  const end = start.offset + facts.bytes;
  const index = earlier.extended(facts, end);
  if (index === undefined || facts.strays.length === 0) return index && { index, strays: undefined };
  const found: Found[] = [];
  for (const { offset, length, line } of facts.strays) {
    const [one] = scanBytes(readBytes(fd, offset, length), { offset, line: start.line + line }).found;
    if (one === undefined) return undefined; // it was changed meanwhile
    found.push(one);
  }
  const strays = new Fold(index);
  strays.add({ found, damage: [] });
  strays.lastSum = facts.lastSum;
  const behind = indexBehind(strays, { fd, end });
  return behind && { index: behind, strays };
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
