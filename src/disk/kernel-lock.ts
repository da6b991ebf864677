import { asFailedCall, lockAnswer, isMissing, isUnwritable } from "./error-words.ts";
import { closeSync, constants, lstatSync, openSync, readFileSync, realpathSync } from "node:fs";
import { requireInstalled } from "./installed-packages.ts";
import { careful, isAt } from "./write.ts";

/** Some bytes of a file; they may lie behind its end. */
export interface LockRange {
  readonly offset: number;
  readonly length: number;
}

export interface KernelLock {
  /** Never waits. undefined if the file system has no locks. @param range default: what locks a file of our own */
  tryLock(fd: number, range?: LockRange): boolean | undefined;
  /** False if a lock is always one of the whole file (macOS). */
  readonly hasRanges: boolean;
}

interface FsNativeExtensions {
  /** The package returns false of a lock that another has; its native part throws then. */
  tryLock(fd: number, offset: number, length: number, exclusive: true): boolean | undefined;
}

/** Windows locks keep others from reading what is locked: a byte far behind the owner's name is locked there. */
const whole: LockRange = process.platform === "win32" ? { offset: 2 ** 30, length: 1 } : { offset: 0, length: 0 };

/** The native part alone: the package looks for it at many places, which costs more than a lock. */
const nativePart = `fs-native-extensions/prebuilds/${process.platform}-${process.arch}/fs-native-extensions.node`;

function load(): unknown {
  const require = requireInstalled();
  for (const name of [nativePart, "fs-native-extensions"]) {
    try {
      return require?.(name);
    } catch {
      // Not built for this system, or elsewhere.
    }
  }
  return undefined;
}

function isFsNativeExtensions(loaded: unknown): loaded is FsNativeExtensions {
  return typeof loaded === "object" && loaded !== null && "tryLock" in loaded && typeof loaded.tryLock === "function";
}

/** The kernel's lock, or undefined if its package has no build for this system (musl) or is not installed. */
export function loadKernelLock(): KernelLock | undefined {
  const native = load();
  if (!isFsNativeExtensions(native)) return undefined;
  return {
    hasRanges: process.platform !== "darwin",
    tryLock(fd, { offset, length } = whole) {
      try {
        return native.tryLock(fd, offset, length, true) !== false;
      } catch (error) {
        const answer = lockAnswer(error);
        if (answer === undefined) throw asFailedCall(error, "lock");
        return answer === "taken" ? false : undefined;
      }
    },
  };
}

// Locks on bytes of a file itself. They belong to the file, whatever path leads to it: a file that a container has mounted
// by itself, or that has a second name (a hard link), has other neighbours at each of its paths.

/** `no_file`: none that could be written, so nothing to keep others from. `no_locks`: the system or the disk has no such locks. */
export type RangeAttempt = RangeLock | "taken" | "no_file" | "no_locks";

/** Locked bytes of a file. */
export interface RangeLock extends HeldLock {
  /** The file that has the lock, open to read and append; closed by `release`, and the lock of these bytes ends with it. */
  readonly fd: number;
}

/** Locks bytes of the file at a path, if no one has. Never waits. */
export function tryLockRange(path: string, range: LockRange, kernel: KernelLock | undefined): RangeAttempt {
  if (!kernel?.hasRanges) return "no_locks";
  for (;;) {
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR | constants.O_APPEND | careful);
    } catch (error) {
      if (isMissing(error) || isUnwritable(error)) return "no_file";
      throw error;
    }
    const answer = lockOpen(path, { fd, range, kernel });
    if (answer !== "moved") return answer;
  }
}

function lockOpen(
  path: string,
  { fd, range, kernel }: { readonly fd: number; readonly range: LockRange; readonly kernel: KernelLock },
): RangeAttempt | "moved" {
  let isKept = false;
  try {
    const granted = kernel.tryLock(fd, range);
    if (granted !== true) return granted === false ? "taken" : "no_locks";
    if (!isAt(path, fd)) return "moved"; // another file took its place meanwhile
    isKept = true;
  } finally {
    if (!isKept) closeSync(fd);
  }
  let isHeld = true;
  return {
    fd,
    release() {
      if (isHeld) closeSync(fd);
      isHeld = false;
    },
  };
}

/** Whether other paths may lead to the file, as far as is known: it has a second name, or is mounted by itself. */
export function hasOtherPaths(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return false;
  return stats.nlink > 1 || isMountPoint(path);
}

function isMountPoint(path: string): boolean {
  try {
    const escaped = realpathSync(path).replaceAll(
      /[ \t\n\\]/g,
      (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`,
    );
    return readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .some((line) => line.split(" ")[4] === escaped);
  } catch {
    return false; // a system without such a list
  }
}

/**
 * A lock that is held. Releasing it twice does no harm, and never fails: the outcome of the work under it does not change, and
 * what is left of a lock ends with its process.
 */
export interface HeldLock {
  release(): void;
}
