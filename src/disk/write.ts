import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { deviceError, hasNothingToSync, isAccessDenied, isMissing } from "./error-words.ts";

/** Flags of `open`: follow no symbolic link, and do not wait for the other end of a pipe. */
export const carefulOpen = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Repeats short writes. A write without progress is an error.
 * @param position offset of the first byte; default: the descriptor's position, or the end of a file opened for
 * appending
 */
export function writeAll(fd: number, data: Uint8Array, position?: number): void {
  for (let done = 0; done < data.length; ) {
    const at = position === undefined ? null : position + done;
    const written = writeSync(fd, data, done, data.length - done, at);
    if (written === 0) throw deviceError("write");
    done += written;
  }
}

export interface Appended {
  readonly fd: number;
  readonly size: number;
}

export function truncateAppended({ fd, size }: Appended): void {
  try {
    ftruncateSync(fd, size);
  } catch {
    // The next append handles what stays: an incomplete line, or a record that had no effect.
  }
}

/**
 * Syncs a folder, so that created, renamed and removed names survive a power cut. Windows needs no sync and cannot open
 * folders.
 * @param options.unlessDenied skip a folder that this user may not open
 */
export function syncFolder(folder: string, options: { readonly unlessDenied?: boolean } = {}): void {
  if (process.platform === "win32") return;
  let fd: number;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    if (options.unlessDenied && isAccessDenied(error)) return;
    throw error;
  }
  try {
    fsyncSync(fd);
  } catch (error) {
    if (!hasNothingToSync(error)) throw error;
  } finally {
    closeSync(fd);
  }
}

const pendingSyncs = new Map<string, Promise<void>>();

/**
 * Syncs a folder once for all calls in the same turn of the event loop, because concurrent changes write to the same
 * few folders. Resolves when every name present at the call is on disk.
 */
export function folderSynced(folder: string): Promise<void> {
  const shared = pendingSyncs.get(folder);
  if (shared !== undefined) return shared;
  const sync = new Promise<void>((resolve, reject) => {
    setImmediate(() => {
      pendingSyncs.delete(folder);
      try {
        syncFolder(folder);
        resolve();
      } catch (error) {
        reject(error);
      }
    });
  });
  pendingSyncs.set(folder, sync);
  return sync;
}

export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

export function isAt(path: string, fd: number): boolean {
  const open = fstatSync(fd, { bigint: true });
  const current = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return current !== undefined && current.ino === open.ino && current.dev === open.dev;
}
