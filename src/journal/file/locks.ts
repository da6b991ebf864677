// The journal's locks: a short one for its file, a long one for each entry that a process works on. A running holder is
// waited for, then named.
//
// Each is two: a file beside the journal, which names its owner, and bytes of the journal's own file, which belong to that
// file whatever path leads to it. If the system has no locks on bytes, a journal that has other paths is refused.
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import {
  type HeldLock,
  hasOtherPaths,
  loadKernelLock,
  type LockRange,
  type RangeAttempt,
  tryLockRange,
} from "../../disk/kernel-lock.ts";
import { canBeLookedAt, describeOwner, identify, type LockOwner } from "../../disk/lock-owner.ts";
import { type LockMeans, type OwnedLock, pauseMs, sweepLocks, takeOver, tryLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import { numberOf } from "../lookup.ts";
import type { JournalFile } from "./journal-file.ts";
import { nothingSent } from "./safety.ts";
import type { Entry } from "../entry.ts";
import type { EntryLease } from "../journal.ts";

/** A running process holds a lock that is wanted. */
export class Busy {
  readonly what: string;
  readonly owner: LockOwner | undefined;
  /** It came by another path: the lock beside this one is free. */
  readonly isElsewhere: boolean;

  constructor(what: string, owner: LockOwner | undefined, isElsewhere = false) {
    this.what = what;
    this.owner = owner;
    this.isElsewhere = isElsewhere;
  }
}

/** The lock of an entry. */
export interface EntryLock extends OwnedLock {
  /** To be called once the entry is in the file: there may have been none to lock bytes of. */
  bind(): void;
}

/** The lock of the journal's file. */
export interface FileLock extends HeldLock {
  /** The file that its bytes are locked in, to read and append; none before there is a file, or if the system has no such locks. */
  readonly fd: number | undefined;
}

/** How long nothing may have been done before a person may take an entry away: no request is under way then. */
const quietMs = 10 * 60_000;

/** The bytes that stand for an entry; its file's lock is the one before them all. No journal grows to that size. */
const firstEntry = 2 ** 51;
const fileRange: LockRange = { offset: firstEntry - 1, length: 1 };
const rangeOf = (id: string): LockRange => ({ offset: firstEntry + numberOf(id), length: 1 });

export interface LockParts {
  /** Asked once, when the first lock is wanted: both halves take time to find out. */
  readonly means: () => LockMeans;
  /** How long a running holder is waited for. */
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

  tryFile(): FileLock | Busy {
    return this.#try(this.#file, { range: fileRange, what: "the journal" });
  }

  tryEntry(id: string): EntryLock | Busy {
    return this.#try(`${this.#path}.drive-${id}.lock`, { range: rangeOf(id), what: `journal entry ${id}` });
  }

  #try(
    path: string,
    { range, what }: { readonly range: LockRange; readonly what: string },
  ): (EntryLock & FileLock) | Busy {
    const { held, ...other } = tryLock(path, this.#means);
    if (held === undefined) return new Busy(what, "owner" in other ? other.owner : undefined);
    try {
      let bytes = this.#tryBytes(range);
      if (bytes === "taken") {
        held.release();
        return new Busy(what, undefined, true);
      }
      return {
        fd: typeof bytes === "object" ? bytes.fd : undefined,
        bind: () => {
          if (bytes === "no_file") bytes = this.#tryBytes(range);
        },
        isHeld: () => held.isHeld(),
        release() {
          if (typeof bytes === "object") bytes.release();
          held.release();
        },
      };
    } catch (error) {
      held.release();
      throw error;
    }
  }

  /** @throws Failure `usage` if the file has other paths and the system cannot lock its bytes */
  #tryBytes(range: LockRange): RangeAttempt {
    const attempt = tryLockRange(this.#path, range, this.#means.kernel);
    if (attempt !== "no_locks" || !hasOtherPaths(this.#path)) return attempt;
    throw new Failure("usage", `The journal ${this.#path} has another path too, and cannot be locked here.`, {
      meaning: "Two processes could send the same change. Nothing was sent and nothing changed.",
      hint: "Remove its second name (a hard link), or mount its folder instead of the file.",
    });
  }

  /**
   * Locks the bytes of every entry that no process holds by this path, for as long as the file is replaced: who holds one
   * by another path would continue in a file that no one reads any more.
   * @param leased ids of the entries that are held by this path
   */
  #tryOthers(leased: ReadonlySet<string>): HeldLock | Busy {
    const held: HeldLock[] = [];
    const release = (): void => {
      for (const lock of held) lock.release();
    };
    let from = firstEntry;
    for (const to of [...[...leased].map((id) => rangeOf(id).offset).sort((a, b) => a - b), firstEntry + 2 ** 50]) {
      const lock = to > from ? this.#tryBytes({ offset: from, length: to - from }) : undefined;
      if (lock === "taken") {
        release();
        return new Busy("an entry of the journal", undefined, true);
      }
      if (typeof lock === "object") held.push(lock);
      from = Math.max(from, to + 1);
    }
    return { release };
  }

  /**
   * What is needed to put another file in the journal's place, besides its lock.
   * @throws Failure if other paths would continue leading to the file that is there
   */
  holdOthers(leased: ReadonlySet<string>): HeldLock {
    if (hasOtherPaths(this.#path)) {
      throw new Failure("usage", `The journal ${this.#path} has another path too.`, {
        meaning:
          "Pruning writes a new file, and the other path would still lead to this one. The journal was not changed.",
        hint: "Remove its second name (a hard link), or mount its folder instead of the file.",
      });
    }
    const came = this.#tryOthers(leased);
    if (came instanceof Busy) throw this.#timedOut(came, 0, "The journal was not changed.");
    return came;
  }

  /** Tries again until no one is in the way. No lock is held over a pause, and other work of this process continues. */
  async wait<T>(attempt: () => T | Busy | Promise<T | Busy>): Promise<T> {
    // Asked of no clock before someone is in the way: Node loads ten parts for it.
    let end: number | undefined;
    for (let round = 0; ; round += 1) {
      const came = await attempt();
      if (!(came instanceof Busy)) return came;
      end ??= performance.now() + this.#parts.waitMs;
      const left = end - performance.now();
      if (left <= 0) throw this.#timedOut(came, this.#parts.waitMs);
      await new Promise((resolve) => setTimeout(resolve, Math.min(left, pauseMs(round))));
    }
  }

  /** The file's lock; the thread sleeps until it is free, for the milliseconds that an append takes. */
  holdFile(options: { readonly meaning?: string; readonly atMostMs?: number } = {}): FileLock {
    const waitMs = Math.min(this.#parts.waitMs, options.atMostMs ?? Number.POSITIVE_INFINITY);
    let end: number | undefined;
    const never = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; ; round += 1) {
      const came = this.tryFile();
      if (!(came instanceof Busy)) return came;
      end ??= performance.now() + waitMs;
      const left = end - performance.now();
      if (left <= 0) throw this.#timedOut(came, waitMs, options.meaning);
      Atomics.wait(never, 0, 0, Math.min(left, pauseMs(round)));
    }
  }

  #timedOut({ what, owner, isElsewhere }: Busy, waitMs: number, meaning = nothingSent): Failure {
    const { self } = this.#means;
    const holder = isElsewhere ? "a process that reached it by another path" : describeOwner(owner, self);
    const seconds = Math.round(waitMs / 100) / 10;
    const name = what.charAt(0).toUpperCase() + what.slice(1);
    const message = `${name} is in use by ${holder}; integ waited ${seconds} s.`;
    const isSeen = isElsewhere || (owner !== undefined && canBeLookedAt(owner, self));
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

interface LeaseParts {
  readonly now: () => number;
  /** Puts a record on the disk, or throws and changes nothing. */
  readonly append: (entry: Entry) => Promise<void>;
}

/** @param first as it is, read after its lock was taken */
export function entryLease(first: Entry, lock: HeldLock, { now, append }: LeaseParts): EntryLease {
  let entry = first;
  // A number is used once, even if its record could not be written: something of it may be in the file.
  let { sequence } = first;
  let isHeld = true;
  return {
    get entry() {
      return entry;
    },
    record: async (change) => {
      if (!isHeld) throw new Error(`journal entry ${entry.id} is recorded after its release`);
      sequence += 1;
      const next = { ...entry, ...change, sequence, updated_at: new Date(now()).toISOString() };
      await append(next);
      entry = next;
      return next;
    },
    note: (change) => {
      entry = { ...entry, ...change };
    },
    release: async () => {
      isHeld = false;
      lock.release();
    },
  };
}

/** A piece of work under the file's lock. */
interface Work<T> {
  readonly work: () => T;
  /** Takes the work back whose record could not be synced. */
  readonly undo?: (value: T) => void;
  /** The thread sleeps until the lock is free, with what the failure means if that takes too long; else `Busy` is the result. */
  readonly waits?: { readonly meaning: string };
}

interface Waiting extends Work<unknown> {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What is written in one turn of the event loop, by changes that this process makes at the same time, is written under one lock
 * and synced once. A change alone has its own lock and its own sync, in the same order of calls.
 */
export class SharedWrites {
  readonly #file: JournalFile;
  readonly #locks: JournalLocks;
  #waiting: Waiting[] = [];

  constructor(file: JournalFile, locks: JournalLocks) {
    this.#file = file;
    this.#locks = locks;
  }

  /** Fulfilled once what the work appended is on disk; all of it is done within one call. */
  do<T>(work: Work<T>): Promise<T | Busy> {
    return new Promise<T | Busy>((resolve, reject) => {
      const isFirst = this.#waiting.length === 0;
      // The result of a piece of work goes to its own promise.
      this.#waiting.push({ ...work, resolve, reject } as Waiting);
      if (isFirst) setImmediate(() => this.#doAll(this.#waiting.splice(0)));
    });
  }

  #doAll(waiting: readonly Waiting[]): void {
    const patient = waiting.filter(({ waits }) => waits !== undefined);
    const meaning = patient[0]?.waits?.meaning;
    let lock: FileLock | Busy;
    try {
      lock = meaning === undefined ? this.#locks.tryFile() : this.#locks.holdFile({ meaning });
    } catch (error) {
      const others = patient.length === 0 ? [] : waiting.filter(({ waits }) => waits === undefined);
      for (const one of waiting) if (!others.includes(one)) one.reject(error);
      if (others.length > 0) this.#doAll(others);
      return;
    }
    if (lock instanceof Busy) for (const { resolve } of waiting) resolve(lock);
    else this.#underLock(waiting, lock);
  }

  #underLock(waiting: readonly Waiting[], lock: FileLock): void {
    const done: { readonly one: Waiting; readonly value: unknown; readonly hasAppended: boolean }[] = [];
    try {
      this.#file.locked = lock.fd;
      this.#file.inOneSync((appended) => {
        for (const one of waiting) {
          const before = appended();
          try {
            const value = one.work();
            done.push({ one, value, hasAppended: appended() > before });
          } catch (error) {
            one.reject(error);
          }
        }
      });
      for (const { one, value } of done) one.resolve(value);
    } catch (error) {
      for (const { one, value, hasAppended } of done) {
        if (!hasAppended) one.resolve(value);
        else {
          one.undo?.(value);
          one.reject(error);
        }
      }
    } finally {
      this.#file.locked = undefined;
      lock.release();
    }
  }
}
