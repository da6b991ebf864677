import { closeSync, constants, fstatSync, fsyncSync, lstatSync, openSync, unlinkSync, writeSync } from "node:fs";
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
