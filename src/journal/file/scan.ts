// Splits a file into valid records and damage.
import * as fs from "node:fs";
import { readLine, recordStart } from "../record.ts";

const newline = 10;

export interface LineStart {
  readonly offset: number;
  readonly line: number;
}

export interface Damage extends LineStart {
  readonly bytes: Buffer;
  readonly reason: string;
}

export interface FoundRecord extends LineStart {
  readonly record: NonNullable<ReturnType<typeof readLine>>;
  readonly length: number;
}

export interface Scan {
  readonly found: { push(found: FoundRecord): unknown };
  readonly damage: { push(damage: Damage): unknown };
  /** The unreadable end of a last line without a newline: an append that is in progress or was cut short. */
  torn: Damage | undefined;
}

/** Blank lines are not damage. @returns the number of the next line */
export function scanBytes(bytes: Buffer, from: LineStart, scan: Scan): number {
  let line = from.line;
  for (let start = 0; start < bytes.length; line += 1) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    const offset = from.offset + start;
    const record = readLine(bytes, start, end);
    if (record !== undefined) scan.found.push({ record, offset, line, length: end - start });
    else scanBadLine(bytes.subarray(start, end), { offset, line, isEnded: cut >= 0, scan });
    start = end + 1;
  }
  return line;
}

const pieceLength = 1024 * 1024;

/**
 * Reads pieces of whole lines; only the last piece may end within a line. Each piece overwrites the bytes of the
 * previous piece.
 */
export function* linesOf(
  fd: number,
  from: number,
  size: number,
): Iterable<{ readonly bytes: Buffer; readonly offset: number }> {
  let memory = Buffer.alloc(0);
  for (let [offset, length] = [from, pieceLength]; offset < size; ) {
    const wanted = Math.min(length, size - offset);
    if (memory.length < wanted) memory = Buffer.allocUnsafeSlow(wanted);
    const bytes = readInto(memory.subarray(0, wanted), fd, offset);
    const isLast = bytes.length < wanted || offset + wanted === size;
    const end = isLast ? bytes.length : bytes.lastIndexOf(newline) + 1;
    length = end > 0 ? pieceLength : 2 * length;
    if (end > 0) yield { bytes: bytes.subarray(0, end), offset };
    if (isLast) return;
    offset += end;
  }
}

/**
 * Scans a line that is damaged or lacks a newline between two records. Tries the text between two record starts with and
 * without its last byte, which may be a changed newline.
 */
function scanBadLine(text: Buffer, at: LineStart & { readonly isEnded: boolean; readonly scan: Scan }): void {
  const { offset, line, isEnded, scan } = at;
  const starts: number[] = [];
  for (let from = 0; from >= 0 && from < text.length; from = text.indexOf(recordStart, from + 1, "latin1"))
    starts.push(from);
  for (const [index, start] of starts.entries()) {
    const next = starts[index + 1] ?? text.length;
    let left = start;
    for (const end of [next - 1, next]) {
      const record = readLine(text.subarray(start, end));
      if (record === undefined) continue;
      scan.found.push({ record, offset: offset + start, line, length: end - start });
      left = end;
    }
    if (left === next) continue;
    const rest = { offset: offset + left, line, bytes: Buffer.from(text.subarray(left, next)) };
    if (next === text.length && !isEnded) scan.torn = { ...rest, reason: "an incomplete append" };
    else if (left === start) scan.damage.push({ ...rest, reason: "its checksum does not match" });
    else scan.damage.push({ ...rest, reason: "the byte that ended a line was changed" });
  }
}

export function readBytes(fd: number, offset: number, length: number): Buffer {
  return readInto(Buffer.allocUnsafe(Math.max(0, length)), fd, offset);
}

function readInto(bytes: Buffer, fd: number, offset: number): Buffer {
  let done = 0;
  while (done < bytes.length) {
    const count = fs.readSync(fd, bytes, done, bytes.length - done, offset + done);
    if (count === 0) break;
    done += count;
  }
  return bytes.subarray(0, done);
}
