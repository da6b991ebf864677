// What the lines of a piece say by themselves, whatever comes before it: checked in full, and short enough to be handed from
// one thread to another. Only lines as this version writes them are summarized; a piece with any other is read as it is.
import { formatVersion, isSettled } from "../entry.ts";
import { digestOfName, idPattern, keyName, namesOf, numberOf } from "../lookup.ts";
import { plainEntry } from "../plain-entry.ts";
import { readEntry } from "../read-entry.ts";
import { type EntryRecord, hashOfRecord, readLine, recordStart, sameBytes, stateBehind, sumDigits } from "../record.ts";
import { type Cells, type Rows, Table } from "./index/rows.ts";

const newline = 10;

/** A line of the piece. */
export interface LinePlace {
  /** In the file. */
  readonly offset: number;
  readonly length: number;
  /** Counted from 0 in the piece. */
  readonly line: number;
}

export interface PieceFacts {
  /** How many there are, from the start of the first line to the end of the last. */
  readonly bytes: number;
  /** Blank ones too. */
  readonly lines: number;
  readonly records: number;
  /** The checksums of all records, one behind the other; of a piece that is verified. */
  readonly sums: string;
  /** What the first record names as the one before it. */
  readonly after: string;
  readonly firstLine: number;
  readonly lastSum: string;
  readonly lastPlace: LinePlace;
  /** Lines whose record names another one than the one before it. */
  readonly broken: readonly number[];
  /** Entries that begin here; of each all records of the piece are in the tables. */
  readonly count: number;
  /** Rows as of an index. */
  readonly table: Rows;
  readonly names: Rows;
  readonly first: number;
  readonly last: number;
  /** When the last of these entries was touched. */
  readonly updated: string;
  readonly newest: string;
  readonly unsettled: readonly string[];
  /** Records of entries that began before. */
  readonly strays: readonly LinePlace[];
  /** Places of records that do not follow the one before them in their entry; of a piece that is verified. */
  readonly gaps: ReadonlyMap<string, number>;
  /** The entries that an entry names. */
  readonly named: ReadonlyMap<string, readonly string[]>;
  /** Digests of the entries' keys. */
  readonly keys: Cells;
}

/** The same as one thread hands them to another. */
export interface SentFacts extends Omit<PieceFacts, "table" | "names"> {
  readonly table: Cells;
  readonly names: Cells;
}

/** An entry that begins in the piece. Numbers, not records: a collector that meets them does not copy what they hold. */
interface Begun {
  readonly id: string;
  readonly number: number;
  /** Of its first record. */
  readonly intentStart: number;
  readonly intentEnd: number;
  /** Where its newest record is. */
  start: number;
  end: number;
  /** Where the `intent` of that one ends. */
  newestIntentEnd: number;
  sequence: number;
  count: number;
}

/** The checksums of a piece, side by side: as strings, a collector would copy each of them. */
class Sums {
  #bytes = Buffer.allocUnsafeSlow(32 * 1024);
  #used = 0;

  /** Of the record that begins there. */
  add(bytes: Buffer, start: number): void {
    if (this.#used + sumDigits > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#bytes.length);
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    const from = start + recordStart.length;
    for (let at = 0; at < sumDigits; at += 1) this.#bytes[this.#used + at] = bytes[from + at]!;
    this.#used += sumDigits;
  }

  toString(): string {
    return this.#bytes.toString("latin1", 0, this.#used);
  }
}

class Summary {
  readonly begun = new Map<string, Begun>();
  readonly table = new Table();
  readonly strays: LinePlace[] = [];
  readonly #strayed = new Set<string>();
  readonly #bytes: Buffer;
  readonly #offset: number;
  /** Of a piece that is verified. */
  readonly #sums: Sums | undefined;
  readonly broken: number[] = [];
  readonly gaps = new Map<string, number>();
  records = 0;
  after: string | undefined;
  firstLine = 0;
  lastSum = "";
  #lastLine = 0;
  #lastStart = 0;
  #lastEnd = 0;

  constructor(bytes: Buffer, { offset, isVerified }: PieceAbout) {
    this.#bytes = bytes;
    this.#offset = offset;
    this.#sums = isVerified ? new Sums() : undefined;
  }

  /** @returns false if the record is not one that can be summarized */
  add(record: EntryRecord, line: number): boolean {
    const { id, sum, after, format } = record;
    const { start, end } = record.line;
    if (format !== formatVersion || after === undefined) return false;
    if (this.records === 0) [this.after, this.firstLine] = [after, line];
    else if (after !== this.lastSum) this.broken.push(line);
    this.#sums?.add(this.#bytes, start);
    this.records += 1;
    this.lastSum = sum;
    [this.#lastLine, this.#lastStart, this.#lastEnd] = [line, start, end];
    const known = this.begun.get(id);
    return known === undefined ? this.#addFirst(record, line) : this.#addNext(known, record);
  }

  #addFirst(record: EntryRecord, line: number): boolean {
    const { id, sequence, prev, intent } = record;
    if (sequence === undefined || intent === undefined) return false;
    const { start, end } = record.line;
    const offset = this.#offset + start;
    if (sequence > 1) {
      this.#strayed.add(id);
      this.strays.push({ offset, length: end - start, line });
      return true;
    }
    if (prev !== undefined || !idPattern.test(id) || this.#strayed.has(id)) return false;
    const number = numberOf(id);
    const [intentStart, intentEnd] = [intent.start, intent.end];
    this.begun.set(id, {
      id,
      number,
      intentStart,
      intentEnd,
      start,
      end,
      newestIntentEnd: intentEnd,
      sequence,
      count: 1,
    });
    this.table.add(number, offset);
    return true;
  }

  #addNext(known: Begun, { id, sequence = 0, prev, intent, line }: EntryRecord): boolean {
    const bytes = this.#bytes;
    const first = { bytes, start: known.intentStart, end: known.intentEnd };
    if (sequence <= known.sequence || intent === undefined || !sameBytes(first, intent)) return false;
    if (this.#sums && prev !== hashOfRecord({ bytes, start: known.start, end: known.end }) && !this.gaps.has(id))
      this.gaps.set(id, known.count);
    [known.start, known.end, known.newestIntentEnd, known.sequence] = [line.start, line.end, intent.end, sequence];
    known.count += 1;
    this.table.add(known.number, this.#offset + line.start);
    return true;
  }

  get sums(): string {
    return this.#sums?.toString() ?? "";
  }

  get lastPlace(): LinePlace {
    const [start, end] = [this.#lastStart, this.#lastEnd];
    return { offset: this.#offset + start, length: end - start, line: this.#lastLine };
  }
}

interface PieceAbout {
  /** Where the bytes begin in the file: the start of a line. */
  readonly offset: number;
  /** Whether every chain is checked; entries are not looked for by name then. */
  readonly isVerified: boolean;
}

/** @returns undefined of lines that have to be read with what is before them */
export function factsOf(bytes: Buffer, about: PieceAbout): SentFacts | undefined {
  const summary = new Summary(bytes, about);
  let lines = 0;
  for (let start = 0; start < bytes.length; lines += 1) {
    const end = bytes.indexOf(newline, start);
    if (end < 0) return undefined;
    if (end > start) {
      const record = readLine({ bytes, start, end });
      if (record?.kind !== "entry" || !summary.add(record, lines)) return undefined;
    }
    start = end + 1;
  }
  const { after, firstLine, lastPlace, records, sums, lastSum, broken, strays, gaps, table, begun } = summary;
  const entries = entriesFacts(bytes, begun.values(), about.isVerified);
  if (entries === undefined || after === undefined) return undefined;
  const chain = { lines, records, sums, after, firstLine, lastSum, lastPlace, broken, strays, gaps };
  return { ...chain, bytes: bytes.length, ...entries, count: begun.size, table: table.cells() };
}

type EntriesFacts = Pick<SentFacts, "names" | "first" | "last" | "updated" | "newest" | "unsettled" | "named" | "keys">;

/** @returns undefined if the newest record of one of them is not an entry */
function entriesFacts(bytes: Buffer, begun: Iterable<Begun>, isVerified: boolean): EntriesFacts | undefined {
  const names = new Table();
  const [unsettled, keys]: [string[], number[]] = [[], []];
  const named = new Map<string, readonly string[]>();
  let [first, last, updated, newest] = [Number.POSITIVE_INFINITY, 0, "", ""];
  for (const { id, number, start, end, newestIntentEnd } of begun) {
    const line = { bytes, start, end };
    const plain = isVerified ? plainEntry(line) : undefined;
    const whole = plain === undefined ? readEntry(line, { record: formatVersion, entry: formatVersion }) : undefined;
    const entry = plain ?? whole;
    if (entry === undefined || entry.id !== id) return undefined;
    [first, last] = [Math.min(first, number), Math.max(last, number)];
    if (id > newest) newest = id;
    if (entry.updated_at > updated) updated = entry.updated_at;
    if (!isSettled(stateBehind({ bytes, start, end: newestIntentEnd }, end))) unsettled.push(id);
    if (isVerified) {
      const others = [entry.parent, entry.replaces, entry.replaced_by].filter((other) => other !== null);
      if (others.length > 0) named.set(id, others);
      if (entry.idempotency_key !== null) keys.push(digestOfName(keyName(entry.base_url, entry.idempotency_key)));
    } else if (whole) for (const name of namesOf(whole)) names.add(digestOfName(name), number);
  }
  const tables = { names: names.cells(), keys: Float64Array.from(keys) };
  return { first, last, updated, newest, unsettled, named, ...tables };
}
