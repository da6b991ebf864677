import { expect, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { journalFailure } from "../../../../src/journal/file/safety.ts";

function refused(code: string, words: string): Error {
  return Object.assign(new Error(`${code}: ${words}, open '/j'`), { code, syscall: "open" });
}

function told(error: Error, ofItsEntries = false): Failure {
  const failure = journalFailure(error, "update the journal", { path: "/j", ofItsEntries });
  if (!(failure instanceof Failure)) throw new Error("no failure");
  return failure;
}

test("a failing call is told in a sentence, with the system's own words and no second path", () => {
  expect(told(refused("EROFS", "read-only file system")).message).toBe(
    "Cannot update the journal /j: read-only file system (EROFS).",
  );
});

test.each([
  ["EACCES", "permission denied", "usage"],
  ["EROFS", "read-only file system", "usage"],
  ["ENOSPC", "no space left on device", "failed"],
])("%s: entries that stand there are not to be looked for in another journal", (code, words, kind) => {
  const { kind: is, details } = told(refused(code, words), true);
  expect(is).toBe(kind);
  expect(details.hint).not.toContain("INTEG_JOURNAL");
});

test("a new entry may go to another journal", () => {
  expect(told(refused("EROFS", "read-only file system")).details.hint).toContain("INTEG_JOURNAL");
});

test("what is no failing call passes unchanged", () => {
  const bug = new Error("a bug");
  expect(journalFailure(bug, "read the journal", { path: "/j" })).toBe(bug);
});
