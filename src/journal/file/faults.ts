// Owns: how a failing file call of the journal is told: which kind of failure it is, and what to do about it. Pure.
// Must not know: which call failed beyond its words, the API.
import { fileFailure as describedFailure, errorCode, systemWords } from "../../disk/error-words.ts";

const advice: Readonly<Record<string, string>> = {
  EACCES: "give yourself access to it, or set INTEG_JOURNAL to a path that you can write",
  EPERM: "give yourself access to it, or set INTEG_JOURNAL to a path that you can write",
  EROFS: "set INTEG_JOURNAL to a path on a file system that can be written",
  ENOTDIR: "set INTEG_JOURNAL to a path in a folder: a part of this one is a file",
  ENAMETOOLONG: "set INTEG_JOURNAL to a shorter path",
  ELOOP: "set INTEG_JOURNAL to the file itself: a symbolic link is not followed",
  ENOSPC: "make room on the disk, then run the command again",
  EDQUOT: "make room in your quota, then run the command again",
};

/** For work on entries that stand in this journal and in no other: another path would only hide them. */
const adviceForItsEntries: Readonly<Record<string, string>> = {
  EACCES: "give yourself access to it and its folder, then run the command again",
  EPERM: "give yourself access to it and its folder, then run the command again",
  EROFS: "make its file system writable, then run the command again",
};

/** What a failed operation means for the person; told with every failure of an admission. */
export const nothingSent = "Nothing was sent, nothing changed.";

/**
 * A failing file call as a Failure: `usage` where the path is unusable, else `failed`. A Failure passes unchanged, and
 * what is no failing file call (a bug) too.
 * @param action what was being done, e.g. `append to the journal`.
 * @param options.ofItsEntries the work is on entries that stand there already.
 */
export function fileFailure(
  error: unknown,
  action: string,
  options: { path: string; meaning?: string | undefined; ofItsEntries?: boolean },
): unknown {
  if (errorCode(error) === undefined) return error;
  const { path, meaning, ofItsEntries } = options;
  const hints = ofItsEntries ? { ...advice, ...adviceForItsEntries } : advice;
  return describedFailure(error, action, { path, meaning, hints, words: systemWords });
}
