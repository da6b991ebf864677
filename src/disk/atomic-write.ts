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
import { deviceError, hasNoLinks, isMissing, alreadyExists, systemError } from "./error-words.ts";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";
import { carefulOpen, writeAll, syncFolder, removeFile } from "./write.ts";

export interface WriteOptions {
  /**
   * After a power cut, `name` (the default) keeps the file under its name. `content` keeps complete content if the name
   * exists. `none` keeps neither for certain.
   */
  readonly durable?: "name" | "content" | "none";
  /** True if a file system that cannot hide the secret from other users must be refused. */
  readonly secret?: boolean;
  readonly forAll?: boolean;
}

type FileContent = string | Uint8Array;

/** Leaves no new file after an error. By default, only the owner may read the file. Symbolic links are not followed. */
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

const newFile = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | carefulOpen;

/**
 * If the process is killed, the name has the old or the new content, and a temporary file may remain.
 * @param options.temporary fixed name of the temporary file, if only one process at a time writes the file
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
    if (options.temporary === undefined || !alreadyExists(error)) throw error;
    // A killed process left the temporary file.
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
 * Replaces a file by a candidate that a library writes, once the candidate is complete and synced. Only the holder of
 * the file's lock may call this.
 * @param write writes the candidate with mode 0600 and returns its expected text
 */
export function replaceByCandidate(path: string, write: (candidate: string) => string): void {
  removeTemporaries(path);
  const candidate = temporaryName(path);
  try {
    completeCandidate(candidate, Buffer.from(write(candidate)));
    renameSync(candidate, path);
  } catch (error) {
    removeTemporaries(path);
    throw error;
  }
  syncFolder(dirname(path));
}

/** Writes the rest of a candidate, because libraries may treat a short write as success. */
function completeCandidate(path: string, expected: Buffer): void {
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
 * Creates a new private file from content that is too large for memory. The file gets its name once complete and
 * synced; a killed process may leave a temporary file.
 */
export async function createWhole(path: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
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

/** Creates a small new private file, which gets its name once complete; a killed process may leave a temporary file. */
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
 * Without `replace`, fails if the name exists. `link` also keeps the old name; on file systems without hard links,
 * another process can create the name between the check and the rename. The caller syncs the folder.
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

/** Removes temporary files of killed replacements. Only the file's single writer may call this. */
export function removeTemporaries(path: string): void {
  const start = `${basename(path)}.new-`;
  for (const name of readdirSync(dirname(path))) if (name.startsWith(start)) removeFile(join(dirname(path), name));
}

/** Resolves symbolic links, because users may keep their configuration behind links. A missing file keeps its path. */
export function linkTarget(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}
