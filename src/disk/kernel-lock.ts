import { asFailedCall, lockAnswer } from "./error-words.ts";
import { requireInstalled } from "./installed-packages.ts";

export interface KernelLock {
  /** Never waits. undefined if the file system has no locks. */
  tryLock(fd: number): boolean | undefined;
}

interface FsNativeExtensions {
  /** The package returns false of a lock that another has; its native part throws then. */
  tryLock(fd: number, offset: number, length: number, exclusive: true): boolean | undefined;
}

/** Windows locks keep others from reading what is locked: a byte far behind the owner's name is locked there. */
const { offset, length } = process.platform === "win32" ? { offset: 2 ** 30, length: 1 } : { offset: 0, length: 0 };

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

/**
 * A lock that is held. Releasing it twice does no harm, and never fails: the outcome of the work under it does not change, and
 * what is left of a lock ends with its process.
 */
export interface HeldLock {
  release(): void;
}
