import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { deviceError, hasNoLinks, isMissing, isThereAlready, systemError } from "./error-words.ts";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";
import { careful, writeAll, syncFolder, removeFile } from "./write.ts";

export interface WriteOptions {
  /**
   * What must outlive a power cut when the call returns: the file with its name (default), its content once the name is
   * there (never a cut file), or neither.
   */
  readonly durable?: "name" | "content" | "none";
  /** Holds a secret: refused on a file system that cannot keep it from other users. */
  readonly secret?: boolean;
  /** Other users may read it. */
  readonly forAll?: boolean;
}

type FileContent = string | Uint8Array;

/** Creates a file that did not exist, through no symbolic link, by default its owner's alone: whole and synced, or none. */
export function createFile(path: string, data: FileContent, options: WriteOptions = {}): void {
  const { durable = "name", secret = false, forAll = false } = options;
  const fd = secret ? createPrivateFile(path) : openSync(path, newFile, forAll ? 0o644 : 0o600);
  try {
    writeAll(fd, typeof data === "string" ? Buffer.from(data) : data, 0);
    if (durable !== "none") fsyncSync(fd);
    if (durable === "name") syncFolder(dirname(path));
  } catch (error) {
    removeFile(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

const newFile = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | careful;

/**
 * Puts new content in the place of a file: at any moment, a crash included, the name holds the old content or the new.
 * What a killed process leaves beside it is removed by `removeTemporaries`.
 * @param options.temporary fixed name of the file that is written first, for a file that one process at a time writes
 */
export function replaceFile(
  path: string,
  data: FileContent,
  options: WriteOptions & { readonly temporary?: string } = {},
): void {
  const { durable = "name" } = options;
  const temporary = options.temporary ?? temporaryName(path);
  const create = (): void =>
    createFile(temporary, data, { ...options, durable: durable === "none" ? "none" : "content" });
  try {
    create();
  } catch (error) {
    if (options.temporary === undefined || !isThereAlready(error)) throw error;
    // A process that was killed left it.
    removeFile(temporary);
    create();
  }
  try {
    renameSync(temporary, path);
  } catch (error) {
    removeFile(temporary);
    throw error;
  }
  if (durable === "name") syncFolder(dirname(path));
}

/**
 * Puts in the place of a file what another writer (a library) writes beside it, once that is proven whole and synced.
 * Only for the file's single writer: the holder of its lock.
 * @param write writes the candidate, 0600, and returns the text that must be in it
 */
export function replaceByCandidate(path: string, write: (candidate: string) => string): void {
  removeTemporaries(path);
  const candidate = temporaryName(path);
  try {
    proveWhole(candidate, Buffer.from(write(candidate)));
    renameSync(candidate, path);
  } catch (error) {
    removeTemporaries(path);
    throw error;
  }
  syncFolder(dirname(path));
}

/** A writer that takes a short write for success stops early: the rest is written here, or the disk says why not. */
function proveWhole(path: string, expected: Buffer): void {
  const fd = openPrivateFile(path, constants.O_RDWR);
  try {
    const found = readFileSync(fd);
    if (!expected.subarray(0, found.length).equals(found)) throw deviceError("read");
    writeAll(fd, expected.subarray(found.length), found.length);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Creates a file that did not exist, its owner's alone, of more than should be in memory: it has its name once it is whole and
 * synced. A killed process leaves what it has written beside it, under a name of its own.
 */
export async function createWhole(path: string, pieces: AsyncIterable<string>): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw systemError("EEXIST", "open");
  const temporary = temporaryName(path);
  const fd = openSync(temporary, newFile, 0o600);
  try {
    let size = 0;
    for await (const piece of pieces) {
      const bytes = Buffer.from(piece);
      writeAll(fd, bytes, size);
      size += bytes.length;
    }
    fsyncSync(fd);
    nameFile(temporary, path, { replace: false });
  } finally {
    closeSync(fd);
    removeFile(temporary);
  }
  syncFolder(dirname(path));
}

/** The same of a few bytes: a process that is killed leaves the whole file under its name, or none. */
export function createNamed(path: string, data: FileContent): void {
  const temporary = temporaryName(path);
  createFile(temporary, data, { durable: "content" });
  try {
    nameFile(temporary, path, { replace: false });
  } finally {
    removeFile(temporary);
  }
  syncFolder(dirname(path));
}

/**
 * Gives a finished file its name. Without `replace` not over another one: `link` fails if the name exists, in one step,
 * and leaves the old name; a file system without hard links needs a look before the move. The caller syncs the folder.
 */
export function nameFile(from: string, to: string, options: { readonly replace: boolean }): void {
  if (options.replace) return renameSync(from, to);
  try {
    linkSync(from, to);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) throw systemError("EEXIST", "link");
    renameSync(from, to);
  }
}

function temporaryName(path: string): string {
  return `${path}.new-${randomBytes(6).toString("hex")}`;
}

/** Removes what killed replacements of a file left beside it. Only for its single writer. */
export function removeTemporaries(path: string): void {
  const start = `${basename(path)}.new-`;
  for (const name of readdirSync(dirname(path))) if (name.startsWith(start)) removeFile(join(dirname(path), name));
}

/** The file that a path names, symbolic links followed (dotfiles); the path itself if there is none yet. */
export function linkTarget(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}
