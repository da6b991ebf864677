// Which files are the program's own: nothing that a person exports or keeps may replace the journal or a credential.
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";

/** The path with the links in its folder followed; as it stands where that folder is not there. */
function realPath(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

/**
 * True where the path is one of these files, under this name or another, lies in one of these folders, or is named after one:
 * damaged bytes of the journal are kept as `journal.ndjson.damaged-…`.
 */
export function isAmong(own: readonly string[], path: string): boolean {
  const real = realPath(path);
  return own
    .map(realPath)
    .some((mine) => real === mine || [sep, "."].some((mark) => real.startsWith(mine + mark)) || isSameFile(real, mine));
}

/** A hard link, a mount or the other case of a letter gives one file two names. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => {
    try {
      return statSync(path, { bigint: true, throwIfNoEntry: false });
    } catch {
      // What cannot be checked cannot be written to either.
      return undefined;
    }
  });
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
}
