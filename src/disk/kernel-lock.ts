import { asFailedCall, lockAnswer } from "./error-words.ts";
import { requireInstalled } from "./installed-packages.ts";

export interface KernelLock {
  /** Never waits. @returns false if another process has the lock; undefined if the file system supports no locks */
  tryLock(fd: number): boolean | undefined;
}

interface FsNativeExtensions {
  /** The package returns false for a lock of another process; its native part throws. */
  tryLock(fd: number, offset: number, length: number, exclusive: true): boolean | undefined;
}

/** Windows makes locked bytes unreadable, so integ locks a byte far behind the owner's name. */
const { offset, length } = process.platform === "win32" ? { offset: 2 ** 30, length: 1 } : { offset: 0, length: 0 };

/** Loaded first, because the package searches many folders for its native part. */
const nativePart = `fs-native-extensions/prebuilds/${process.platform}-${process.arch}/fs-native-extensions.node`;

function load(): unknown {
  const require = requireInstalled();
  for (const name of [nativePart, "fs-native-extensions"]) {
    try {
      return require?.(name);
    } catch {
      // The package is missing or has no build for this system.
    }
  }
  return undefined;
}

function isFsNativeExtensions(loaded: unknown): loaded is FsNativeExtensions {
  return typeof loaded === "object" && loaded !== null && "tryLock" in loaded && typeof loaded.tryLock === "function";
}

/** @returns undefined without the package, or without its build for this system, such as musl */
export function loadKernelLock(): KernelLock | undefined {
  const native = load();
  if (!isFsNativeExtensions(native)) return undefined;
  return {
    tryLock(fd) {
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

/** `release` never throws and is safe to repeat. If it fails, the lock ends with the process. */
export interface HeldLock {
  release(): void;
}
