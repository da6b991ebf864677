// Locks the journal's file for a short time, and each entry while a process works on it. A lock is a file that names its owner.
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { loadKernelLock } from "../../disk/kernel-lock.ts";
import { isVisible, describeOwner, identify } from "../../disk/lock-owner.ts";
import { type LockMeans, type OwnedLock, sweepLocks, forceUnlock, tryLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { Busy } from "../store.ts";

/** How long an entry must be idle before a person may take it from its holder. */
const quietMs = 10 * 60_000;

export const ownMeans = (): LockMeans => ({ self: identify(process.pid), kernel: loadKernelLock() });

const nameOf = (id?: string): string => (id === undefined ? "The journal" : `Journal entry ${id}`);

export class JournalLocks {
  readonly #path: string;
  readonly #loadMeans: () => LockMeans;
  #loaded: LockMeans | undefined;

  constructor(path: string, means: () => LockMeans) {
    this.#path = path;
    this.#loadMeans = means;
  }

  get #means(): LockMeans {
    return (this.#loaded ??= this.#loadMeans());
  }

  #pathOf(id?: string): string {
    return `${this.#path}${id === undefined ? "" : `.entry-${id}`}.lock`;
  }

  tryLock(id?: string): OwnedLock | Busy {
    const path = this.#pathOf(id);
    const attempt = tryLock(path, this.#means);
    if (attempt.held) return attempt.held;
    const { self } = this.#means;
    const isSeen = attempt.owner !== undefined && isVisible(attempt.owner, self);
    const by = describeOwner(attempt.owner, self);
    return new Busy(nameOf(id), { kind: "failed", by, entry: isSeen ? undefined : id });
  }

  /**
   * Removes the locks of the journal's file and of the entry.
   * @param touchedAt the time of the entry's last step, in ms since 1970, like `now`
   * @throws Failure `conflict` if an owner runs, or if a lock or the last step is less than ten minutes old
   */
  takeAway(id: string, { now, touchedAt }: { readonly now: number; readonly touchedAt: number }): void {
    for (const one of [undefined, id]) {
      const [path, what] = [this.#pathOf(one), nameOf(one)];
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const passedMs = now - Math.max(stats.mtimeMs, touchedAt);
      // If the clock was set back, `passedMs` is negative: the person's decision then counts.
      if (passedMs >= 0 && passedMs < quietMs)
        throw new Failure("conflict", `${what} was in use until a moment ago.`, {
          meaning: "Nothing changed: a request may be under way.",
          hint: "Wait ten minutes after its last step.",
        });
      if (forceUnlock(path, this.#means) === "lives")
        throw new Failure("conflict", `${what} is in use by a process that runs.`, {
          meaning: "Nothing changed.",
          hint: "Wait for that process, or end it.",
        });
    }
  }

  /** Removes locks of ended processes. The caller holds the file's lock. */
  sweep(): void {
    sweepLocks(this.#path, { held: this.#pathOf(), means: this.#means });
  }

  leased(): Set<string> {
    const start = `${basename(this.#path)}.entry-`;
    const names = readdirSync(dirname(this.#path));
    const locks = names.filter((name) => name.startsWith(start) && name.endsWith(".lock"));
    return new Set(locks.map((name) => name.slice(start.length, -".lock".length)));
  }
}
