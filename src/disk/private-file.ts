// Files that only their owner may read or change: made 0600 in 0700 folders, owner and mode checked on what was opened.
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
  unlinkSync,
} from "node:fs";
import { Failure } from "../errors.ts";
import { fileFailure, isMissing } from "./error-words.ts";
import { makeFolders } from "./folders.ts";
import { careful } from "./write.ts";
import { shell } from "../next-step.ts";

/** Windows has no permission bits. */
const hasModes = process.platform !== "win32";

/** True if the file belongs to the user of this process. The superuser may use everyone's (a mounted folder in a container). */
function isMine(stats: Stats): boolean {
  const me = process.getuid?.();
  return me === undefined || me === 0 || stats.uid === me;
}

/** Makes a folder 0700 (parents too) if it is missing; refuses one that others could put files into. */
export function ensurePrivateFolder(path: string): void {
  try {
    makeFolders(path);
  } catch (error) {
    throw fileFailure(error, "make the folder", { path });
  }
  const stats = statSync(path);
  if (!stats.isDirectory()) throw new Failure("usage", `Cannot use ${path}: it is not a folder.`);
  if (!hasModes) return;
  if (!isMine(stats)) throw new Failure("usage", `Cannot use the folder ${path}: it belongs to another user.`);
  if ((stats.mode & 0o022) !== 0) {
    throw new Failure("usage", `The folder ${path} can be changed by other users.`, {
      nextCommand: shell`chmod 700 ${path}`,
    });
  }
}

/**
 * Creates a file 0600 that did not exist, following no link, open for reading and writing. Owner and mode are checked
 * on the open descriptor: a file system that keeps no permissions (FAT) is refused.
 * @returns the descriptor; the caller closes it
 */
export function createPrivateFile(path: string): number {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | careful, 0o600);
  try {
    if (hasModes) fchmodSync(fd, 0o600);
    checkPrivate(fd, path);
    return fd;
  } catch (error) {
    closeSync(fd);
    unlinkSync(path);
    throw error;
  }
}

/** Refuses an open file that others may read, that belongs to another user or that is not a plain file. */
function checkPrivate(fd: number, path: string): Stats {
  const stats = fstatSync(fd);
  if (!stats.isFile()) throw new Failure("usage", `Cannot use ${path}: it is not a plain file.`);
  if (!hasModes) return stats;
  if (!isMine(stats)) throw new Failure("usage", `Cannot use ${path}: it belongs to another user.`);
  if ((stats.mode & 0o077) !== 0) {
    throw new Failure("usage", `${path} is open to other users (mode ${(stats.mode & 0o777).toString(8)}).`, {
      meaning: "Other users may have read the secret in it, and a file system without permissions cannot protect one.",
      nextCommand: shell`chmod 600 ${path}`,
    });
  }
  return stats;
}

/** Opens an existing private file, following no link, and checks owner and mode. The caller closes the descriptor. */
export function openPrivateFile(path: string, access: number = constants.O_RDONLY): number {
  const fd = openSync(path, access | careful);
  try {
    checkPrivate(fd, path);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The names in a folder; none if it is missing. */
export function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw fileFailure(error, "read the folder", { path });
  }
}

/** What a file of this program says; undefined if it is damaged. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of a private file, or undefined if there is none. */
export function readPrivateFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openPrivateFile(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileFailure(error, "read", { path });
  }
  try {
    return readFileSync(fd, "utf8");
  } catch (error) {
    throw fileFailure(error, "read", { path });
  } finally {
    closeSync(fd);
  }
}
