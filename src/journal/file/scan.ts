// How a file is cut into sound records and damage.
import * as fs from "node:fs";
import type { PieceFacts } from "./piece-facts.ts";
import type { Pause } from "../journal.ts";
import { readLine, recordStart, type Slice, type SoundRecord } from "../record.ts";

const newline = 10;

/** A place in the file that holds no sound record. */
export interface Damage {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
  readonly bytes: Buffer;
  readonly reason: string;
}

export interface Found {
  readonly record: SoundRecord;
  readonly offset: number;
  readonly line: number;
  readonly text: Slice;
}

export interface Scan {
  readonly found: Found[];
  readonly damage: Damage[];
  /** What is after the last newline and is not a sound record: an append that a crash cut short, or one under way. */
  readonly torn: Damage | undefined;
  /** How many lines they were, blank ones too. */
  readonly lines: number;
}

/**
 * Cuts bytes that begin at the start of a line into records. Blank lines are not damage: a torn end is followed by one.
 * @param from where the bytes begin in the file
 */
export function scanBytes(bytes: Buffer, from: { readonly offset: number; readonly line: number }): Scan {
  const scan: Draft = { found: [], damage: [], torn: undefined, lines: 0 };
  let line = from.line;
  for (let start = 0; start < bytes.length; line += 1) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    const text = { bytes, start, end };
    const record = readLine(text);
    if (record !== undefined) scan.found.push({ record, offset: from.offset + start, line, text });
    else scanBadLine(text, { base: from.offset, line, ended: cut >= 0, scan });
    start = end + 1;
  }
  scan.lines = line - from.line;
  return scan;
}

interface Draft {
  readonly found: Found[];
  readonly damage: Damage[];
  torn: Damage | undefined;
  lines: number;
}

/**
 * A line that is not sound as a whole: two records whose newline was lost, or damage. Every start of a record in it is
 * tried up to the next start, then without the one byte before that (the former newline).
 */
function scanBadLine(text: Slice, at: { base: number; line: number; ended: boolean; scan: Draft }): void {
  const { base, line, ended, scan } = at;
  const { bytes } = text;
  const starts = recordStarts(text);
  for (const [index, start] of starts.entries()) {
    const next = starts[index + 1] ?? text.end;
    let left = start;
    for (const end of [next - 1, next]) {
      const record = readLine({ bytes, start, end });
      if (record === undefined) continue;
      scan.found.push({ record, offset: base + start, line, text: { bytes, start, end } });
      left = end;
    }
    if (left === next) continue;
    const rest = { offset: base + left, line, bytes: bytes.subarray(left, next) };
    if (next === text.end && !ended) scan.torn = { ...rest, reason: "an incomplete append" };
    else if (left === start) scan.damage.push({ ...rest, reason: "its checksum does not match" });
    else scan.damage.push({ ...rest, reason: "the byte that ended a line was changed" });
  }
}

/** Where records may begin in a bad line: its beginning and every place that looks like one. */
function recordStarts(text: Slice): number[] {
  const { bytes, start, end } = text;
  const starts = [start];
  for (let at = bytes.indexOf(recordStart, start + 1, "latin1"); at >= 0 && at < end; ) {
    starts.push(at);
    at = bytes.indexOf(recordStart, at + 1, "latin1");
  }
  return starts;
}

// How a file of any size is read: in pieces, each of whole lines, since no buffer holds more than 2 GiB. A piece has the
// lines that begin in a span of fixed length, so that threads can read different pieces of one file at the same time.

/** Large enough that cutting costs nothing, small enough that all that is made of two of them fits into 100 MB. */
const spanBytes = 1 * 1024 * 1024;
/** Lines are shorter, mostly: the end of the last one is read together with its piece. */
const spareBytes = 64 * 1024;

/** Where a line begins. */
export interface LineStart {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
}

/** A record to find again: who reads on from there knows that nothing before it was exchanged. */
export function anchorAt({ offset, line, text, record }: Found): LineStart & { bytes: Buffer; isChained: boolean } {
  const bytes = Buffer.from(text.bytes.subarray(text.start, text.end));
  return { offset, line, bytes, isChained: record.after !== undefined };
}

export interface Piece extends Scan {
  readonly bytes: Buffer;
  /** Where it ends in the file. */
  readonly end: number;
  readonly isLast: boolean;
}

/** The part of a file that is read. */
export interface FilePart {
  readonly fd: number;
  /** Where it begins, at the start of a line. */
  readonly from: number;
  /** Where the file ended when it was opened. */
  readonly size: number;
}

export interface PieceBytes {
  /** Where it begins in the file. */
  readonly offset: number;
  readonly bytes: Buffer;
  /** The end of the file is in it. */
  readonly isLast: boolean;
}

/** Up to `length` bytes from `offset`; fewer if the file ends before. */
export function readBytes(fd: number, offset: number, length: number): Buffer {
  return length <= 0 ? Buffer.alloc(0) : readInto(fd, Buffer.allocUnsafeSlow(length), { offset, length });
}

function readInto(
  fd: number,
  bytes: Buffer,
  { offset, length, done: first = 0 }: { offset: number; length: number; done?: number },
): Buffer {
  let done = first;
  while (done < length) {
    const count = fs.readSync(fd, bytes, done, length - done, offset + done);
    if (count === 0) break;
    done += count;
  }
  return bytes.subarray(0, done);
}

/** Enough for the records of twenty entries: each read has its price, whatever its length. */
const blockBytes = 64 * 1024;
const nothing: Buffer = Buffer.alloc(0);

/** Reads from a part of a file that does not change: what is near the last place that was asked for in one go with what is around. */
export class NearReader {
  /** Space for one block, and what is in it now. */
  #space = nothing;
  #block = nothing;
  #start = 0;
  #last = Number.NEGATIVE_INFINITY;

  /** As `readBytes`. */
  read(fd: number, offset: number, length: number): Buffer {
    const isNear = Math.abs(offset - this.#last) < blockBytes && length < blockBytes;
    const isBehind = offset >= this.#last;
    this.#last = offset;
    if (!isNear) return readBytes(fd, offset, length);
    if (offset < this.#start || offset + length > this.#start + this.#block.length) {
      this.#start = isBehind ? offset : Math.max(0, offset + length - blockBytes);
      if (this.#space.length === 0) this.#space = Buffer.allocUnsafeSlow(blockBytes);
      this.#block = nothing; // should the read fail
      this.#block = readInto(fd, this.#space, { offset: this.#start, length: blockBytes });
    }
    // A copy: who keeps one record does not keep all of them.
    const near = this.#block.subarray(offset - this.#start, offset - this.#start + length);
    const bytes = Buffer.allocUnsafeSlow(near.length);
    bytes.set(near);
    return bytes;
  }
}

/** How many pieces there are, one at least; the end of the file may be in an earlier one than the last. */
function countPieces({ from, size }: FilePart): number {
  return Math.max(1, Math.ceil((size - from) / spanBytes));
}

/** Where pieces are read to, one after the other, by who does not keep anything of them. */
export class PieceBuffer {
  #bytes = Buffer.alloc(0);

  /** @returns at least so many bytes, of which the first `kept` are as they were */
  ofLength(length: number, kept: number): Buffer {
    if (this.#bytes.length >= length) return this.#bytes;
    const larger = Buffer.allocUnsafeSlow(length);
    this.#bytes.copy(larger, 0, 0, kept);
    this.#bytes = larger;
    return larger;
  }
}

/** The lines that begin in the span with that number: none if one line is longer than it. */
export function readPiece(part: FilePart, number: number, into = new PieceBuffer()): PieceBytes {
  const { fd, from, size } = part;
  // With the byte before it: a newline there says that a line begins with the span.
  const before = number === 0 ? 0 : 1;
  const begin = from + number * spanBytes - before;
  const lastByte = spanBytes - 1 + before;
  let done = 0;
  for (let spare = spareBytes; ; spare *= 4) {
    const length = Math.max(0, Math.min(lastByte + spare, size - begin));
    const bytes = readInto(fd, into.ofLength(length, done), { offset: begin, length, done });
    done = bytes.length;
    const isAll = begin + length >= size || done < length;
    const cut = bytes.indexOf(newline, lastByte);
    if (cut < 0 && !isAll) continue; // a line that is longer
    const end = cut < 0 ? done : cut + 1;
    const start = number === 0 ? 0 : bytes.indexOf(newline) + 1 || end;
    return { offset: begin + start, bytes: bytes.subarray(start, end), isLast: isAll && end === done };
  }
}

export interface ReadPiece {
  /** Undefined of a piece that has to be read. */
  readonly facts: PieceFacts | undefined;
  readonly start: LineStart;
  /** Reads its records. */
  scan(): Piece;
}

/** Says of a long file what its pieces say, before each is wanted. */
export interface Summaries {
  get(number: number): PieceFacts | undefined;
  end(): void;
}

/**
 * Undefined of a file that is read before it is summarized.
 * @param about.isVerified every chain is checked, and no entry is looked for by name
 */
export type Summarize = (
  part: FilePart,
  about: { readonly count: number; readonly isVerified: boolean },
) => Summaries | undefined;

interface ReadOptions {
  readonly size: number;
  readonly isVerified?: boolean;
  readonly summarize?: Summarize | undefined;
}

/** The lines from there to the end of the file; the first and the last piece never have a summary. */
export function* readPieces(
  fd: number,
  from: LineStart,
  { size, isVerified = false, summarize }: ReadOptions,
): Iterable<ReadPiece> {
  const part: FilePart = { fd, from: from.offset, size };
  const summaries = summarize?.(part, { count: countPieces(part), isVerified });
  let { offset, line } = from;
  try {
    for (let number = 0; ; number += 1) {
      const start = { offset, line };
      const facts = number === 0 ? undefined : summaries?.get(number);
      let scanned: Piece | undefined;
      const scan = (): Piece => (scanned ??= scanPiece(part, number, line));
      yield { facts, start, scan };
      if (facts === undefined && scan().isLast) return;
      line += scanned?.lines ?? facts?.lines ?? 0;
      offset = scanned?.end ?? offset + (facts?.bytes ?? 0);
    }
  } finally {
    summaries?.end();
  }
}

function scanPiece(part: FilePart, number: number, line: number): Piece {
  const { offset, bytes, isLast } = readPiece(part, number);
  return { ...scanBytes(bytes, { offset, line }), bytes, end: offset + bytes.length, isLast };
}

/** At the rate of a busy machine, pieces for a few tenths of a second. */
const piecesAtOnce = 16;

/** Reads to the end. */
export function drained<T>(pieces: Generator<number, T>): T {
  for (;;) {
    const next = pieces.next();
    if (next.done) return next.value;
  }
}

/** Reads what takes a tenth of a second, to the end if that comes before. */
export function readSome<T>(pieces: Generator<number, T>): IteratorResult<number, T> {
  for (let count = 1; ; count += 1) {
    const next = pieces.next();
    if (next.done || count === piecesAtOnce) return next;
  }
}

/**
 * Reads to the end with a pause now and then; if that is refused, nothing more is read.
 * @param pieces how much was read, from 0 to 1
 * @param begun what was read before
 */
export async function drainedSlowly<T>(
  pieces: Generator<number, T>,
  pause: Pause = () => undefined,
  begun = readSome(pieces),
): Promise<T> {
  try {
    for (let next = begun; ; next = readSome(pieces)) {
      if (next.done) return next.value;
      await pause(next.value);
    }
  } finally {
    pieces.return(undefined as never);
  }
}
