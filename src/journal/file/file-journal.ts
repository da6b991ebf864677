// The journal in a file. Each change of it is made under the file's lock, each entry changed under a lock of its own.
import { randomInt, randomUUID } from "node:crypto";
import type { HeldLock } from "../../disk/kernel-lock.ts";
import type { OwnedLock } from "../../disk/process-lock.ts";
import { errorCode } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import type { Actor } from "../actor.ts";
import * as admission from "../admission.ts";
import type { Entry } from "../entry.ts";
import { entryMeant, newEntryId, type EntryFilter, fits, keyName } from "../lookup.ts";
import { type Fold, candidates } from "../fold.ts";
import { type Moved, type Step, recordContent } from "../record.ts";
import type {
  Admission,
  AdmissionChoice,
  Condition,
  EntryLease,
  Finding,
  Holder,
  Intent,
  Journal,
  Pause,
  Pruned,
  PruneOptions,
  Slowly,
} from "../journal.ts";
import type { Coming, EntryRecords, Merged, MergeOptions } from "../merge.ts";
import { entryLease, Busy, JournalLocks, type LockParts, realLocks, SharedWrites } from "./locks.ts";
import { JournalFile } from "./journal-file.ts";
import type { Reading } from "./reading.ts";
import type { Summarize } from "./scan.ts";
import { assertCurrent, isOfItsEntries, journalFailure, nothingSent, takenAway } from "./safety.ts";

export interface FileJournalParts {
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly actor: Actor;
  readonly locks?: LockParts;
  readonly summarize?: Summarize;
  readonly slowly?: Slowly | undefined;
}

function* selected(fold: Fold, filter: EntryFilter): Iterable<Entry> {
  let left = filter.limit ?? Number.POSITIVE_INFINITY;
  for (const entry of candidates(fold, filter)) {
    if (left <= 0) return;
    if (!fits(entry, filter, () => fold.history(entry.id))) continue;
    left -= 1;
    yield entry;
  }
}

function releaseReserved(admission: Admission | Busy): void {
  if (!(admission instanceof Busy)) void admission.lease.release();
}

/** See `Journal`. */
export class FileJournal implements Journal {
  readonly path: string;
  readonly isShared = false;
  readonly #now: () => number;
  readonly #actor: Actor;
  readonly #file: JournalFile;
  readonly #locks: JournalLocks;
  readonly #writes: SharedWrites;
  #swept = false;
  /** Locks of the entries that this process works on. */
  readonly #held = new Set<OwnedLock>();

  constructor(path: string, { now, actor, locks = realLocks, ...parts }: FileJournalParts) {
    this.path = path;
    this.#now = now;
    this.#actor = actor;
    this.#file = new JournalFile(path, { now, ...parts });
    this.#locks = new JournalLocks(path, locks);
    this.#writes = new SharedWrites(this.#file, this.#locks);
  }

  async entries(): Promise<Entry[]> {
    return [...(await this.#read()).entries()];
  }

  async unsettled(): Promise<Entry[]> {
    return (await this.#read()).unsettled();
  }

  async select(filter: EntryFilter): Promise<Entry[]> {
    return [...selected(await this.#read(), filter)];
  }

  async *each(filter: EntryFilter): AsyncIterable<Entry> {
    yield* selected(await this.#read(), filter);
  }

  async count(): Promise<number> {
    return (await this.#read()).count();
  }

  async history(id: string): Promise<Step[]> {
    return (await this.#read()).history(id);
  }

  async find(idOrPrefix: string): Promise<Entry> {
    return entryMeant(idOrPrefix, await this.#read());
  }

  async admit(intent: Intent, options: AdmissionChoice = {}): Promise<Admission> {
    try {
      await this.#file.prepare();
      const work = (): Admission | Busy => this.#admitNow(intent, options);
      return await this.#locks.wait(() => this.#writes.do({ work, undo: releaseReserved }));
    } catch (error) {
      throw this.#failure(error, "write to the journal", nothingSent);
    }
  }

  async resume(intent: Intent, options: AdmissionChoice = {}): Promise<Admission | undefined> {
    if (await this.#isEmpty()) return undefined;
    try {
      const attempt = (): Admission | Busy | undefined => this.#resumeNow(this.#file.read().fold, { intent, options });
      return await this.#locks.wait(() => this.#underLock(attempt));
    } catch (error) {
      throw this.#failure(error, "lock the journal", nothingSent);
    }
  }

  async #isEmpty(): Promise<boolean> {
    try {
      return (await this.#file.readFirst()).size === 0;
    } catch (error) {
      throw this.#failure(error, "read the journal", nothingSent);
    }
  }

  /** Does the work while this process alone may change the file. */
  #underLock<T>(work: () => T | Busy): T | Busy {
    const lock = this.#locks.tryFile();
    if (lock instanceof Busy) return lock;
    try {
      return work();
    } finally {
      lock.release();
    }
  }

  #admitNow(intent: Intent, options: AdmissionChoice): Admission | Busy {
    if (!this.#swept) this.#locks.sweep();
    this.#swept = true;
    const { fold } = this.#file.read();
    const resumed = this.#resumeNow(fold, { intent, options });
    if (resumed) return resumed;
    const key = admission.keyOf(intent, options);
    if (key === undefined && options.fresh !== true) {
      admission.assertNoneLost(admission.entriesOfRequest(fold.unsettled(), intent, "machine"));
      admission.assertSameAccount(fold.unsettled(), intent, "machine");
    }
    return this.#admitNew(intent, { newest: fold.newest(), key });
  }

  /** The entry of the key given by hand, whose running holder is waited for; else the first unfinished one that is free. */
  #resumeNow(
    fold: Fold,
    { intent, options }: { readonly intent: Intent; readonly options: AdmissionChoice },
  ): Admission | Busy | undefined {
    assertCurrent(fold, this.path);
    this.#file.assertHere();
    const key = admission.keyOf(intent, options);
    if (key !== undefined) {
      const holders = [...fold.named(keyName(intent.base_url, key))];
      const holder = admission.entryOfKey(holders, intent, { key, scope: "machine" });
      return holder && this.#take("same_key", holder);
    }
    if (options.fresh === true) return undefined;
    for (const entry of admission.entriesOfRequest(fold.unsettled(), intent, "machine").filter(admission.isResumable)) {
      const taken = this.#take("resumed", admission.changeable(entry));
      if (!(taken instanceof Busy)) return taken;
    }
    return undefined;
  }

  #take(kind: Admission["kind"], entry: Entry): Admission | Busy {
    const lock = this.#locks.tryEntry(entry.id);
    return lock instanceof Busy ? lock : { kind, lease: this.#lease(entry, lock) };
  }

  #admitNew(intent: Intent, options: { newest: string | undefined; key: string | undefined }): Admission | Busy {
    const now = this.#now();
    const id = newEntryId(now, { random: randomInt(2 ** 20), newest: options.newest });
    const key = intent.idempotent ? (options.key ?? randomUUID()) : null;
    const entry = admission.newEntry(intent, { id, key, at: new Date(now).toISOString() });
    const lock = this.#locks.tryEntry(id);
    if (lock instanceof Busy) return lock;
    try {
      this.#file.append(() => [recordContent(entry, { by: this.#actor })]);
      lock.bind();
    } catch (error) {
      lock.release();
      throw error;
    }
    return { kind: "new", lease: this.#lease(entry, lock) };
  }

  async lease(id: string): Promise<EntryLease> {
    try {
      return await this.#locks.wait(() => this.#leaseNow(id));
    } catch (error) {
      throw this.#failure(error, "lock an entry of the journal", nothingSent);
    }
  }

  async tryLease(id: string): Promise<EntryLease | null> {
    try {
      const lease = this.#leaseNow(id);
      return lease instanceof Busy ? null : lease;
    } catch (error) {
      throw this.#failure(error, "lock an entry of the journal", nothingSent);
    }
  }

  #leaseNow(typed: string): EntryLease | Busy {
    const { id } = admission.changeable(entryMeant(typed, this.#file.read().fold));
    this.#file.assertHere();
    const lock = this.#locks.tryEntry(id);
    if (lock instanceof Busy) return lock;
    try {
      // Again: its last holder may have changed it.
      return this.#lease(admission.changeable(entryMeant(id, this.#file.read().fold)), lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  #lease(first: Entry, lock: OwnedLock): EntryLease {
    this.#held.add(lock);
    const release = (): void => void (this.#held.delete(lock) && lock.release());
    return entryLease(first, { release }, { now: this.#now, append: (entry) => this.#append(entry, lock) });
  }

  async #append(entry: Entry, ownLock: OwnedLock): Promise<void> {
    const meaning = "The journal still shows the entry as it was before this step.";
    const work = (): void => {
      if (!ownLock.isHeld()) throw takenAway(entry.id, meaning);
      this.#file.append((fold) => [recordContent(entry, { by: this.#actor, prev: fold.newestHash(entry.id) })]);
    };
    try {
      await this.#writes.do({ work, waits: { meaning } });
    } catch (error) {
      throw this.#failure(error, "update the journal", meaning);
    }
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    return new Map();
  }

  async takeAway(id: string): Promise<void> {
    const touchedAt = Date.parse((await this.find(id)).updated_at);
    try {
      this.#locks.takeAway(id, { now: this.#now(), touchedAt });
    } catch (error) {
      throw this.#failure(error, "lock an entry of the journal", "Nothing changed.");
    }
  }

  async extendLeases(): Promise<void> {}

  holdsLeases(): boolean {
    return [...this.#held].every((lock) => lock.isHeld());
  }

  /** A reader leaves an index too: else each one would read a long journal as a whole until the next change. No one is waited for. */
  close(): void {
    if (!this.#file.lacksIndex) return;
    try {
      this.#underLock(() => this.#file.keepIndex());
    } catch (error) {
      if (errorCode(error) === undefined && !(error instanceof Failure)) throw error;
    }
  }

  async *records(): AsyncIterable<EntryRecords> {
    yield* (await import("./transfer.ts")).recordsOf(await this.#read());
  }

  async merge(entries: Coming, options: MergeOptions = {}): Promise<Merged> {
    const { gathered, mergeInto } = await import("./transfer.ts");
    const coming = await gathered(entries);
    return this.#transfer((parts) => mergeInto(parts, coming, options));
  }

  async movedTo(): Promise<Moved | undefined> {
    return this.#file.movedTo();
  }

  async markMoved(moved: Moved | undefined): Promise<void> {
    if (moved === undefined && (await this.#isEmpty())) return;
    const { markMoved } = await import("./transfer.ts");
    await this.#transfer((parts) => markMoved(parts, moved));
  }

  async #transfer<T>(work: (parts: { file: JournalFile; locks: JournalLocks }) => T): Promise<T> {
    try {
      await this.#file.prepare();
      const lock = this.#locks.holdFile();
      try {
        return work({ file: this.#file, locks: this.#locks });
      } finally {
        lock.release();
      }
    } catch (error) {
      throw this.#failure(error, "update the journal", "The journal is as it was.");
    }
  }

  async verify(pause?: Pause): Promise<Finding[]> {
    const { Verification } = await import("./verify.ts");
    try {
      if (this.#file.size() === 0) return new Verification(this.path).findings(this.#file.read());
      const found: Finding[] = [];
      let lock: HeldLock | undefined;
      try {
        lock = this.#locks.holdFile({ atMostMs: 1000 });
      } catch (error) {
        found.push(this.#unlocked(error));
      }
      try {
        const verification = new Verification(this.path);
        const reading = await this.#file.watchWhole(verification, pause);
        if (lock) found.push(...this.#setAside(reading));
        return [...verification.findings(reading), ...found];
      } finally {
        lock?.release();
      }
    } catch (error) {
      throw this.#failure(error, "read the journal");
    }
  }

  #setAside(reading: Reading): Finding[] {
    try {
      this.#file.setAside(reading);
      return [];
    } catch (error) {
      return [this.#unlocked(error)];
    }
  }

  #unlocked(error: unknown): Finding {
    const failure = this.#failure(error, "lock the journal");
    if (!(failure instanceof Failure)) throw failure;
    return { severity: "warning", where: this.path, message: `it was read without its lock: ${failure.message}` };
  }

  async condition(): Promise<Condition> {
    try {
      const { fold, damage, isEmptied } = await this.#file.readFirst();
      // Another process that has just made the file writes its first record under the lock.
      const isStill = (): boolean | Busy => this.#underLock(() => this.#file.read().isEmptied);
      const isLeft = isEmptied && (await this.#locks.wait(isStill).catch(() => true));
      return { damagedPlaces: fold.damage.length + damage.length, isEmptied: isLeft };
    } catch (error) {
      throw this.#failure(error, "read the journal");
    }
  }

  async prune(olderThanMs: number, options: PruneOptions = {}): Promise<Pruned> {
    try {
      if (this.#file.size() === 0) return { removed: 0, live: [], keptLive: [] };
      const { pruneFile } = await import("./pruning.ts");
      const before = new Date(this.#now() - olderThanMs).toISOString();
      const lock = this.#locks.holdFile();
      try {
        return pruneFile({ file: this.#file, locks: this.#locks, before }, options);
      } finally {
        lock.release();
      }
    } catch (error) {
      throw this.#failure(error, "prune the journal", "The journal was not changed.");
    }
  }

  async #read(): Promise<Fold> {
    try {
      return (await this.#file.readFirst()).fold;
    } catch (error) {
      throw this.#failure(error, "read the journal");
    }
  }

  #failure(error: unknown, action: string, meaning?: string): unknown {
    return journalFailure(error, action, { path: this.path, meaning, ofItsEntries: isOfItsEntries(action) });
  }
}
