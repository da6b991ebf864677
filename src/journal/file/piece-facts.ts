// What the lines of a piece say by themselves, whatever comes before it: checked in full, and short enough to be handed from
// one thread to another. Only lines as this version writes them are summarized; a piece with any other is read as it is.
import { formatVersion, isSettled } from "../entry.ts";
import { digestOfName, idPattern, keyName, namesOf, numberOf } from "../lookup.ts";
import { readEntry } from "../read-entry.ts";
import { type EntryRecord, hashOfRecord, readLine, sameBytes, stateOf } from "../record.ts";
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

interface Begun {
  readonly number: number;
  newest: EntryRecord;
  readonly intent: NonNullable<EntryRecord["intent"]>;
  count: number;
}

class Summary {
  readonly begun = new Map<string, Begun>();
  readonly table = new Table();
  readonly strays: LinePlace[] = [];
  readonly #strayed = new Set<string>();
  readonly #isVerified: boolean;
  readonly broken: number[] = [];
  readonly gaps = new Map<string, number>();
  records = 0;
  sums = "";
  after: string | undefined;
  firstLine = 0;
  lastSum = "";
  lastPlace: LinePlace | undefined;

  constructor(isVerified: boolean) {
    this.#isVerified = isVerified;
  }

  /** @returns false if the record is not one that can be summarized */
  add(record: EntryRecord, place: LinePlace): boolean {
    const { id, sum, after, format } = record;
    if (format !== formatVersion || after === undefined) return false;
    if (this.lastPlace === undefined) [this.after, this.firstLine] = [after, place.line];
    else if (after !== this.lastSum) this.broken.push(place.line);
    this.records += 1;
    if (this.#isVerified) this.sums += sum;
    this.lastSum = sum;
    this.lastPlace = place;
    const known = this.begun.get(id);
    return known === undefined ? this.#addFirst(record, place) : this.#addNext(known, record, place.offset);
  }

  #addFirst(record: EntryRecord, place: LinePlace): boolean {
    const { id, sequence, prev, intent } = record;
    if (sequence === undefined || intent === undefined) return false;
    if (sequence > 1) {
      this.#strayed.add(id);
      this.strays.push(place);
      return true;
    }
    if (prev !== undefined || !idPattern.test(id) || this.#strayed.has(id)) return false;
    const number = numberOf(id);
    this.begun.set(id, { number, newest: record, intent, count: 1 });
    this.table.add(number, place.offset);
    return true;
  }

  #addNext(known: Begun, record: EntryRecord, offset: number): boolean {
    const { id, sequence = 0, prev, intent } = record;
    const { newest, count } = known;
    if (sequence <= (newest.sequence ?? 0) || intent === undefined || !sameBytes(known.intent, intent)) return false;
    if (this.#isVerified && prev !== hashOfRecord(newest.line) && !this.gaps.has(id)) this.gaps.set(id, count);
    known.newest = record;
    known.count += 1;
    this.table.add(known.number, offset);
    return true;
  }
}

/**
 * @param about.offset where the bytes begin in the file: the start of a line
 * @param about.isVerified whether every chain is checked; entries are not looked for by name then
 * @returns undefined of lines that have to be read with what is before them
 */
export function factsOf(
  bytes: Buffer,
  { offset, isVerified }: { readonly offset: number; readonly isVerified: boolean },
): SentFacts | undefined {
  const summary = new Summary(isVerified);
  let lines = 0;
  for (let start = 0; start < bytes.length; lines += 1) {
    const end = bytes.indexOf(newline, start);
    if (end < 0) return undefined;
    if (end > start) {
      const record = readLine({ bytes, start, end });
      const place = { offset: offset + start, length: end - start, line: lines };
      if (record?.kind !== "entry" || !summary.add(record, place)) return undefined;
    }
    start = end + 1;
  }
  const entries = entriesFacts(summary.begun, isVerified);
  const { after, firstLine, lastPlace, records, sums, lastSum, broken, strays, gaps, table } = summary;
  if (entries === undefined || after === undefined || lastPlace === undefined) return undefined;
  const chain = { lines, records, sums, after, firstLine, lastSum, lastPlace, broken, strays, gaps };
  return { ...chain, bytes: bytes.length, ...entries, count: summary.begun.size, table: table.cells() };
}

type EntriesFacts = Pick<SentFacts, "names" | "first" | "last" | "updated" | "newest" | "unsettled" | "named" | "keys">;

/** @returns undefined if the newest record of one of them is not an entry */
function entriesFacts(begun: ReadonlyMap<string, Begun>, isVerified: boolean): EntriesFacts | undefined {
  const names = new Table();
  const [unsettled, keys]: [string[], number[]] = [[], []];
  const named = new Map<string, readonly string[]>();
  let [first, last, updated, newestId] = [Number.POSITIVE_INFINITY, 0, "", ""];
  for (const [id, { number, newest }] of begun) {
    const entry = readEntry(newest.line, { record: formatVersion, entry: formatVersion });
    const state = stateOf(newest);
    if (entry === undefined || state === undefined || entry.id !== id) return undefined;
    [first, last] = [Math.min(first, number), Math.max(last, number)];
    if (id > newestId) newestId = id;
    if (entry.updated_at > updated) updated = entry.updated_at;
    if (!isSettled(state)) unsettled.push(id);
    if (!isVerified) {
      for (const name of namesOf(entry)) names.add(digestOfName(name), number);
      continue;
    }
    const others = [entry.parent, entry.replaces, entry.replaced_by].filter((other) => other !== null);
    if (others.length > 0) named.set(id, others);
    if (entry.idempotency_key !== null) keys.push(digestOfName(keyName(entry.base_url, entry.idempotency_key)));
  }
  return {
    names: names.cells(),
    first,
    last,
    updated,
    newest: newestId,
    unsettled,
    named,
    keys: Float64Array.from(keys),
  };
}
