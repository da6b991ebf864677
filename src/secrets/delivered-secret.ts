// The file of a secret: its space is really written before the secret exists, so that a disk that fills up later cannot lose
// it; and how a delivered secret is recognised by what is there. All calls are made on the main thread, so that fault tests
// meet them in one order.
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
import { careful, folderSynced, writeAll } from "../disk/write.ts";
import { errorCode, fileFailure, isMissing, isThereAlready, systemError } from "../disk/error-words.ts";
import { createPrivateFile, openPrivateFile } from "../disk/private-file.ts";
import { Failure } from "../errors.ts";
import type { Found } from "./destination.ts";

/** Bytes of zeros written ahead: more than any secret with its receipt. */
const reserveBytes = 32 * 1024;

/** Which file it is, whatever its name: numbers as decimal text, since inodes exceed 2^53. */
export interface FileIdentity {
  readonly device: string;
  readonly inode: string;
  readonly born?: string;
}

/**
 * Identity of an open file. The birth time counts only if it is one: some file systems give the time of the last
 * change instead.
 */
export function identityOf(fd: number): FileIdentity {
  const stats = fstatSync(fd, { bigint: true });
  const isBirth = stats.birthtimeNs > 0n && stats.birthtimeNs < stats.ctimeNs;
  return { device: String(stats.dev), inode: String(stats.ino), born: isBirth ? String(stats.birthtimeNs) : undefined };
}

/** True if the name is that very file: no link to it, no other file with a number that was used again. */
export function isSameFile(path: string, identity: Partial<FileIdentity>): boolean {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return false;
  if (String(stats.dev) !== identity.device || String(stats.ino) !== identity.inode) return false;
  return identity.born === undefined || String(stats.birthtimeNs) === identity.born;
}

/** `.<name>.integ-<work>` in the same folder; cut if the name alone fills what a folder entry may hold. */
export function reservedName(path: string, work: string): string {
  const name = Buffer.from(basename(path)).subarray(0, 180).toString("utf8").replaceAll("\uFFFD", "_");
  return join(dirname(path), `.${name}.integ-${work.replace(/[^\w.-]/g, "_")}`);
}

/** Fills an open file with zeros, synced. */
function blank(fd: number): void {
  writeAll(fd, Buffer.alloc(reserveBytes), 0);
  ftruncateSync(fd, reserveBytes);
  fsyncSync(fd);
}

/** True if the file was cut to the length of what is in it: that is done after its text is on disk. */
export function isCut(fd: number): boolean {
  return fstatSync(fd).size !== reserveBytes;
}

/** What is in an open file, the zeros after it left out; empty for a reserve. */
export function contentOf(fd: number): string {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  for (let at = 0, got = 1; at < bytes.length && got > 0; at += got)
    got = readSync(fd, bytes, at, bytes.length - at, at);
  return bytes.subarray(0, zerosFrom(bytes)).toString("utf8");
}

/** From where on all bytes are zeros. By halves: V8 would optimize a loop over a reserve's bytes twice, which takes 9 ms. */
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
 * Makes the reserve, or resumes the one that an earlier process of the same work left.
 * @param mayBlank decides, given what is in a file that is already there and whether it was cut to that, whether it may
 * be blanked; it throws else
 * @returns an open descriptor, synced with its folder entry
 */
export async function reserveFile(path: string, mayBlank: (content: string, isCut: boolean) => void): Promise<number> {
  let fd: number;
  let isNew = true;
  try {
    fd = createPrivateFile(path);
  } catch (error) {
    if (!isThereAlready(error)) throw error;
    fd = openPrivateFile(path, constants.O_RDWR);
    isNew = false;
  }
  try {
    // A second name would be the finished file.
    if (!isNew && fstatSync(fd).nlink !== 1) throw systemError("EEXIST", "open");
    if (!isNew) mayBlank(contentOf(fd), isCut(fd));
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
 * Writes over the reserve, synced, and cuts off the rest then, so that no half text ever looks whole. That cut may be lost with
 * the power: the text is there, with zeros behind it.
 */
export function fillReserve(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  writeAll(fd, bytes, 0);
  fsyncSync(fd);
  ftruncateSync(fd, bytes.length);
}

/** Zeros over what is in an open file, as far as it reaches, synced: then its name can be removed. */
export function wipe(fd: number): void {
  writeAll(fd, Buffer.alloc(fstatSync(fd).size), 0);
  fsyncSync(fd);
}

/**
 * Gives a reserved file its final name, synced: over what was found there, else only where nothing is, never through a link.
 * With the synced name the secret is in its place: that the reserved name could not be taken away then is not a failure.
 * @returns why it could not; it is left as a second name of the finished file, and `removeReserve` tries again
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

// Every destination is written in one way: what is there is looked at, may be replaced or not, and the write takes effect only
// if it still is there.

/** How often what changed between the look and the write is looked at again. */
const looks = 5;

/**
 * @param how.write returns false if something else is there than was found: nothing was written
 * @throws Failure of `may`, or `conflict` if it changes each time
 */
export async function writeOver(
  name: string,
  how: {
    readonly look: () => Promise<Found>;
    readonly may: (found: Found) => Promise<void>;
    readonly write: (found: Found) => Promise<boolean>;
  },
): Promise<void> {
  for (let round = 0; round < looks; round += 1) {
    const found = await how.look();
    await how.may(found);
    if (await how.write(found)) return;
  }
  throw new Failure("conflict", `${name} was changed by another at each of ${looks} attempts to write it.`, {
    meaning: "Nothing of another was overwritten.",
  });
}

/** More than any secret in any format. */
const longestBytes = 1024 * 1024;

/** Compared in a time that does not depend on where they differ. */
export function isSameSecret(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** What is in the place of a file. */
export function foundAt(path: string): Found {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | careful);
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
