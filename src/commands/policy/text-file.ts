// Reads text from regular files only: reading a pipe or device may never end.
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode, systemWords } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";

export type ReadText =
  | { readonly text: string }
  | { readonly why: string; readonly isMissing: boolean; readonly isText?: false };

/** @param longest in bytes */
export function readTextFile(path: string, longest: number): ReadText {
  try {
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stats = fstatSync(fd);
      const why = stats.isDirectory()
        ? "it is a folder"
        : !stats.isFile()
          ? "it is not a regular file"
          : stats.size > longest
            ? `it is too large. Allowed: up to ${longest / 1024 / 1024} MiB`
            : undefined;
      if (why !== undefined) return { why, isMissing: false };
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(fd)) };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (error instanceof TypeError) return { why: "it is not UTF-8", isMissing: false, isText: false };
    const isMissing = errorCode(error) === "ENOENT";
    return { why: isMissing ? "it does not exist" : systemWords(error), isMissing };
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** @throws Failure `usage` for a folder, or for a file that is not in an existing folder */
export function assertFolder(path: string, typed: string, option: "--out" | "--file" = "--out"): void {
  const folder = dirname(typed);
  const hint = `Name another file with ${option} <path>.` as const;
  if (isFolder(path)) throw new Failure("usage", `${option}: ${typed} is a folder.`, { hint });
  if (isFolder(dirname(path))) return;
  if (existsSync(dirname(path))) throw new Failure("usage", `${option}: ${folder} is not a folder.`, { hint });
  throw new Failure("usage", `${option}: the folder ${folder} does not exist.`, {
    nextCommand: shell`mkdir -p ${folder}`,
  });
}
