// A disk that is really full: a tmpfs of a few pages, if the machine allows a mount.
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, fstatSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, type TestContext } from "vitest";
import { errorCode } from "../../src/disk/error-words.ts";
import { temporaryFolder } from "./bundle-driver.ts";

/** Mounts a disk of `kilobytes`; skips the test with a message if that is not allowed. */
export function mountSmallDisk(kilobytes: number, context: Pick<TestContext, "skip">): string {
  const folder = temporaryFolder();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0700`, "tmpfs", folder]);
  if (mounted.status !== 0) context.skip("a small disk cannot be mounted here: it needs the superuser");
  onTestFinished(() => {
    spawnSync("umount", ["-l", folder]);
  });
  return folder;
}

/** Fills a disk and leaves exactly `free` bytes (whole pages of 4096). */
export function fillDisk(folder: string, free: number): void {
  const fd = openSync(join(folder, "filling"), "w");
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  } catch (error) {
    if (errorCode(error) !== "ENOSPC") throw error;
  }
  ftruncateSync(fd, fstatSync(fd).size - free);
  closeSync(fd);
}
