// Locks between processes: files that name their owners.
// A lock file is written under a temporary name and then linked, which fails if the lock exists. A kernel lock shows if
// its owner runs; without one, another process removes the lock file only if the owner has certainly ended, or if a
// user orders the removal. A second lock, whose name contains the ended owner's random text, prevents the removal of a
// later owner's file.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../errors.ts";
import { errorCode, failedCall, hasNoLinks, isMissing, alreadyExists } from "./error-words.ts";
import { type KernelLock, loadKernelLock, type HeldLock } from "./kernel-lock.ts";
import {
  isVisible,
  identify,
  isNotRunning,
  hasCertainlyEnded,
  type LockOwner,
  newOwner,
  type ProcessIdentity,
  readOwner,
} from "./lock-owner.ts";
import { carefulOpen, isAt, writeAll } from "./write.ts";

export interface OwnedLock extends HeldLock {
  /** False after `release`, and after a user removed the lock with `forceUnlock`. */
  isHeld(): boolean;
}

/** `owner` is undefined if the lock file names no owner. */
export type LockAttempt =
  | { readonly held: OwnedLock }
  | { readonly held: undefined; readonly owner: LockOwner | undefined };

export interface LockMeans {
  readonly self: ProcessIdentity;
  readonly kernel: KernelLock | undefined;
}

type LockState =
  | { readonly kind: "absent" }
  /** `isCertain`: the owner certainly runs; otherwise it may have ended. */
  | { readonly kind: "held"; readonly owner: LockOwner | undefined; readonly isCertain: boolean }
  | { readonly kind: "dead"; readonly owner: LockOwner }
  | { readonly kind: "ours"; readonly lock: OwnedLock };

const opening = fs.constants.O_RDWR | carefulOpen;
/** More rounds than real races need; after them, the lock counts as held. */
const rounds = 16;

/**
 * Acquires the lock unless its owner may still run. Never waits.
 * @throws Failure `usage` if the file system has no hard links; the error of the file call if the folder is unusable
 */
export function tryLock(path: string, means: LockMeans): LockAttempt {
  let owner: LockOwner | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const state = inspect(path, means);
    if (state.kind === "ours") return { held: state.lock };
    if (state.kind === "held") return { held: undefined, owner: state.owner };
    if (state.kind === "absent") {
      const held = create(path, means);
      if (held) return { held };
    } else {
      owner = state.owner;
      if (!removeEnded(path, { owner, means })) return { held: undefined, owner };
    }
  }
  return { held: undefined, owner };
}

function inspect(path: string, means: LockMeans): LockState {
  let fd: number;
  try {
    fd = fs.openSync(path, opening);
  } catch (error) {
    if (isMissing(error)) return { kind: "absent" };
    throw error;
  }
  let keep = false;
  try {
    const granted = means.kernel?.tryLock(fd); // undefined if the file system has no such lock
    const text = readAll(fd);
    const owner = readOwner(text);
    if (granted === false) return { kind: "held", owner, isCertain: true };
    if (granted === true && !isAt(path, fd)) return { kind: "absent" };
    if (owner === undefined && granted === true) {
      // A power cut emptied the file, so its owner has ended.
      keep = true;
      fs.ftruncateSync(fd, 0);
      writeAll(fd, Buffer.from(JSON.stringify(newOwner(means.self, true))), 0);
      return { kind: "ours", lock: heldLock(path, fd) };
    }
    if (owner === undefined) return { kind: "held", owner, isCertain: false };
    const dead = (granted === true && owner.kernel) || hasCertainlyEnded(owner, means.self, path);
    return dead ? { kind: "dead", owner } : { kind: "held", owner, isCertain: isVisible(owner, means.self) };
  } finally {
    if (!keep) fs.closeSync(fd);
  }
}

/**
 * Removes a lock whose owner has ended according to the user, because integ cannot check that owner. If the owner still
 * runs, its `isHeld` becomes false.
 * @returns `taken` if the lock was removed, `free` if there was none or its owner had certainly ended, `lives` if the
 * owner runs or the removal failed
 */
export function forceUnlock(path: string, means: LockMeans): "taken" | "free" | "lives" {
  const state = inspect(path, means);
  if (state.kind === "ours") state.lock.release();
  if (state.kind === "absent" || state.kind === "ours") return "free";
  const { owner } = state;
  if (state.kind === "dead") return removeEnded(path, { owner: state.owner, means }) ? "free" : "lives";
  if (state.isCertain) return "lives";
  return (owner === undefined ? removeUnnamed(path) : removeEnded(path, { owner, means })) ? "taken" : "lives";
}

function removeUnnamed(path: string): boolean {
  const aside = `${path}.dead-${randomBytes(9).toString("base64url")}`;
  fs.renameSync(path, aside);
  const isAnother = readOwner(attemptRead(aside) ?? "") !== undefined;
  if (isAnother) fs.linkSync(aside, path);
  discard(aside);
  return !isAnother;
}

function create(path: string, means: LockMeans): OwnedLock | undefined {
  const temporary = `${path}.new-${means.self.pid}-${randomBytes(6).toString("hex")}`;
  const fd = fs.openSync(temporary, opening | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600);
  try {
    const kernel = means.kernel?.tryLock(fd) === true;
    writeAll(fd, Buffer.from(JSON.stringify(newOwner(means.self, kernel))), 0);
    fs.linkSync(temporary, path);
  } catch (error) {
    fs.closeSync(fd);
    discard(temporary);
    if (failedCall(error)?.call !== "link") throw error;
    if (alreadyExists(error) || isMissing(error)) return undefined; // another process was first, or swept the file
    throw hasNoLinks(error) ? withoutLinks(path, error) : error;
  }
  discard(temporary);
  return heldLock(path, fd);
}

function withoutLinks(path: string, cause: unknown): Failure {
  return new Failure("usage", `Cannot make the lock ${path}: its file system has no hard links.`, {
    meaning: "Without them, processes that run at the same time could hold one lock.",
    hint: "Use a folder on a local disk.",
    cause,
  });
}

function removeEnded(path: string, dead: { owner: LockOwner; means: LockMeans }): boolean {
  const { owner, means } = dead;
  const second = tryLock(`${path.replace(/\.take-[\w-]+$/, "")}.take-${owner.random}`, means);
  if (!second.held) return false;
  try {
    const text = attemptRead(path);
    if (text === undefined || readOwner(text)?.random !== owner.random) return true; // the file was removed already
    const aside = `${path}.dead-${owner.random}`;
    fs.renameSync(path, aside);
    discard(aside);
    return true;
  } finally {
    second.held.release();
  }
}

function heldLock(path: string, fd: number): OwnedLock {
  let held = true;
  return {
    isHeld: () => held && isAt(path, fd),
    release() {
      if (!held) return;
      held = false;
      // Remove the file while holding the lock: processes that opened it then see another file at the path, or none.
      for (const step of [() => isAt(path, fd) && discard(path), () => fs.closeSync(fd)]) {
        try {
          step();
        } catch {
          // The folder is missing or unreadable.
        }
      }
    },
  };
}

function readAll(fd: number): string {
  const text = Buffer.alloc(2048);
  return text.toString("utf8", 0, fs.readSync(fd, text, 0, text.length, 0));
}

function attemptRead(path: string): string | undefined {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function discard(path: string): void {
  try {
    fs.unlinkSync(path);
  } catch {
    // A later process or `sweepLocks` removes the file.
  }
}

const temporary = /\.lock(?:\.take-[\w-]+)?\.new-([0-9]+)-[0-9a-f]{12}$/;
const aside = /\.lock(?:\.take-[\w-]+)?\.dead-[\w-]+$/;
const lock = /\.lock(?:\.take-[\w-]+)?$/;

/**
 * Removes the lock files of owners that have ended, and files that killed processes left. A process whose temporary
 * file was removed, as in another container, tries again.
 * @param path prefix of the files; `options.held` is the caller's lock, which stays
 */
export function sweepLocks(path: string, options: { readonly held: string; readonly means: LockMeans }): void {
  const folder = dirname(path);
  for (const name of fs.readdirSync(folder)) {
    const file = join(folder, name);
    if (!name.startsWith(`${basename(path)}.`) || file === options.held) continue;
    try {
      sweepFile(file, options.means);
    } catch (error) {
      if (errorCode(error) === undefined) throw error; // the next process tries again
    }
  }
}

function sweepFile(file: string, means: LockMeans): void {
  const pid = temporary.exec(file)?.[1];
  if (pid !== undefined ? isNotRunning(Number(pid)) : aside.test(file)) fs.rmSync(file, { force: true });
  else if (pid === undefined && lock.test(file)) tryLock(file, means).held?.release();
}

let ownMeans: LockMeans | undefined;

/** Doubles up to 40 ms, with jitter so that waiting processes do not retry together. */
function backoffMs(round: number): number {
  const most = Math.min(40, 2 ** Math.min(round, 6));
  return most / 2 + (Math.random() * most) / 2;
}

/**
 * Acquires a lock, and removes lock files of ended owners beside it.
 * @param path the lock's file, `<something>.lock`, in an existing folder
 * @param options.waitMs how long to wait for a running holder (default 10 s)
 * @param options.whenHeld returns the error if the lock is still held after `waitMs`; `owner` is undefined if unknown
 * @throws the error from `whenHeld`, or as `tryLock`
 */
export async function waitForLock(
  path: string,
  options: { readonly waitMs?: number | undefined; readonly whenHeld: (owner: LockOwner | undefined) => Error },
): Promise<HeldLock> {
  ownMeans ??= { self: identify(process.pid), kernel: loadKernelLock() };
  // The time is read only if the lock is held, because loading `performance` takes time.
  let end: number | undefined;
  for (let round = 0; ; round += 1) {
    const attempt = tryLock(path, ownMeans);
    if (attempt.held) {
      try {
        sweepLocks(path, { held: path, means: ownMeans });
        return attempt.held;
      } catch (error) {
        attempt.held.release();
        throw error;
      }
    }
    end ??= performance.now() + (options.waitMs ?? 10_000);
    const left = end - performance.now();
    if (left <= 0) throw options.whenHeld(attempt.owner);
    await sleep(Math.min(left, backoffMs(round)));
  }
}
