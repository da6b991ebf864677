// How a file of any size is read: in pieces, each of whole lines, since no buffer holds more than 2 GiB.
import * as fs from "node:fs";
import { type Scan, scanBytes } from "./scan.ts";

const newline = 10;

/** Large enough that cutting costs nothing, small enough that two of them cost little */
const pieceBytes = 16 * 1024 * 1024;

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
