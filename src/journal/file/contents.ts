// What the sound records of a file are together: entries, and what contradicts, repeats or breaks the order.
import { hash } from "node:crypto";
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, isOfUnsettled } from "../lookup.ts";
import { contentOf, entryIn, finishedEntryIn, macOf, type RecordLine, type Signed } from "../record.ts";
import type { Damage, Found } from "./scan.ts";

/** A sound record in the wrong place: one that was appended again, or whose order was changed. */
export interface Misplaced {
  /** Undefined of the record that begins a journal. */
  readonly id: string | undefined;
  readonly line: number;
}

interface Slot {
  readonly lines: RecordLine[];
  /** A digest of the text of its intent. */
  readonly intent: string;
  entry: Entry | undefined;
}

const intentEnd = '},"result":{';

function intentOf({ content: { bytes, end }, intentStart }: RecordLine): string {
  const to = bytes.indexOf(intentEnd, intentStart, "latin1");
  return hash("sha256", bytes.subarray(intentStart, to < 0 ? end : to), "base64");
}

/** Reads bytes of the file again. */
export type ReadAgain = (offset: number, length: number) => Buffer;

/** The same record without its bytes, which are read again when they are asked for. */
function withoutBytes(record: RecordLine, { offset, text }: Found, read: ReadAgain): RecordLine {
  const { content, intentStart, macEnd } = record;
  const [start, length] = [text.start, text.end - text.start];
  return {
    ...record,
    intentStart: intentStart - start,
    macEnd: macEnd - start,
    content: {
      get bytes() {
        return read(offset, length);
      },
      start: content.start - start,
      end: content.end - start,
    },
  };
}

export class Contents {
  /** True once any sound line was seen: the file is a journal. */
  isJournal = false;
  /** The format of a line that this program does not read. */
  foreign: number | undefined;
  /** What the first line says. */
  header: Extract<Found["record"], { kind: "header" }> | undefined;
  /** Places that hold no sound record, for good. */
  readonly damage: Damage[] = [];
  /** Records that are ignored: an old one must not undo what came after it. */
  readonly misplaced: Misplaced[] = [];
  /** Lines before which another was edited, removed or moved. */
  readonly breaks: number[] = [];
  /** The checksum of the last sound line. */
  lastSum = "";
  #lastOffset = 0;
  readonly #slots = new Map<string, Slot>();
  #newest: string | undefined;
  readonly #archive: ReadAgain | undefined;

  /**
   * @param archive of the archive, which is too long for memory: reads its records again. A second copy of a record is not damage
   * there: a crash came before it was left out of the journal.
   */
  constructor(archive?: ReadAgain) {
    this.#archive = archive;
  }

  get isWhole(): boolean {
    return this.damage.length + this.misplaced.length + this.breaks.length === 0;
  }

  /** Takes in what was found after all that it knows. */
  add({ found, damage }: { readonly found: readonly Found[]; readonly damage: readonly Damage[] }): void {
    this.damage.push(...damage);
    for (const one of found) this.#add(one);
  }

  #add(found: Found): void {
    const { record, offset, line, text } = found;
    const [lastSum, lastOffset] = [this.lastSum, this.#lastOffset];
    [this.lastSum, this.#lastOffset] = [record.sum, offset];
    const isFirst = !this.isJournal;
    this.isJournal = true;
    if (record.kind === "foreign") {
      this.foreign ??= record.format;
      return;
    }
    if (record.kind === "header") {
      if (isFirst) this.header = record;
      else this.misplaced.push({ id: undefined, line });
      return;
    }
    // Damage explains itself: a record behind it is not reported.
    const isExplained = (): boolean => this.damage.some((one) => one.offset > lastOffset && one.offset < offset);
    if (!isFirst && record.after !== lastSum && !isExplained()) this.breaks.push(line);
    const { id, n } = record;
    const slot = this.#slots.get(id);
    const intent = intentOf(record);
    const kept = this.#archive === undefined ? record : withoutBytes(record, found, this.#archive);
    if (slot === undefined) {
      this.#slots.set(id, { lines: [kept], intent, entry: undefined });
      if (this.#newest === undefined || id > this.#newest) this.#newest = id;
      return;
    }
    if (intent !== slot.intent) {
      const bytes = text.bytes.subarray(text.start, text.end);
      this.damage.push({ offset, line, bytes, reason: `it contradicts an earlier record of entry ${id}` });
    } else if (n > slot.lines.at(-1)!.n) {
      slot.lines.push(kept);
      slot.entry = undefined;
    } else if (
      this.#archive === undefined ||
      !slot.lines.some((one) => one.n === n && contentOf(one) === contentOf(record))
    )
      this.misplaced.push({ id, line });
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  get(id: string): Entry | undefined {
    const slot = this.#slots.get(id);
    const entry = slot && (slot.entry ?? entryOf(slot.lines));
    if (slot && this.#archive === undefined) slot.entry = entry;
    return entry;
  }

  isUnsettled(id: string): boolean {
    const last = this.#slots.get(id)?.lines.at(-1);
    return last !== undefined && !isSettled(last.state);
  }

  get count(): number {
    return this.#slots.size;
  }

  /** In the order in which they are in the file. */
  ids(): Iterable<string> {
    return this.#slots.keys();
  }

  /** The highest id there is. */
  get newest(): string | undefined {
    return this.#newest;
  }

  /** The sound records of an entry, oldest first. */
  lines(id: string): readonly RecordLine[] {
    return this.#slots.get(id)?.lines ?? [];
  }
}

/** A record as it is carried. */
export function signedRecord(line: RecordLine): Signed {
  return { content: contentOf(line), mac: macOf(line) };
}

/** The newest record that is one decides; its number is that of the last. */
function entryOf(lines: readonly RecordLine[]): Entry | undefined {
  for (const line of lines.toReversed()) {
    const entry = isSettled(line.state) ? finishedEntryIn(contentOf(line)) : entryIn(contentOf(line));
    if (entry) return { ...entry, sequence: lines.at(-1)!.n };
  }
  return undefined;
}

/** The journal, and where it is asked for the archive: of an entry in both, the journal's copy counts. */
export class Shelf {
  readonly #parts: readonly Contents[];

  constructor(...parts: readonly Contents[]) {
    this.#parts = parts;
  }

  #of(id: string): Contents | undefined {
    return this.#parts.find((part) => part.has(id));
  }

  has(id: string): boolean {
    return this.#of(id) !== undefined;
  }

  get(id: string): Entry | undefined {
    return this.#of(id)?.get(id);
  }

  lines(id: string): readonly RecordLine[] {
    return this.#of(id)?.lines(id) ?? [];
  }

  /** The highest first: the order of their admission, the newest first. */
  ids(): string[] {
    return [...new Set(this.#parts.flatMap((part) => [...part.ids()]))].sort().toReversed();
  }

  /** Entries that may fit, the newest first: as few as possible are parsed. */
  *candidates(filter: EntryFilter): Iterable<Entry> {
    const { ids, after, states } = filter;
    const among = ids === undefined ? this.ids() : [...new Set(ids)].sort().toReversed();
    const isOpen = isOfUnsettled(filter);
    for (const id of among) {
      const part = this.#of(id);
      if (part === undefined || (after !== undefined && id <= after)) continue;
      if (isOpen && !part.isUnsettled(id)) continue;
      if (states !== undefined && !states.includes(part.lines(id).at(-1)!.state)) continue;
      const entry = part.get(id);
      if (entry) yield entry;
    }
  }
}
