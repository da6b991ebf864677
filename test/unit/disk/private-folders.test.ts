import { existsSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolders } from "../../../src/disk/private-file.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

test("makes the folders that are missing, its owner's alone; one that exists stays", () => {
  const top = temporaryFolder();
  const path = join(top, "a", "b", "c");
  makeFolders(path);
  makeFolders(path, { synced: false });
  expect([statSync(path).mode & 0o777, statSync(join(top, "a")).mode & 0o777]).toEqual([0o700, 0o700]);
});

test("below a file, or through a link that leads nowhere, it fails and returns", () => {
  const top = temporaryFolder();
  writeFileSync(join(top, "file"), "");
  symlinkSync(join(top, "nowhere"), join(top, "link"));
  expect(() => makeFolders(join(top, "file", "a", "b"))).toThrow("ENOTDIR");
  expect(() => makeFolders(join(top, "link", "a"))).toThrow("ENOENT");
});

test.runIf(existsSync("/proc/self"))("below a parent that takes no folder it fails and returns", () => {
  expect(() => makeFolders("/proc/nope")).toThrow("ENOENT");
  expect(() => makeFolders("/proc/nope/a/b")).toThrow("ENOENT");
});
