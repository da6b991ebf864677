// Owns: a lock between processes that one which died never keeps: its file, its holder, and taking it over from the dead.
// Must not know: what is locked, how long to wait, records.
//
// A lock is a file that names its owner. It appears under its name whole (written aside, then linked, which fails where
// one stands). With a kernel lock on it the kernel says whether its holder lives; without, only a proof of death counts.
// What a dead owner left is removed by whoever holds the lock named after that one taking (`.take-<random>`): the name is
// never used again, so that nobody can remove the file of a successor. Locks of both kinds exclude each other.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { errorCode, failedCall } from "./file-error.ts";
import type { KernelLock } from "./kernel-lock.ts";
import { isProvenDead, type LockOwner, newOwner, type ProcessIdentity, readOwner } from "./owner.ts";

/** A lock that is held; giving it back twice does no harm. */
export interface HeldLock {
  release(): void;
}

/** Either the lock, or who has it (undefined where its file does not tell). */
export type LockAttempt =
  | { readonly held: HeldLock }
  | { readonly held: undefined; readonly owner: LockOwner | undefined };

export interface LockMeans {
  readonly self: ProcessIdentity;
  /** undefined where the kernel's lock cannot be had. */
  readonly kernel: KernelLock | undefined;
}

type Look =
  | { readonly kind: "absent" }
  | { readonly kind: "held"; readonly owner: LockOwner | undefined }
  | { readonly kind: "dead"; readonly owner: LockOwner }
  | { readonly kind: "ours"; readonly lock: HeldLock };

const opening = fs.constants.O_RDWR | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
/** More rounds than any honest race takes; after that the caller waits like behind a living holder. */
const rounds = 16;

/**
 * Takes the lock of that path if nobody alive has it. Never waits.
 * @throws the error of the file call where the folder cannot be used.
 */
export function tryLock(path: string, means: LockMeans): LockAttempt {
  let owner: LockOwner | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const look = lookAt(path, means);
    if (look.kind === "ours") return { held: look.lock };
    if (look.kind === "held") return { held: undefined, owner: look.owner };
    if (look.kind === "absent") {
      const held = create(path, means);
      if (held) return { held };
    } else {
      owner = look.owner;
      if (!clearDead(path, { owner, means })) return { held: undefined, owner };
    }
  }
  return { held: undefined, owner };
}

function lookAt(path: string, means: LockMeans): Look {
  let fd: number;
  try {
    fd = fs.openSync(path, opening);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { kind: "absent" };
    throw error;
  }
  let keep = false;
  try {
    const granted = means.kernel?.tryLock(fd); // undefined: this file system has no such lock
    const text = readAll(fd);
    const owner = readOwner(text);
    if (granted === false) return { kind: "held", owner };
    if (granted === true && !isAt(path, fd)) return { kind: "absent" };
    if (owner === undefined && granted === true) {
      // Made in place, without links, by a process that died before it wrote its name: the kernel's lock decides.
      keep = true;
      fs.ftruncateSync(fd, 0);
      writeAll(fd, JSON.stringify(newOwner(means.self, true)));
      return { kind: "ours", lock: heldLock(path, fd) };
    }
    if (owner === undefined) return { kind: "held", owner };
    const dead = (granted === true && owner.kernel) || isProvenDead(owner, means.self, path);
    return dead ? { kind: "dead", owner } : { kind: "held", owner };
  } finally {
    if (!keep) fs.closeSync(fd);
  }
}

/** Makes the lock's file with its owner in it; undefined where another process was first. */
function create(path: string, means: LockMeans): HeldLock | undefined {
  const temporary = `${path}.new-${means.self.pid}-${randomBytes(6).toString("hex")}`;
  const fd = fs.openSync(temporary, opening | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600);
  try {
    const kernel = means.kernel?.tryLock(fd) === true;
    writeAll(fd, JSON.stringify(newOwner(means.self, kernel)));
    fs.linkSync(temporary, path);
  } catch (error) {
    fs.closeSync(fd);
    removeFile(temporary);
    const failed = failedCall(error);
    if (failed?.call !== "link") throw error;
    if (failed.code === "EEXIST" || failed.code === "ENOENT") return undefined; // another was first, or swept the file
    if (noLinks.has(failed.code)) return createInPlace(path, means);
    throw error;
  }
  removeFile(temporary);
  return heldLock(path, fd);
}

const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Where the file system has no hard links: a crash between the two steps leaves a file without an owner. */
function createInPlace(path: string, means: LockMeans): HeldLock | undefined {
  let fd: number;
  try {
    fd = fs.openSync(path, opening | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600);
  } catch (error) {
    if (errorCode(error) === "EEXIST") return undefined;
    throw error;
  }
  try {
    const granted = means.kernel?.tryLock(fd);
    if (granted !== false) {
      writeAll(fd, JSON.stringify(newOwner(means.self, granted === true)));
      return heldLock(path, fd);
    }
  } catch (error) {
    removeFile(path);
    fs.closeSync(fd);
    throw error;
  }
  fs.closeSync(fd); // another looked at the empty file first and has it now
  return undefined;
}

/** Removes what a dead owner left; false where somebody else is at it. */
function clearDead(path: string, dead: { owner: LockOwner; means: LockMeans }): boolean {
  const { owner, means } = dead;
  const taking = tryLock(`${path.replace(/\.take-[\w-]+$/, "")}.take-${owner.random}`, means);
  if (!taking.held) return false;
  try {
    const text = attemptRead(path);
    if (text === undefined || readOwner(text)?.random !== owner.random) return true; // gone already
    const aside = `${path}.dead-${owner.random}`;
    fs.renameSync(path, aside);
    removeFile(aside);
    return true;
  } finally {
    taking.held.release();
  }
}

function heldLock(path: string, fd: number): HeldLock {
  let held = true;
  return {
    release() {
      if (!held) return;
      held = false;
      try {
        // The name goes while the lock is still held: whoever opened the file before finds another at its path, or none.
        if (isAt(path, fd)) removeFile(path);
      } finally {
        fs.closeSync(fd);
      }
    },
  };
}

/** Whether the open file is the one that stands at the path. */
function isAt(path: string, fd: number): boolean {
  const open = fs.fstatSync(fd, { bigint: true });
  const there = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return there !== undefined && there.ino === open.ino && there.dev === open.dev;
}

function readAll(fd: number): string {
  const text = Buffer.alloc(2048);
  return text.toString("utf8", 0, fs.readSync(fd, text, 0, text.length, 0));
}

function attemptRead(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(fd, bytes, done, bytes.length - done, done);
}

/** A file that cannot be removed is no fault of the lock: whoever comes next finds its owner gone. */
function removeFile(path: string): void {
  try {
    fs.unlinkSync(path);
  } catch {
    // left behind: `sweepLocks` tries again
  }
}
