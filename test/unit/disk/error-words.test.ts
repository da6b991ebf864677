import { openSync } from "node:fs";
import { expect, test } from "vitest";
import { errorCode, failedCall, fileFailure, systemError, systemWords } from "../../../src/disk/error-words.ts";
import { Failure } from "../../../src/errors.ts";

const disk = (code: string): Error => systemError(code, "write");

test("a failed call tells its code and its call; a bug with a code is none", () => {
  expect(failedCall(disk("EIO"))).toEqual({ code: "EIO", call: "write" });
  expect(errorCode(Object.assign(new TypeError("x"), { code: "ERR_INVALID_ARG_TYPE" }))).toBeUndefined();
  expect(errorCode("EIO")).toBeUndefined();
});

test.each([
  ["EACCES", "usage", "permission denied"],
  ["EROFS", "usage", "the file system is read-only"],
  ["ENXIO", "usage", "ENXIO"],
  ["EIO", "failed", "the device reports an I/O error"],
  ["ENOSPC", "failed", "no space left on the device"],
  ["EDQUOT", "failed", "the disk quota is used up"],
])("%s: %s, in words", (code, kind, words) => {
  const failure = fileFailure(disk(code), "write", { path: "/x" });
  expect([failure.kind, failure.message]).toEqual([kind, `Cannot write /x: ${words}.`]);
});

test("a full disk has a way out unless the caller knows a better one", () => {
  const full = disk("ENOSPC");
  expect(fileFailure(full, "write", { path: "/x" }).details.hint).toContain("make room on the disk");
  expect(fileFailure(disk("EIO"), "write", { path: "/x" }).details.hint).toBeUndefined();
  const options = { path: "/x", hints: { full: "elsewhere" }, meaning: "nothing was sent" };
  expect(fileFailure(full, "write", options).details).toMatchObject({ hint: "elsewhere", meaning: "nothing was sent" });
});

test("the system's own words, without the path", () => {
  let caught: unknown;
  try {
    openSync("/nowhere/at/all", "r");
  } catch (error) {
    caught = error;
  }
  expect(systemWords(caught)).toBe("no such file or directory (ENOENT)");
  expect(fileFailure(caught, "read", { path: "/x", words: systemWords }).message).toBe(
    "Cannot read /x: no such file or directory (ENOENT).",
  );
});

test("a Failure passes unchanged, a bug is an unexpected error", () => {
  const failure = new Failure("auth", "no");
  expect(fileFailure(failure, "write", { path: "/x" })).toBe(failure);
  expect(fileFailure(new TypeError("a.b"), "write", { path: "/x" }).message).toBe(
    "Cannot write /x: an unexpected error.",
  );
});
