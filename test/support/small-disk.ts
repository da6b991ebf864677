// Mounts a tmpfs of a few pages, which can be filled completely.
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, fstatSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, type TestContext } from "vitest";
import { errorCode } from "../../src/disk/error-words.ts";
import { temporaryFolder } from "./bundle-driver.ts";

export function mountSmallDisk(kilobytes: number, context: Pick<TestContext, "skip">): string {
  const folder = temporaryFolder();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0700`, "tmpfs", folder]);
  if (mounted.status !== 0) context.skip("a small disk cannot be mounted here: it needs the superuser");
  onTestFinished(() => {
    spawnSync("umount", ["-l", folder]);
  });
  return folder;
}

/** @param free the bytes to leave, a multiple of the page size 4096 */
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
