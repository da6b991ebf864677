// Reads only regular files as text: reading a pipe or a device may never end.
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode, systemWords } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";

export type ReadText =
  | { readonly text: string }
  | { readonly why: string; readonly isMissing: boolean; readonly isText?: false };

/** `longest` is in bytes. */
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

/** @throws Failure `usage` if the folder of the file `--out` does not exist */
export function assertFolder(path: string, typed: string): void {
  const folder = dirname(typed);
  if (!existsSync(dirname(path)))
    throw new Failure("usage", `--out: the folder ${folder} does not exist.`, {
      nextCommand: shell`mkdir -p ${folder}`,
    });
}
