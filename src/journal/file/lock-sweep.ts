// Owns: removing what dead processes left of locks, so that lock files do not pile up.
// Must not know: what is locked. The caller holds the lock that every taking of the swept ones waits for.
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode } from "../../disk/file-error.ts";
import { type LockMeans, tryLock } from "../../disk/lock.ts";
import { isGone } from "../../disk/owner.ts";

const temporary = /\.lock(?:\.take-[\w-]+)?\.new-([0-9]+)-[0-9a-f]{12}$/;
const aside = /\.lock(?:\.take-[\w-]+)?\.dead-[\w-]+$/;
const lock = /\.lock(?:\.take-[\w-]+)?$/;

/**
 * Removes the lock files beside that path whose owners are gone. A temporary file taken from a process that lives after
 * all (in another container) costs that process one more try.
 * @param path what the locks belong to; `options.held` is the lock that the caller has.
 */
export function sweepLocks(path: string, options: { held: string; means: LockMeans }): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (!name.startsWith(`${basename(path)}.`) || file === options.held) continue;
    try {
      sweepFile(file, options.means);
    } catch (error) {
      if (errorCode(error) === undefined) throw error; // what cannot be removed now is looked at again by the next
    }
  }
}

function sweepFile(file: string, means: LockMeans): void {
  const pid = temporary.exec(file)?.[1];
  if (pid !== undefined ? isGone(Number(pid)) : aside.test(file)) rmSync(file, { force: true });
  else if (pid === undefined && lock.test(file)) {
    const attempt = tryLock(file, means);
    attempt.held?.release();
  }
}
