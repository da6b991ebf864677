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

/** Opens neither through a symbolic link nor with a wait for the other end of a pipe. */
export const careful = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Writes all of `data`: a short write continues where it stopped; one that makes no progress fails, so that a full disk
 * can never pass for success.
 * @param position offset of the first byte; omitted: the descriptor's own position, or the end of a file that it appends to
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
  /** Of the file before. */
  readonly size: number;
}

/** Takes back what was appended and failed. */
export function cutBack({ fd, size }: Appended): void {
  try {
    ftruncateSync(fd, size);
  } catch {
    // The next append finds a torn end, or something that was never acted upon.
  }
}

/**
 * Syncs a folder, so that a name made, moved or removed in it outlives a power cut. Windows does that itself and
 * cannot open a folder.
 * @param options.unlessDenied a folder that may not be opened is left alone
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

const asked = new Map<string, Promise<void>>();

/**
 * Syncs a folder once for all who ask for it in the same turn of the event loop: changes that are made at the same time put
 * their files into the same few folders. Fulfilled once every name is on disk that was in the folder when it was called.
 */
export function folderSynced(folder: string): Promise<void> {
  const shared = asked.get(folder);
  if (shared !== undefined) return shared;
  const sync = new Promise<void>((resolve, reject) => {
    setImmediate(() => {
      asked.delete(folder);
      try {
        syncFolder(folder);
        resolve();
      } catch (error) {
        reject(error);
      }
    });
  });
  asked.set(folder, sync);
  return sync;
}

/** Removes a file; one that is not there is removed already. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Whether the open file is the one that is at the path. */
export function isAt(path: string, fd: number): boolean {
  const open = fstatSync(fd, { bigint: true });
  const there = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return there !== undefined && there.ino === open.ino && there.dev === open.dev;
}
