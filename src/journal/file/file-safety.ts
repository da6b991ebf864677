// Owns: what makes the journal's file and folder fit to be trusted: kind, owner and mode, looked at on the open
// descriptor; and the folder's own entries, synced.
// Must not know: records, locks.
import * as fs from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../../errors.ts";
import { errorCode } from "../../disk/error-words.ts";

const writableByOthers = 0o022;
const anyOther = 0o077;

/**
 * Refuses an address as the journal's path: it would become a folder here, and each machine of a fleet would silently
 * have a journal of its own. What follows the scheme may hold a password and is not shown.
 * @throws Failure `usage`
 */
export function refuseAddress(path: string): void {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1];
  if (scheme === undefined) return;
  throw new Failure(
    "usage",
    `INTEG_JOURNAL is an address (${scheme}://…), and this integ keeps its journal in a file.`,
    {
      meaning: "Nothing was sent, nothing changed.",
      hint: "set INTEG_JOURNAL to a file's path, on a volume that outlives the machine",
    },
  );
}

/**
 * Refuses a file that is no plain file, belongs to somebody else or can be written by others. One that others can read
 * is made private where `repair` is set: nobody else can have changed it.
 * @throws Failure `usage` with the command to type.
 */
export function checkFile(fd: number, path: string, options: { repair?: boolean } = {}): void {
  const stat = fs.fstatSync(fd);
  if (!stat.isFile()) {
    throw new Failure("usage", `The journal ${path} is not a plain file.`, {
      hint: "set INTEG_JOURNAL to a file's path",
    });
  }
  const user = process.geteuid?.();
  if (user === undefined) return;
  if (stat.uid !== user) {
    throw new Failure("usage", `The journal ${path} belongs to another user (${stat.uid}).`, {
      hint: `${user === 0 ? "" : "sudo "}chown ${user} ${path}`,
    });
  }
  if (stat.mode & writableByOthers) {
    throw new Failure("usage", `The journal ${path} can be written by others (mode ${octal(stat.mode)}).`, {
      hint: `chmod 600 ${path}`,
    });
  }
  if (options.repair && stat.mode & anyOther) fs.fchmodSync(fd, 0o600);
}

export function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

/** Makes the folder (0700, its entries synced) where it is missing, and refuses one in which anybody may rename files. */
export function prepareFolder(folder: string): void {
  const made = fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (made !== undefined) {
    for (let at = folder; ; at = dirname(at)) {
      syncFolder(dirname(at));
      if (at === made || at === dirname(at)) break;
    }
  }
  if (process.geteuid === undefined) return;
  const { mode } = fs.statSync(folder);
  const sticky = mode & 0o1000;
  if (mode & 0o002 && !sticky) {
    throw new Failure("usage", `Anybody can rename files in the journal's folder ${folder} (mode ${octal(mode)}).`, {
      hint: `chmod 700 ${folder}, or set INTEG_JOURNAL to a file in a folder of its own below it`,
    });
  }
}

/** Folders of some file systems have nothing to sync, and say so. */
const nothingToSync = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/**
 * Makes names in a folder durable. Windows does that by itself and cannot open one.
 * @param options.unlessDenied a folder that may not be opened is left alone.
 */
export function syncFolder(folder: string, options: { unlessDenied?: boolean } = {}): void {
  if (process.platform === "win32") return;
  let fd: number;
  try {
    fd = fs.openSync(folder, fs.constants.O_RDONLY | (fs.constants.O_DIRECTORY ?? 0));
  } catch (error) {
    if (options.unlessDenied && errorCode(error) === "EACCES") return;
    throw error;
  }
  try {
    fs.fsyncSync(fd);
  } catch (error) {
    if (!nothingToSync.has(errorCode(error) ?? "")) throw error;
  } finally {
    fs.closeSync(fd);
  }
}
