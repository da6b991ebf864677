// Creates, opens and checks files and folders that other users must not change.
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
import { carefulOpen, syncFolder } from "./write.ts";
import { shell } from "../next-step.ts";
import { dirname, basename, join, sep } from "node:path";

const hasModes = process.platform !== "win32";

/** Root may use the files of other users, for example in a folder mounted into a container. */
function isMine(stats: Stats): boolean {
  const me = process.getuid?.();
  return me === undefined || me === 0 || stats.uid === me;
}

/**
 * Creates a missing folder and its parents with mode 0700.
 * @throws Failure if the folder cannot be created, or if another user owns it or can write to it
 */
export function ensurePrivateFolder(path: string): void {
  try {
    makeFolders(path);
  } catch (error) {
    throw fileFailure(error, "make the folder", { path });
  }
  checkPrivateFolder(path);
}

/** @throws Failure `usage` for a path that is not a folder, or a folder that another user owns or can write to */
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
 * Creates a new file with mode 0600 for reading and writing, without following links. Checks owner and mode on the open
 * descriptor, so file systems without permissions (FAT) are refused.
 * @returns the descriptor, which the caller closes
 */
export function createPrivateFile(path: string): number {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | carefulOpen, 0o600);
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

function checkMine(fd: number, path: string): Stats {
  const stats = fstatSync(fd);
  if (!stats.isFile()) throw new Failure("usage", `Cannot use ${path}: it is not a plain file.`);
  if (hasModes && !isMine(stats)) throw new Failure("usage", `Cannot use ${path}: it belongs to another user.`);
  return stats;
}

/**
 * Checks a file that names commands to run: other users may read it but not change it. Refuses a pipe instead of
 * waiting for it.
 * @returns false if there is no file
 * @throws Failure `usage` if another user could have written the file; a Failure if it cannot be opened
 */
export function checkCommandFile(path: string): boolean {
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

function checkPrivate(fd: number, path: string): Stats {
  const stats = checkMine(fd, path);
  checkMode(stats, path);
  return stats;
}

/** @throws Failure `usage` if other users can access the file */
export function checkMode({ mode }: Stats, path: string): void {
  if (!hasModes || (mode & 0o077) === 0) return;
  throw new Failure("usage", `${path} is open to other users (mode ${(mode & 0o777).toString(8)}).`, {
    meaning: "Other users may have read the secret in it, and a file system without permissions cannot protect one.",
    nextCommand: shell`chmod 600 ${path}`,
  });
}

/** Follows no links, and checks owner and mode. The caller closes the descriptor. */
export function openPrivateFile(path: string, access: number = constants.O_RDONLY): number {
  const fd = openSync(path, access | carefulOpen);
  try {
    checkPrivate(fd, path);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw fileFailure(error, "read the folder", { path });
  }
}

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
 * Creates a folder and its missing parents with mode 0700, one level at a time: Node's recursive mkdir never returns
 * below `/proc`. Existing folders are not checked.
 * @param options.synced sync the parents, so that the new folders survive a power cut
 */
export function makeFolders(path: string, { synced = true }: { readonly synced?: boolean } = {}): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const parent = dirname(path);
    if (!isMissing(error) || parent === path || exists(parent)) return throwUnlessExists(path, error);
    makeFolders(parent, { synced });
    return makeFolders(path, { synced });
  }
  if (synced) syncFolder(dirname(path));
}

/** Some systems report another code than `EEXIST`, for example on a read-only disk or in another user's folder. */
function throwUnlessExists(path: string, error: unknown): void {
  if (!exists(path)) throw error;
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

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
 * Neither output nor a secret may replace integ's own files. True if the path is one of `own` under any name, is inside
 * one of them, or adds a suffix to one of them, as in `journal.ndjson.damaged-…`.
 */
export function isAmong(own: readonly string[], path: string): boolean {
  const realPath = realPaths();
  const real = realPath(path);
  const ownPaths = own.map(realPath);
  if (ownPaths.some((one) => real === one || [sep, "."].some((mark) => real.startsWith(one + mark)))) return true;
  // Hard links, mounts and case-insensitive names give one file several paths.
  const identity = identityAt(real);
  return identity !== undefined && ownPaths.some((one) => identityAt(one) === identity);
}

/**
 * Undefined is safe: a missing file is not one of integ's files, and a path that cannot be looked up cannot be written.
 */
function identityAt(path: string): string | undefined {
  const stats = attempted(() => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return stats && `${stats.dev} ${stats.ino}`;
}
