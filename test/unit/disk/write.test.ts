import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeFile, syncFolder, writeAll } from "../../../src/disk/write.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

test("writes at a place, or at the end of a file that is appended to", () => {
  const path = join(temporaryFolder(), "x");
  writeFileSync(path, "abcdef");
  const over = openSync(path, "r+");
  writeAll(over, Buffer.from("XY"), 2);
  closeSync(over);
  const end = openSync(path, "a");
  writeAll(end, Buffer.from("1"));
  writeAll(end, Buffer.from("2"));
  closeSync(end);
  expect(readFileSync(path, "utf8")).toBe("abXYef12");
});

test("a device without space is an error", () => {
  const full = openSync("/dev/full", "w");
  expect(() => writeAll(full, Buffer.from("x"))).toThrow("ENOSPC");
  closeSync(full);
});

test("a folder is synced; one that is not there is an error; a file that is not there is removed already", () => {
  const folder = temporaryFolder();
  syncFolder(folder);
  expect(() => syncFolder(join(folder, "none"))).toThrow("ENOENT");
  writeFileSync(join(folder, "x"), "");
  removeFile(join(folder, "x"));
  removeFile(join(folder, "x"));
  expect(() => removeFile(join(folder, "none", "x"))).not.toThrow();
  expect(() => removeFile(folder)).toThrow();
});
