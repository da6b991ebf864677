// Writes secret files into reserved space, so that a full disk cannot lose a secret, and checks content before an overwrite.
import { timingSafeEqual } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { nameFile } from "../disk/atomic-write.ts";
import { carefulOpen, folderSynced, writeAll } from "../disk/write.ts";
import { errorCode, fileFailure, isMissing, alreadyExists, systemError } from "../disk/error-words.ts";
import { createPrivateFile, openPrivateFile } from "../disk/private-file.ts";
import { Failure } from "../errors.ts";
import type { Found } from "./destination.ts";

/** Enough for a secret with its receipt. */
const reserveBytes = 32 * 1024;

/** Identifies a file under any name. `born` is its creation time in ns. The fields are text, because an inode may exceed 2^53. */
export interface FileIdentity {
  readonly device: string;
  readonly inode: string;
  readonly born?: string;
}

/** Omits the birth time if the file system reports the time of the last change in its place. */
export function identityOf(fd: number): FileIdentity {
  const stats = fstatSync(fd, { bigint: true });
  const isKnown = stats.birthtimeNs > 0n && stats.birthtimeNs < stats.ctimeNs;
  return { device: String(stats.dev), inode: String(stats.ino), born: isKnown ? String(stats.birthtimeNs) : undefined };
}

/** False for a symbolic link, and, if the birth time is known, for a new file with the same inode. */
export function isSameFile(path: string, identity: Partial<FileIdentity>): boolean {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return false;
  if (String(stats.dev) !== identity.device || String(stats.ino) !== identity.inode) return false;
  return identity.born === undefined || String(stats.birthtimeNs) === identity.born;
}

/** @returns `.<name>.integ-<work>` in the same folder. The name is cut, because a file name has at most 255 bytes. */
export function reservedName(path: string, work: string): string {
  const name = Buffer.from(basename(path)).subarray(0, 180).toString("utf8").replaceAll("\uFFFD", "_");
  return join(dirname(path), `.${name}.integ-${work.replace(/[^\w.-]/g, "_")}`);
}

function blank(fd: number): void {
  writeAll(fd, Buffer.alloc(reserveBytes), 0);
  ftruncateSync(fd, reserveBytes);
  fsyncSync(fd);
}

/** True if the file's length is not that of a reserve: `fillReserve` truncates a file only after it has synced the content. */
export function isCut(fd: number): boolean {
  return fstatSync(fd).size !== reserveBytes;
}

/** @returns the text without trailing zeros; empty for an unused reserve */
export function contentOf(fd: number): string {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  for (let at = 0, got = 1; at < bytes.length && got > 0; at += got)
    got = readSync(fd, bytes, at, bytes.length - at, at);
  return bytes.subarray(0, zerosFrom(bytes)).toString("utf8");
}

/** Finds the trailing zeros by binary search, because a loop over the bytes is slow until V8 has optimized it. */
function zerosFrom(bytes: Buffer): number {
  const zeros = Buffer.alloc(bytes.length);
  let least = 0;
  let most = bytes.length;
  while (least < most) {
    const middle = (least + most) >> 1;
    if (bytes.subarray(middle).equals(zeros.subarray(middle))) most = middle;
    else least = middle + 1;
  }
  return most;
}

/**
 * Creates the reserve, or reuses the reserve of the same work.
 * @param check throws if the existing file must not be overwritten
 * @returns an open descriptor, synced with its folder entry
 */
export async function reserveFile(path: string, check: (content: string, isCut: boolean) => void): Promise<number> {
  let fd: number;
  let isNew = true;
  try {
    fd = createPrivateFile(path);
  } catch (error) {
    if (!alreadyExists(error)) throw error;
    fd = openPrivateFile(path, constants.O_RDWR);
    isNew = false;
  }
  try {
    // A second link shows a delivered secret, which must not be overwritten with zeros.
    if (!isNew && fstatSync(fd).nlink !== 1) throw systemError("EEXIST", "open");
    if (!isNew) check(contentOf(fd), isCut(fd));
    blank(fd);
    await folderSynced(dirname(path));
    return fd;
  } catch (error) {
    closeSync(fd);
    if (isNew) unlinkSync(path);
    throw error;
  }
}

/**
 * Truncates the file only after a sync, so that a truncated file has its complete text. A power cut may undo the truncation.
 */
export function fillReserve(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  writeAll(fd, bytes, 0);
  fsyncSync(fd);
  ftruncateSync(fd, bytes.length);
}

export function wipe(fd: number): void {
  writeAll(fd, Buffer.alloc(fstatSync(fd).size), 0);
  fsyncSync(fd);
}

/**
 * Gives a reserved file its final name. If `found` is absent, fails if a file has appeared at that name.
 * @returns why the reserved name was not removed, which does not fail the delivery; `removeReserve` removes it later
 */
export async function putInPlace(reserved: string, path: string, found: Found): Promise<Error | undefined> {
  const replace = found.is !== "absent";
  nameFile(reserved, path, { replace });
  await folderSynced(dirname(path));
  return replace ? undefined : dropName(reserved);
}

async function dropName(reserved: string): Promise<Error | undefined> {
  try {
    if (lstatSync(reserved, { throwIfNoEntry: false }) === undefined) return undefined;
    unlinkSync(reserved);
    await folderSynced(dirname(reserved));
    return undefined;
  } catch (error) {
    return fileFailure(error, "take away", { path: reserved });
  }
}

const mostAttempts = 8;
/** A random pause of at most this long separates parallel writers to one place in a store. */
const longestPauseMs = 2000;

/**
 * Writes if the current content may be replaced, and starts again if `write` finds other content.
 * @param how.write returns false, without writing, if the content has changed
 * @throws Failure of `may`, or `conflict` if the content keeps changing
 */
export async function overwriteFound(
  name: string,
  how: {
    readonly look: () => Promise<Found>;
    readonly may: (found: Found) => Promise<void>;
    readonly write: (found: Found) => Promise<boolean>;
    readonly sleep?: (ms: number) => Promise<void>;
  },
): Promise<void> {
  for (let round = 0; round < mostAttempts; round += 1) {
    const found = await how.look();
    await how.may(found);
    if (await how.write(found)) return;
    if (round < mostAttempts - 1) await how.sleep?.(Math.random() * longestPauseMs);
  }
  throw new Failure("conflict", `${name} was changed by another at each of ${mostAttempts} attempts to write it.`, {
    meaning: "Nothing of another was overwritten.",
  });
}

/** A longer file has no delivered secret and is not read. */
const longestBytes = 1024 * 1024;

export function isSameSecret(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

export function foundAt(path: string): Found {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | carefulOpen);
  } catch (error) {
    if (isMissing(error)) return { is: "absent" };
    if (errorCode(error) === "ELOOP") return { is: "hidden", version: "a link" };
    throw fileFailure(error, "read", { path });
  }
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (stats.isFile() && stats.size <= longestBytes) return { is: "text", text: contentOf(fd) };
    return { is: "hidden", version: `${stats.ino}-${stats.size}-${stats.mtimeNs}` };
  } catch (error) {
    throw fileFailure(error, "read", { path });
  } finally {
    closeSync(fd);
  }
}
