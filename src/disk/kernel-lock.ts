import { createRequire } from "node:module";
import { asFailedCall, lockAnswer } from "./error-words.ts";

export interface KernelLock {
  /** Never waits. undefined where the file system has no locks. */
  tryLock(fd: number): boolean | undefined;
}

interface FsNativeExtensions {
  tryLock(fd: number, offset: number, length: number): boolean;
}

/** Windows locks keep others from reading what is locked: a byte far behind the owner's name is locked there. */
const range: readonly [number, number] = process.platform === "win32" ? [2 ** 30, 1] : [0, 0];

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
    tryLock(fd) {
      try {
        return native.tryLock(fd, range[0], range[1]);
      } catch (error) {
        const answer = lockAnswer(error);
        if (answer === undefined) throw asFailedCall(error, "lock");
        return answer === "taken" ? false : undefined;
      }
    },
  };
}
