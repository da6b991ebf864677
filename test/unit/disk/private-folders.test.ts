import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolders } from "../../../src/disk/private-file.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

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
