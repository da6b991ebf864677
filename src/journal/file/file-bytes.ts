// Owns: reading and writing all the bytes asked for, however few a call takes, and making a file that is whole or not there.
// Must not know: records, what a file is for.
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";

const { O_CREAT, O_EXCL, O_RDWR } = fs.constants;

/** Opens neither through a link nor with a wait for the other end of a pipe. */
export const careful = (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);

/** Up to `length` bytes from `offset`; fewer where the file ends before. */
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

/** Appends all bytes: a short write is gone on with. */
export function writeAll(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(fd, bytes, done, bytes.length - done);
}

/** A new file, readable by its owner alone, whole and synced, or none. */
export function createFile(path: string, bytes: Buffer): void {
  const fd = fs.openSync(path, O_RDWR | O_CREAT | O_EXCL | careful, 0o600);
  try {
    writeAll(fd, bytes);
    fs.fsyncSync(fd);
  } catch (error) {
    fs.rmSync(path, { force: true });
    throw error;
  } finally {
    fs.closeSync(fd);
  }
}

/** Removes what a rewriting of the file left beside it when it was killed. */
export function removeTemporary(path: string): void {
  for (const name of fs.readdirSync(dirname(path))) {
    if (name.startsWith(`${basename(path)}.new-`)) fs.rmSync(join(dirname(path), name), { force: true });
  }
}
