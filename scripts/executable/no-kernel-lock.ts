// For src/disk/kernel-lock.ts: the package with the kernel's lock is not in the executable, so locks are owner files.
export { hasOtherPaths, tryLockRange } from "../../src/disk/kernel-lock.ts";

export const loadKernelLock: typeof import("../../src/disk/kernel-lock.ts").loadKernelLock = () => undefined;
