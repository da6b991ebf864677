// How the bytes of a file are cut into sound records and damage, and where damage is kept.
import { readLine, recordStart, type Slice, type SoundRecord } from "../record.ts";
import { hash } from "node:crypto";
import * as fs from "node:fs";
import { createFile } from "../../disk/atomic-write.ts";

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
    if (end > start) {
      const text = { bytes, start, end };
      const record = readLine(text);
      if (record !== undefined) scan.found.push({ record, offset: from.offset + start, line, text });
      else scanBadLine(text, { base: from.offset, line, ended: cut >= 0, scan });
    }
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

// How a file of any size is read: in pieces, each of whole lines, since no buffer holds more than 2 GiB.

/** Large enough that cutting costs nothing, small enough that all that is made of two of them fits into 100 MB. */
const pieceBytes = 4 * 1024 * 1024;

/** Up to `length` bytes from `offset`; fewer if the file ends before. */
export function readBytes(fd: number, offset: number, length: number): Buffer {
  if (length <= 0) return Buffer.alloc(0);
  const bytes = Buffer.allocUnsafeSlow(length);
  let done = 0;
  while (done < length) {
    const count = fs.readSync(fd, bytes, done, length - done, offset + done);
    if (count === 0) break;
    done += count;
  }
  return bytes.subarray(0, done);
}

/** Where a line begins. */
export interface LineStart {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
}

export interface Piece extends Scan {
  readonly bytes: Buffer;
  /** Where it ends in the file. */
  readonly end: number;
  readonly isLast: boolean;
}

/** The records from the start of a line to the end of the file, piece by piece. @param size where it ended when it was opened */
export function* scanPieces(fd: number, from: LineStart, size: number): Iterable<Piece> {
  let { offset, line } = from;
  for (let wanted = pieceBytes; ; ) {
    const bytes = readBytes(fd, offset, Math.min(wanted, size - offset));
    const isLast = offset + bytes.length >= size || bytes.length < Math.min(wanted, size - offset);
    const end = isLast ? bytes.length : bytes.lastIndexOf(newline) + 1;
    if (end === 0 && !isLast) {
      wanted *= 2; // a line that is longer than a piece
      continue;
    }
    const scan = scanBytes(bytes.subarray(0, end), { offset, line });
    offset += end;
    yield { ...scan, bytes, end: offset, isLast };
    if (isLast) return;
    line += scan.lines;
    wanted = pieceBytes;
  }
}

/** Copies of damage beside the journal: each is made once, and never thrown away. */
export class SetAside {
  readonly #path: string;
  readonly #now: () => number;
  /** Names of the damaged places that this process knows to be set aside. */
  readonly #known = new Set<string>();

  /** @param path the journal's */
  constructor(path: string, now: () => number) {
    this.#path = path;
    this.#now = now;
  }

  /** Copies damaged places to `<journal>.damaged-<offset>-<hash>`. */
  keepDamage(damage: readonly Damage[]): void {
    for (const { offset, bytes } of damage) {
      const suffix = `damaged-${offset}-${hash("sha256", bytes, "hex").slice(0, 12)}`;
      if (this.#known.has(suffix)) continue;
      this.#keep(suffix, bytes);
      this.#known.add(suffix);
    }
  }

  /** Copies the end of an incomplete append to `<journal>.torn-<time>`. */
  keepTorn(torn: Damage): void {
    this.#keep(`torn-${new Date(this.#now()).toISOString().replaceAll(/[-:.]/g, "")}`, torn.bytes);
  }

  #keep(suffix: string, bytes: Buffer): void {
    for (let number = 1; ; number += 1) {
      const path = `${this.#path}.${suffix}${number === 1 ? "" : `-${number}`}`;
      const there = fs.lstatSync(path, { throwIfNoEntry: false });
      if (there?.isFile() && fs.readFileSync(path).equals(bytes)) return;
      if (there === undefined) return createFile(path, bytes);
    }
  }
}
