import { createRequire } from "node:module";
import { asFailedCall, lockAnswer } from "./error-words.ts";

/** Some bytes of a file; they may lie behind its end. */
export interface LockRange {
  readonly offset: number;
  readonly length: number;
}

export interface KernelLock {
  /** Never waits. undefined where the file system has no locks. @param range default: what locks a file of our own */
  tryLock(fd: number, range?: LockRange): boolean | undefined;
  /** False where a lock is always one of the whole file (macOS). */
  readonly hasRanges: boolean;
}

interface FsNativeExtensions {
  tryLock(fd: number, offset: number, length: number): boolean;
}

/** Windows locks keep others from reading what is locked: a byte far behind the owner's name is locked there. */
const whole: LockRange = process.platform === "win32" ? { offset: 2 ** 30, length: 1 } : { offset: 0, length: 0 };

function load(): unknown {
  try {
    return createRequire(import.meta.url)("fs-native-extensions");
  } catch {
    return undefined;
  }
}

function isFsNativeExtensions(loaded: unknown): loaded is FsNativeExtensions {
  return typeof loaded === "object" && loaded !== null && "tryLock" in loaded && typeof loaded.tryLock === "function";
}

/** The kernel's lock, or undefined where its package has no build for this system (musl) or is not installed. */
export function loadKernelLock(): KernelLock | undefined {
  const native = load();
  if (!isFsNativeExtensions(native)) return undefined;
  return {
    hasRanges: process.platform !== "darwin",
    tryLock(fd, { offset, length } = whole) {
      try {
        return native.tryLock(fd, offset, length);
      } catch (error) {
        const answer = lockAnswer(error);
        if (answer === undefined) throw asFailedCall(error, "lock");
        return answer === "taken" ? false : undefined;
      }
    },
  };
}
