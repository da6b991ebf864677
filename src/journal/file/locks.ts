// The journal's locks: a short one for its file, a long one for each entry that a process works on. Each is a file beside the
// journal that names its owner. A running holder is waited for, then named.
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { loadKernelLock } from "../../disk/kernel-lock.ts";
import { canBeLookedAt, describeOwner, identify, type LockOwner } from "../../disk/lock-owner.ts";
import { type LockMeans, type OwnedLock, sweepLocks, takeOver, tryLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import { nothingSent } from "./safety.ts";
import { Busy } from "../store.ts";

/** How long nothing may have been done before a person may take an entry away: no request is under way then. */
const quietMs = 10 * 60_000;

export interface LockParts {
  /** Asked once, when the first lock is wanted: both halves take time to find out. */
  readonly means: () => LockMeans;
}

export const realLocks: LockParts = {
  means: () => ({ self: identify(process.pid), kernel: loadKernelLock() }),
};

interface Wanted {
  readonly what: string;
  readonly owner: LockOwner | undefined;
}

export class JournalLocks {
  readonly #path: string;
  readonly #parts: LockParts;
  #loaded: LockMeans | undefined;

  /** @param path the journal's */
  constructor(path: string, parts: LockParts) {
    this.#path = path;
    this.#parts = parts;
  }

  get #means(): LockMeans {
    this.#loaded ??= this.#parts.means();
    return this.#loaded;
  }

  get #file(): string {
    return `${this.#path}.lock`;
  }

  tryFile(): OwnedLock | Busy {
    return this.#try(this.#file, "the journal");
  }

  tryEntry(id: string): OwnedLock | Busy {
    return this.#try(`${this.#path}.drive-${id}.lock`, `journal entry ${id}`);
  }

  #try(path: string, what: string): OwnedLock | Busy {
    const attempt = tryLock(path, this.#means);
    return (
      attempt.held ?? new Busy((waitedMs, meaning) => this.#timedOut({ what, owner: attempt.owner }, waitedMs, meaning))
    );
  }

  #timedOut({ what, owner }: Wanted, waitMs: number, meaning = nothingSent): Failure {
    const { self } = this.#means;
    const seconds = Math.round(waitMs / 100) / 10;
    const name = what.charAt(0).toUpperCase() + what.slice(1);
    const message = `${name} is in use by ${describeOwner(owner, self)}; integ waited ${seconds} s.`;
    const isSeen = owner !== undefined && canBeLookedAt(owner, self);
    const id = /^journal entry (\S+)$/.exec(what)?.[1];
    if (isSeen || id === undefined)
      return new Failure("failed", message, {
        meaning,
        hint: owner
          ? `Wait for process ${owner.pid}, or end it, then run the command again.`
          : "Run the command again later.",
      });
    return new Failure("failed", message, {
      meaning: `${meaning} Whether that process still runs cannot be seen from here.`,
      hint: "Wait for it, or take the entry from it if it has ended.",
      nextCommand: shell`integ journal release ${id}`,
      entry: id,
    });
  }

  /**
   * Takes an entry's lock, and the file's own, away from a process that cannot be judged from here.
   * @param at.touchedAt when the entry was last changed; both milliseconds since 1970
   * @throws Failure if its process is known to run, or something was done only now
   */
  takeAway(id: string, { now, touchedAt }: { readonly now: number; readonly touchedAt: number }): void {
    for (const [path, what] of [
      [this.#file, "The journal"],
      [`${this.#path}.drive-${id}.lock`, `Journal entry ${id}`],
    ] as const) {
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const passedMs = now - Math.max(stats.mtimeMs, touchedAt);
      // A clock that was set back says nothing: the person has been asked.
      if (passedMs >= 0 && passedMs < quietMs)
        throw new Failure("conflict", `${what} was in use until a moment ago.`, {
          meaning: "Nothing changed: a request may be under way.",
          hint: "Wait ten minutes after its last step.",
        });
      if (takeOver(path, this.#means) === "lives")
        throw new Failure("conflict", `${what} is in use by a process that runs.`, {
          meaning: "Nothing changed.",
          hint: "Wait for that process, or end it.",
        });
    }
  }

  /** Removes what ended processes left. The caller holds the file's lock, behind which every admission waits. */
  sweep(): void {
    sweepLocks(this.#path, { held: this.#file, means: this.#means });
  }

  /** Ids of the entries that a process holds. */
  leased(): Set<string> {
    const start = `${basename(this.#path)}.drive-`;
    const names = readdirSync(dirname(this.#path));
    const locks = names.filter((name) => name.startsWith(start) && name.endsWith(".lock"));
    return new Set(locks.map((name) => name.slice(start.length, -".lock".length)));
  }
}
