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
  lstatSync,
  mkdirSync,
  realpathSync,
} from "node:fs";
import { Failure } from "../errors.ts";
import { fileFailure, isMissing } from "./error-words.ts";
import { careful, syncFolder } from "./write.ts";
import { shell } from "../next-step.ts";
import { dirname, basename, join, sep } from "node:path";

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
  checkPrivateFolder(path);
}

/** Refuses a folder that others could put files into. */
export function checkPrivateFolder(path: string): void {
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

/** Refuses an open file that belongs to another user or that is not a plain file. */
function checkMine(fd: number, path: string): Stats {
  const stats = fstatSync(fd);
  if (!stats.isFile()) throw new Failure("usage", `Cannot use ${path}: it is not a plain file.`);
  if (hasModes && !isMine(stats)) throw new Failure("usage", `Cannot use ${path}: it belongs to another user.`);
  return stats;
}

/**
 * Looks for a file that names commands to run: others may read it, and only this user may change it. A pipe in its place is
 * refused, not waited for.
 * @returns false if there is none
 * @throws Failure `usage` if it could be another user's work
 */
export function isThereUnchangedByOthers(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (isMissing(error)) return false;
    throw fileFailure(error, "read", { path });
  }
  try {
    const { mode } = checkMine(fd, path);
    if (!hasModes || (mode & 0o022) === 0) return true;
    throw new Failure("usage", `${path} can be changed by other users.`, { nextCommand: shell`chmod 600 ${path}` });
  } finally {
    closeSync(fd);
  }
}

/** Refuses an open file that others may read, that belongs to another user or that is not a plain file. */
function checkPrivate(fd: number, path: string): Stats {
  const stats = checkMine(fd, path);
  if (!hasModes) return stats;
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

/** The value of a JSON text; undefined if it is not JSON. */
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

/**
 * Makes a folder 0700 with the parents that are missing, one level at a time: Node's recursive mkdir never returns if a
 * parent exists and takes no folder (`/proc`). The caller checks a path that exists already.
 * @param options.synced the names of the new folders outlive a power cut
 */
export function makeFolders(path: string, { synced = true }: { readonly synced?: boolean } = {}): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const parent = dirname(path);
    if (!isMissing(error) || parent === path || isThere(parent)) return refuseUnlessThere(path, error);
    makeFolders(parent, { synced });
    return makeFolders(path, { synced });
  }
  if (synced) syncFolder(dirname(path));
}

/** `EEXIST`; some systems refuse to make what exists (a read-only disk, another user's parent) with a code of their own. */
function refuseUnlessThere(path: string, error: unknown): void {
  if (!isThere(path)) throw error;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

// Which files are the program's own: nothing that a person exports or keeps may replace the journal or a credential.

/** Follows the links in the folder of a path, each folder once; a path whose folder is missing stays unchanged. */
function realPaths(): (path: string) => string {
  const folders = new Map<string, string | undefined>();
  return (path) => {
    const folder = dirname(path);
    if (!folders.has(folder))
      folders.set(
        folder,
        attempted(() => realpathSync(folder)),
      );
    const real = folders.get(folder);
    return real === undefined ? path : join(real, basename(path));
  };
}

function attempted<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/**
 * True if the path is one of these files, under this name or another, lies in one of these folders, or is named after one:
 * damaged bytes of the journal are kept as `journal.ndjson.damaged-…`.
 */
export function isAmong(own: readonly string[], path: string): boolean {
  const realPath = realPaths();
  const real = realPath(path);
  const mine = own.map(realPath);
  if (mine.some((one) => real === one || [sep, "."].some((mark) => real.startsWith(one + mark)))) return true;
  // A hard link, a mount or the other case of a letter gives one file two names.
  const identity = identityAt(real);
  return identity !== undefined && mine.some((one) => identityAt(one) === identity);
}

/** Undefined for a path that cannot be looked at: it cannot be written to either. */
function identityAt(path: string): string | undefined {
  const stats = attempted(() => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return stats && `${stats.dev} ${stats.ino}`;
}
