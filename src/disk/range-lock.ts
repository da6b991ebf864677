// Locks on bytes of a file itself. They belong to the file, whatever path leads to it: a file that a container has mounted
// by itself, or that has a second name (a hard link), has other neighbours at each of its paths.
import { closeSync, constants, lstatSync, openSync, readFileSync, realpathSync } from "node:fs";
import { isMissing, isUnwritable } from "./error-words.ts";
import type { KernelLock, LockRange } from "./kernel-lock.ts";
import type { HeldLock } from "./process-lock.ts";
import { careful, isAt } from "./write.ts";

/** `no_file`: none that could be written, so nothing to keep others from. `no_locks`: the system or the disk has no such locks. */
export type RangeAttempt = HeldLock | "taken" | "no_file" | "no_locks";

/** Locks bytes of the file at a path, if no one has. Never waits. */
export function tryLockRange(path: string, range: LockRange, kernel: KernelLock | undefined): RangeAttempt {
  if (!kernel?.hasRanges) return "no_locks";
  for (;;) {
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR | careful);
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
