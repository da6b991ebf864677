import { existsSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolders } from "../../../src/disk/private-file.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

test("makeFolders creates missing folders for the owner only; an existing one stays", () => {
  const top = temporaryFolder();
  const path = join(top, "a", "b", "c");
  makeFolders(path);
  makeFolders(path, { synced: false });
  expect([statSync(path).mode & 0o777, statSync(join(top, "a")).mode & 0o777]).toEqual([0o700, 0o700]);
});

test("makeFolders fails below a file or a dangling link, and returns", () => {
  const top = temporaryFolder();
  writeFileSync(join(top, "file"), "");
  symlinkSync(join(top, "nowhere"), join(top, "link"));
  expect(() => makeFolders(join(top, "file", "a", "b"))).toThrow("ENOTDIR");
  expect(() => makeFolders(join(top, "link", "a"))).toThrow("ENOENT");
});

test.runIf(existsSync("/proc/self"))("makeFolders fails below a parent that refuses the folder, and returns", () => {
  expect(() => makeFolders("/proc/nope")).toThrow("ENOENT");
  expect(() => makeFolders("/proc/nope/a/b")).toThrow("ENOENT");
});
