import fs, { closeSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { errorCode } from "../../../src/disk/error-words.ts";
import { truncateAppended, folderSynced, isAt, removeFile, syncFolder, writeAll } from "../../../src/disk/write.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { type DiskCall, diskError, onDisk, wordsOf } from "../../support/disk-calls.ts";

test("writes at an offset, or at the end of a file opened to append", () => {
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

test("a folder is synced; a missing one is an error; a missing file counts as removed", () => {
  const folder = temporaryFolder();
  syncFolder(folder);
  expect(() => syncFolder(join(folder, "none"))).toThrow("ENOENT");
  writeFileSync(join(folder, "x"), "");
  removeFile(join(folder, "x"));
  removeFile(join(folder, "x"));
  expect(() => removeFile(join(folder, "none", "x"))).not.toThrow();
  expect(() => removeFile(folder)).toThrow();
});

test("a short write continues at its offset; one that writes nothing is an error", async () => {
  const path = join(temporaryFolder(), "x");
  writeFileSync(path, "......");
  const fd = openSync(path, "r+");
  const { writeSync } = fs;
  const short = ({ call }: DiskCall) =>
    call === "write"
      ? (to: number, data: Uint8Array, from: number, _length: number, at: number) => writeSync(to, data, from, 1, at)
      : undefined;
  const { error, calls } = await onDisk(() => writeAll(fd, Buffer.from("abc"), 2), short);
  expect([error, calls.length, readFileSync(path, "utf8")]).toEqual([undefined, 3, "..abc."]);
  const none = await onDisk(
    () => writeAll(fd, Buffer.from("abc")),
    () => () => 0,
  );
  expect(none.error).toMatchObject({ code: "EIO", syscall: "write" });
  truncateAppended({ fd, size: 3 });
  expect(readFileSync(path, "utf8")).toBe("..a");
  closeSync(fd);
  expect(() => truncateAppended({ fd: 9999, size: 0 })).not.toThrow();
});

test.each([
  ["fsync", "EINVAL", {}, undefined],
  ["fsync", "ENOTSUP", {}, undefined],
  ["fsync", "EIO", {}, "EIO"],
  ["open", "EACCES", {}, "EACCES"],
  ["open", "EACCES", { unlessDenied: true }, undefined],
  ["open", "EIO", { unlessDenied: true }, "EIO"],
  ["fsync", "EACCES", { unlessDenied: true }, "EACCES"],
])("a folder whose %s fails with %s (%j): %s", async (wanted, code, options, expected) => {
  const folder = temporaryFolder();
  const { error, open } = await onDisk(
    () => syncFolder(folder, options),
    ({ call }) => (call === wanted ? diskError(code, wanted) : undefined),
  );
  expect([errorCode(error), open]).toEqual([expected, []]);
});

test("a folder is synced once for all callers of one turn, again in the next, and each gets its error", async () => {
  const folder = temporaryFolder();
  const syncTwice = () => Promise.all([folderSynced(folder), folderSynced(folder)]);
  const { calls } = await onDisk(async () => [await syncTwice(), await syncTwice()]);
  expect(wordsOf(calls, ["fsync"])).toHaveLength(2);
  const failing = await onDisk(syncTwice, ({ call }) => (call === "fsync" ? diskError("EIO", call) : undefined));
  expect(errorCode(failing.error)).toBe("EIO");
});

test("an open file is at its path until another file, or none, is there", () => {
  const path = join(temporaryFolder(), "x");
  const fd = openSync(path, "w");
  expect(isAt(path, fd)).toBe(true);
  renameSync(path, `${path}.moved`);
  expect(isAt(path, fd)).toBe(false);
  writeFileSync(path, "another");
  expect([isAt(path, fd), isAt(`${path}.moved`, fd)]).toEqual([false, true]);
  closeSync(fd);
});
