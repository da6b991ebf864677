// Owns: files that only their owner may read or change: made 0600 in 0700, written whole, synced, replaced in one step.
// Must not know: what stands in them. Design: cli.md §3, quality.md Security 6.
// Why not a library: on a nearly full disk `conf` (through `atomically`) reported success and left a cut file in place
// of the good one; it takes no account of short writes and never syncs the folder. A test keeps that disk.
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../errors.ts";

/** Windows has no permission bits and no way to sync a folder. */
const hasModes = process.platform !== "win32";

/** Errors that a person settles by naming another path or mending its mode: exit 2. All others are faults: exit 1. */
const pathErrors: ReadonlySet<string> = new Set(
  "EACCES EPERM EROFS ENOENT ENOTDIR EISDIR ELOOP EEXIST ENAMETOOLONG EINVAL EXDEV ETXTBSY".split(" "),
);

/** The `code` of a system error, or undefined for anything else. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

const errorWords: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "not permitted",
  EROFS: "the file system is read-only",
  ENOENT: "no such file or folder",
  ENOTDIR: "a part of the path is not a folder",
  EISDIR: "it is a folder",
  ELOOP: "it is a symbolic link",
  EEXIST: "it exists already",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EIO: "the device reports an I/O error",
  EMFILE: "too many open files",
  ENFILE: "too many open files on this machine",
};

/** Why a file operation failed, as it stands in a sentence. */
export function wordsOf(error: unknown): string {
  const code = errorCode(error);
  return code === undefined ? "an unexpected error" : (errorWords[code] ?? code);
}

/** A system error of a file operation in words: `cannot <doing> <path>: <why>`. Never quotes what was written. */
export function fileFailure(error: unknown, doing: string, path: string): Failure {
  if (error instanceof Failure) return error;
  const code = errorCode(error);
  const kind = code !== undefined && pathErrors.has(code) ? "usage" : "failed";
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  return new Failure(kind, `Cannot ${doing} ${path}: ${wordsOf(error)}.`, {
    ...(isFull && { hint: "make room on the disk, then run the command again" }),
    cause: error,
  });
}

/**
 * Writes all of `data` from `position` on. A short write goes on where it stopped; one that makes no progress fails, so
 * that a full disk can never pass for success.
 */
export function writeAll(fd: number, data: Uint8Array, position = 0): void {
  let done = 0;
  while (done < data.length) {
    const written = writeSync(fd, data, done, data.length - done, position + done);
    if (written === 0) throw Object.assign(new Error("a write made no progress"), { code: "EIO" });
    done += written;
  }
}

/** Syncs a folder, so that a name made or moved in it outlives a power cut. */
export function syncFolder(path: string): void {
  if (!hasModes) return;
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** True where the file belongs to who runs this. The superuser may use anybody's (a mounted folder in a container). */
function isMine(stats: Stats): boolean {
  const me = process.getuid?.();
  return me === undefined || me === 0 || stats.uid === me;
}

/** Makes a folder 0700 (parents too) where it is missing; refuses one that others could put files into. */
export function ensurePrivateFolder(path: string): void {
  try {
    const created = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (created !== undefined) syncFolder(dirname(created));
  } catch (error) {
    throw fileFailure(error, "make the folder", path);
  }
  const stats = statSync(path);
  if (!stats.isDirectory()) throw new Failure("usage", `Cannot use ${path}: it is not a folder.`);
  if (!hasModes) return;
  if (!isMine(stats)) throw new Failure("usage", `Cannot use the folder ${path}: it belongs to another user.`);
  if ((stats.mode & 0o022) !== 0) {
    throw new Failure("usage", `The folder ${path} can be changed by other users.`, { hint: `chmod 700 '${path}'` });
  }
}

/**
 * Creates a file 0600 that did not exist, following no link, open for reading and writing. Owner and mode are checked
 * on the open descriptor: a file system that keeps no permissions (FAT) is refused.
 * @returns the descriptor; the caller closes it
 */
export function createPrivateFile(path: string): number {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
  const fd = openSync(path, flags, 0o600);
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

/** Refuses an open file that others may read, that belongs to somebody else or that is no plain file. */
export function checkPrivate(fd: number, path: string): Stats {
  const stats = fstatSync(fd);
  if (!stats.isFile()) throw new Failure("usage", `Cannot use ${path}: it is not a plain file.`);
  if (!hasModes) return stats;
  if (!isMine(stats)) throw new Failure("usage", `Cannot use ${path}: it belongs to another user.`);
  if ((stats.mode & 0o077) !== 0) {
    throw new Failure("usage", `${path} is open to other users (mode ${(stats.mode & 0o777).toString(8)}).`, {
      meaning:
        "Whoever could read it may have the secret in it, and a file system without permissions cannot keep one.",
      hint: `chmod 600 '${path}'`,
    });
  }
  return stats;
}

/** Opens an existing private file, following no link, and checks owner and mode. The caller closes the descriptor. */
export function openPrivateFile(path: string, access: number = constants.O_RDONLY): number {
  const fd = openSync(path, access | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    checkPrivate(fd, path);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The text of a private file, or undefined where there is none. */
export function readPrivateFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openPrivateFile(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileFailure(error, "read", path);
  }
  try {
    return readFileSync(fd, "utf8");
  } catch (error) {
    throw fileFailure(error, "read", path);
  } finally {
    closeSync(fd);
  }
}

/** Writes a new private file, whole and synced (the folder entry too), or leaves nothing. */
export function writeNewPrivateFile(path: string, text: string): void {
  const fd = createPrivateFile(path);
  try {
    writeAll(fd, Buffer.from(text));
    fsyncSync(fd);
    syncFolder(dirname(path));
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Puts a new text in the place of a file: at any moment, a crash included, the name holds the old text or the new one.
 * A symbolic link to the file is kept and what it names is replaced.
 */
export function replacePrivateFile(path: string, text: string): void {
  try {
    const target = realPath(path);
    const temporary = `${target}.${crypto.randomUUID()}.tmp`;
    writeNewPrivateFile(temporary, text);
    try {
      renameSync(temporary, target);
    } catch (error) {
      unlinkSync(temporary);
      throw error;
    }
    syncFolder(dirname(target));
  } catch (error) {
    throw fileFailure(error, "write", path);
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return path;
    throw error;
  }
}
