// Owns: which locks the journal has: a short one for its file, a long one for the process that drives an entry.
// Must not know: records, what is done under a lock.
import { readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { loadKernelLock } from "../../disk/kernel-lock.ts";
import { type HeldLock, type LockMeans, sweepLocks, tryLock } from "../../disk/process-lock.ts";
import { identify } from "../../disk/lock-owner.ts";
import { type Look, waitUntil, waitUntilSync } from "./waiting.ts";

export class JournalLocks {
  readonly #options: {
    readonly path: string;
    readonly pid: number;
    readonly nativeLocks: boolean;
    readonly waitMs: number;
  };
  #loaded: LockMeans | undefined;

  constructor(options: {
    readonly path: string;
    readonly pid: number;
    readonly nativeLocks: boolean;
    readonly waitMs: number;
  }) {
    this.#options = options;
  }

  get #means(): LockMeans {
    const { pid, nativeLocks } = this.#options;
    this.#loaded ??= { self: identify(pid), kernel: nativeLocks ? loadKernelLock() : undefined };
    return this.#loaded;
  }

  get #file(): string {
    return `${this.#options.path}.lock`;
  }

  /** Does the work while this process alone may change the file, or tells who may. No lock is held over a pause. */
  underLock<T>(work: () => Look<T>): Look<T> {
    const attempt = tryLock(this.#file, this.#means);
    if (!attempt.held) return { done: false, owner: attempt.owner, what: "the journal" };
    try {
      return work();
    } finally {
      attempt.held.release();
    }
  }

  /** The lock of the one process that drives an entry. */
  tryEntry(id: string): Look<HeldLock> {
    const attempt = tryLock(`${this.#options.path}.drive-${id}.lock`, this.#means);
    if (attempt.held) return { done: true, value: attempt.held };
    return { done: false, owner: attempt.owner, what: `journal entry ${id}` };
  }

  waitUntil<T>(look: () => Look<T>): Promise<T> {
    return waitUntil(look, { means: this.#means, waitMs: this.#options.waitMs });
  }

  /** Does the work under the file's lock; the thread sleeps until it can be had. */
  wait<T>(work: () => T, options: { readonly meaning?: string; readonly atMostMs?: number } = {}): T {
    const { atMostMs = Number.POSITIVE_INFINITY, ...rest } = options;
    const look = (): Look<T> => this.underLock(() => ({ done: true, value: work() }));
    return waitUntilSync(look, { means: this.#means, waitMs: Math.min(this.#options.waitMs, atMostMs), ...rest });
  }

  /** Removes what dead processes left. The caller holds the file's lock, behind which every admission waits. */
  sweep(): void {
    sweepLocks(this.#options.path, { held: this.#file, means: this.#means });
  }

  /** Ids of the entries that have a driver's lock. */
  driven(): Set<string> {
    const start = `${basename(this.#options.path)}.drive-`;
    const names = readdirSync(dirname(this.#options.path));
    const locks = names.filter((name) => name.startsWith(start) && name.endsWith(".lock"));
    return new Set(locks.map((name) => name.slice(start.length, -".lock".length)));
  }
}
