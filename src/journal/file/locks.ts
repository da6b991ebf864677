// The journal's locks: a short one for its file, a long one for each entry that a process works on. A living holder is
// waited for, then named.
import { readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { loadKernelLock } from "../../disk/kernel-lock.ts";
import { describeOwner, identify, type LockOwner } from "../../disk/lock-owner.ts";
import { type HeldLock, type LockMeans, pauseMs, sweepLocks, tryLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { nothingSent } from "./safety.ts";

/** A living process holds a lock that is wanted. */
export class Busy {
  readonly what: string;
  readonly owner: LockOwner | undefined;

  constructor(what: string, owner: LockOwner | undefined) {
    this.what = what;
    this.owner = owner;
  }
}

export interface LockParts {
  /** Asked once, when the first lock is wanted: both halves take time to find out. */
  readonly means: () => LockMeans;
  /** How long a living holder is waited for. */
  readonly waitMs: number;
}

export const realLocks: LockParts = {
  means: () => ({ self: identify(process.pid), kernel: loadKernelLock() }),
  waitMs: 10_000,
};

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

  tryFile(): HeldLock | Busy {
    const attempt = tryLock(this.#file, this.#means);
    return attempt.held ?? new Busy("the journal", attempt.owner);
  }

  tryEntry(id: string): HeldLock | Busy {
    const attempt = tryLock(`${this.#path}.drive-${id}.lock`, this.#means);
    return attempt.held ?? new Busy(`journal entry ${id}`, attempt.owner);
  }

  /** Tries again until nobody is in the way. No lock is held over a pause, and other work of this process goes on. */
  async wait<T>(attempt: () => T | Busy): Promise<T> {
    const end = performance.now() + this.#parts.waitMs;
    for (let round = 0; ; round += 1) {
      const came = attempt();
      if (!(came instanceof Busy)) return came;
      const left = end - performance.now();
      if (left <= 0) throw this.#timedOut(came, this.#parts.waitMs);
      await new Promise((resolve) => setTimeout(resolve, Math.min(left, pauseMs(round))));
    }
  }

  /** The file's lock; the thread sleeps until it can be had, for the milliseconds that an append takes. */
  holdFile(options: { readonly meaning?: string; readonly atMostMs?: number } = {}): HeldLock {
    const waitMs = Math.min(this.#parts.waitMs, options.atMostMs ?? Number.POSITIVE_INFINITY);
    const end = performance.now() + waitMs;
    const never = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; ; round += 1) {
      const came = this.tryFile();
      if (!(came instanceof Busy)) return came;
      const left = end - performance.now();
      if (left <= 0) throw this.#timedOut(came, waitMs, options.meaning);
      Atomics.wait(never, 0, 0, Math.min(left, pauseMs(round)));
    }
  }

  #timedOut({ what, owner }: Busy, waitMs: number, meaning = nothingSent): Failure {
    const holder = describeOwner(owner, this.#means.self);
    const seconds = Math.round(waitMs / 100) / 10;
    const name = what.charAt(0).toUpperCase() + what.slice(1);
    return new Failure("failed", `${name} is in use by ${holder}; it was waited for ${seconds} s.`, {
      meaning,
      hint:
        owner === undefined
          ? "run the command again later"
          : `wait for process ${owner.pid}, or end it, then run the command again`,
    });
  }

  /** Removes what dead processes left. The caller holds the file's lock, behind which every admission waits. */
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
