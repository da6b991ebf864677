import { openSync } from "node:fs";
import { constants } from "node:os";
import { expect, test } from "vitest";
import {
  asFailedCall,
  errorCode,
  failedCall,
  fileFailure,
  isDiskFull,
  lockAnswer,
  systemError,
  systemWords,
} from "../../../src/disk/error-words.ts";
import { Failure } from "../../../src/errors.ts";

const disk = (code: string): Error => systemError(code, "write");

test("a failed call is described with its code and call; a bug with a code is not", () => {
  expect(failedCall(disk("EIO"))).toEqual({ code: "EIO", call: "write" });
  expect(errorCode(Object.assign(new TypeError("x"), { code: "ERR_INVALID_ARG_TYPE" }))).toBeUndefined();
  expect(errorCode("EIO")).toBeUndefined();
});

test.each([
  ["EACCES", "usage", "permission denied"],
  ["EROFS", "usage", "the file system is read-only"],
  ["ENXIO", "usage", "no such device or address"],
  ["EIO", "failed", "the device reports an I/O error"],
  ["ENOSPC", "failed", "no space left on device"],
  ["EDQUOT", "failed", "the disk quota is used up"],
])("%s is described: %s", (code, kind, words) => {
  const failure = fileFailure(disk(code), "write", { path: "/x" });
  expect([failure.kind, failure.message]).toEqual([kind, `Cannot write /x: ${words}.`]);
});

test.each([
  [constants.errno.EDQUOT, "the disk quota is used up", "the disk quota is used up (EDQUOT)"],
  [constants.errno.ENOLCK, "the file system has no free locks", "the file system has no free locks (ENOLCK)"],
  [121, "the device reports an I/O error", "the device reports an I/O error (EREMOTEIO)"],
  [117, "the file system is damaged", "the file system is damaged (EUCLEAN)"],
  [4711, "the system reports error 4711", "the system reports error 4711"],
])("error %d, which Node knows only by its number, is described", (number, words, systems) => {
  const code = `Unknown system error -${number}`;
  const error = Object.assign(new Error(`${code}: ${code}, fsync`), { code, syscall: "fsync", errno: -number });
  expect(fileFailure(error, "write", { path: "/x" }).message).toBe(`Cannot write /x: ${words}.`);
  expect(systemWords(error)).toBe(systems);
  const unknown = Object.assign(new Error("UNKNOWN: unknown error, write"), { code: "UNKNOWN", syscall: "write" });
  expect(systemWords(Object.assign(unknown, { errno: -number }))).toBe(systems);
  const native = Object.assign(new Error("no"), { code });
  expect(fileFailure(asFailedCall(native, "lock"), "lock", { path: "/x" }).message).toBe(`Cannot lock /x: ${words}.`);
  if (number === constants.errno.EDQUOT) expect(isDiskFull(error)).toBe(true);
  if (number === constants.errno.ENOLCK) expect(lockAnswer(native)).toBe("unsupported");
});

test("a bug of a native module stays a bug", () => {
  const bug = new TypeError("x");
  expect(asFailedCall(bug, "lock")).toBe(bug);
});

test("a full disk has a hint unless the caller knows a better one", () => {
  const full = disk("ENOSPC");
  expect(fileFailure(full, "write", { path: "/x" }).details.hint).toContain("Free space on the disk");
  expect(fileFailure(disk("EIO"), "write", { path: "/x" }).details.hint).toBeUndefined();
  const options = { path: "/x", hints: { full: "Use another disk." } as const, meaning: "nothing was sent" };
  expect(fileFailure(full, "write", options).details).toMatchObject({
    hint: "Use another disk.",
    meaning: "nothing was sent",
  });
});

test("the system's own message is kept without the path", () => {
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

test("a Failure passes unchanged, and a bug is an unexpected error", () => {
  const failure = new Failure("auth", "no");
  expect(fileFailure(failure, "write", { path: "/x" })).toBe(failure);
  expect(fileFailure(new TypeError("a.b"), "write", { path: "/x" }).message).toBe(
    "Cannot write /x: an unexpected error.",
  );
});

test("a problem with a path has its own hint; an error of a stream or a native module has none", () => {
  expect(fileFailure(disk("EACCES"), "write", { path: "/x" }).details.hint).toBe("Check the path and its permissions.");
  expect(fileFailure(disk("EMFILE"), "write", { path: "/x" }).details.hint).toBeUndefined();
  const broken = Object.assign(new Error("no"), { code: "ENOSPC" });
  expect([isDiskFull(broken), failedCall(broken), isDiskFull({ code: "ENOSPC" })]).toEqual([true, undefined, false]);
  expect(isDiskFull(Object.assign(new Error("no"), { code: 28 }))).toBe(false);
  expect(failedCall(Object.assign(new Error("no"), { code: "EIO", syscall: 1 }))).toBeUndefined();
  expect(disk("ENODATA").message).toBe("ENODATA: failed, write");
});
