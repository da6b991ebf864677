// Owns: the journal in a file: admission under one key, who drives an entry, its steps, each under the file's locks.
// Must not know: the API, a secret, how often to try (changes/). design: journal.md.
import { randomInt, randomUUID } from "node:crypto";
import { Failure } from "../../errors.ts";
import * as admission from "../admission.ts";
import type { Intent } from "../admission.ts";
import { type Admission, type EntryLease, leaseOf } from "../lease.ts";
import type { Entry } from "../entry.ts";
import { newEntryId } from "../entry-id.ts";
import { fileFailure, nothingSent } from "./faults.ts";
import { JournalFile } from "./file.ts";
import type { Fold } from "../fold.ts";
import { JournalLocks } from "./journal-locks.ts";
import type { HeldLock } from "../../disk/process-lock.ts";
import { findEntry } from "../lookup.ts";
import { prunable } from "../prune.ts";
import { entryLine } from "./record.ts";
import { type Finding, findings } from "./verify.ts";
import type { AdmissionChoice, Condition, Journal, JournalOptions } from "../journal.ts";
import type { Look } from "./waiting.ts";
import { assertCurrent } from "./whose-file.ts";

/** A key means something only where the contract has one. */
function keyOf(intent: Intent, options: AdmissionChoice): string | undefined {
  return intent.idempotent ? options.key : undefined;
}

/** See `Journal`. Nothing on the disk is touched until something is asked of it. */
/** What is done to entries that stand in this journal: another journal would not have them. */
const ofItsEntries: ReadonlySet<string> = new Set([
  "lock an entry of the journal",
  "update the journal",
  "prune the journal",
]);

export class FileJournal implements Journal {
  readonly path: string;
  readonly #file: JournalFile;
  readonly #options: Required<JournalOptions>;
  readonly #locks: JournalLocks;
  #swept = false;

  constructor(options: JournalOptions) {
    this.#options = {
      ...options,
      random: options.random ?? ((bound) => randomInt(bound)),
      pid: options.pid ?? process.pid,
      nativeLocks: options.nativeLocks ?? true,
      waitMs: options.waitMs ?? 10_000,
    };
    this.#locks = new JournalLocks(this.#options);
    this.path = options.path;
    this.#file = new JournalFile(options.path, options.now);
  }

  async entries(): Promise<Entry[]> {
    return [...this.#read().entries()];
  }

  async unsettled(): Promise<Entry[]> {
    return this.#read().unsettled();
  }

  async find(idOrPrefix: string): Promise<Entry> {
    return this.#findNow(idOrPrefix);
  }

  #findNow(idOrPrefix: string): Entry {
    return findEntry(this.#read().entries(), idOrPrefix);
  }

  async admit(intent: Intent, options: AdmissionChoice = {}): Promise<Admission> {
    try {
      this.#file.prepareFolder();
      return await this.#locks.waitUntil(() => this.#locks.underLock(() => this.#admitNow(intent, options)));
    } catch (error) {
      throw this.#told(error, "write to the journal", nothingSent);
    }
  }

  async resume(intent: Intent, options: AdmissionChoice = {}): Promise<Admission | undefined> {
    if (this.#isEmpty()) return undefined;
    try {
      const look = (): Look<Admission | undefined> =>
        this.#takeUnfinished(this.#file.read().fold, intent, options) ?? { done: true, value: undefined };
      return await this.#locks.waitUntil(() => this.#locks.underLock(look));
    } catch (error) {
      throw this.#told(error, "lock the journal", nothingSent);
    }
  }

  #isEmpty(): boolean {
    try {
      return this.#file.read().size === 0;
    } catch (error) {
      throw this.#told(error, "read the journal", nothingSent);
    }
  }

  /** One look at the journal, which nobody else changes meanwhile. */
  #admitNow(intent: Intent, options: AdmissionChoice): Look<Admission> {
    if (!this.#swept) this.#locks.sweep();
    this.#swept = true;
    const { fold } = this.#file.read();
    const unfinished = this.#takeUnfinished(fold, intent, options);
    if (unfinished) return unfinished;
    const key = keyOf(intent, options);
    if (key === undefined && options.fresh !== true)
      admission.assertNoneLost(admission.twinsOf(fold.unsettled(), intent));
    return this.#admitNew(intent, { newest: fold.newest(), key });
  }

  /** The entry of the key given by hand, for which a living driver is waited; else the first twin that nobody drives. */
  #takeUnfinished(fold: Fold, ...[intent, options]: [Intent, AdmissionChoice]): Look<Admission> | undefined {
    assertCurrent(fold, this.path);
    const key = keyOf(intent, options);
    if (key !== undefined) {
      const holder = admission.entryOfKey(fold.entries(), intent, key);
      return holder && this.#take("same_key", holder);
    }
    if (options.fresh === true) return undefined;
    const twins = admission.twinsOf(fold.unsettled(), intent).filter(admission.isResumable);
    for (const twin of twins) {
      const taken = this.#take("resumed", admission.changeable(twin));
      if (taken.done) return taken;
    }
    return undefined;
  }

  #admitNew(intent: Intent, options: { newest: string | undefined; key: string | undefined }): Look<Admission> {
    const now = this.#options.now();
    const id = newEntryId(now, { random: this.#options.random(2 ** 20), newest: options.newest });
    const key = intent.idempotent ? (options.key ?? randomUUID()) : null;
    const entry = admission.newEntry(intent, { id, key, at: new Date(now).toISOString() });
    const taken = this.#locks.tryEntry(id);
    if (!taken.done) return taken;
    try {
      this.#file.append(entryLine(entry));
    } catch (error) {
      taken.value.release();
      throw error;
    }
    return { done: true, value: { kind: "new", drive: this.#leaseOf(entry, taken.value) } };
  }

  #take(kind: "resumed" | "same_key", entry: Entry): Look<Admission> {
    const taken = this.#locks.tryEntry(entry.id);
    return taken.done ? { done: true, value: { kind, drive: this.#leaseOf(entry, taken.value) } } : taken;
  }

  async drive(id: string): Promise<EntryLease> {
    try {
      return await this.#locks.waitUntil(() => this.#driveNow(id));
    } catch (error) {
      throw this.#told(error, "lock an entry of the journal", nothingSent);
    }
  }

  async tryDrive(id: string): Promise<EntryLease | null> {
    try {
      const look = this.#driveNow(id);
      return look.done ? look.value : null;
    } catch (error) {
      throw this.#told(error, "lock an entry of the journal", nothingSent);
    }
  }

  #driveNow(typed: string): Look<EntryLease> {
    const { id } = admission.changeable(this.#findNow(typed));
    const taken = this.#locks.tryEntry(id);
    if (!taken.done) return taken;
    try {
      const entry = admission.changeable(this.#findNow(id)); // again: its last driver may have moved it on
      return { done: true, value: this.#leaseOf(entry, taken.value) };
    } catch (error) {
      taken.value.release();
      throw error;
    }
  }

  #leaseOf(entry: Entry, lock: HeldLock): EntryLease {
    return leaseOf(entry, { lock, now: this.#options.now, append: (next) => this.#append(entryLine(next)) });
  }

  #append(line: string): void {
    const meaning = "The journal still shows the entry as it was before this step.";
    try {
      this.#locks.wait(() => this.#file.append(line), { meaning });
    } catch (error) {
      throw this.#told(error, "update the journal", meaning);
    }
  }

  async verify(): Promise<Finding[]> {
    try {
      let reading = this.#file.read();
      if (reading.size === 0) return findings(this.path, reading);
      const found: Finding[] = [];
      try {
        this.#locks.wait(() => this.#file.setAside((reading = this.#file.read())), { atMostMs: 1000 });
      } catch (error) {
        const told = this.#told(error, "lock the journal");
        if (!(told instanceof Failure)) throw told;
        found.push({ severity: "warning", where: this.path, message: `it was read without its lock: ${told.message}` });
      }
      return [...findings(this.path, reading), ...found];
    } catch (error) {
      throw this.#told(error, "read the journal");
    }
  }

  async condition(): Promise<Condition> {
    try {
      const { fold, damage, isEmptied } = this.#file.read();
      return { damagedPlaces: fold.damage.length + damage.length, isEmptied };
    } catch (error) {
      throw this.#told(error, "read the journal");
    }
  }

  async prune(olderThanMs: number): Promise<{ removed: number }> {
    try {
      if (this.#file.read().size === 0) return { removed: 0 };
      return this.#locks.wait(() => this.#pruneNow(olderThanMs));
    } catch (error) {
      throw this.#told(error, "prune the journal", "The journal is as it was.");
    }
  }

  #pruneNow(olderThanMs: number): { removed: number } {
    this.#locks.sweep();
    const reading = this.#file.read();
    assertCurrent(reading.fold, this.path);
    const before = new Date(this.#options.now() - olderThanMs).toISOString();
    const going = prunable(reading.fold.entries(), { before, driven: this.#locks.driven() });
    const isWhole = reading.fold.damage.length === 0 && reading.damage.length === 0;
    if (going.size > 0 || !isWhole) this.#file.replace(reading, going);
    return { removed: going.size };
  }

  #read(): Fold {
    try {
      return this.#file.read().fold;
    } catch (error) {
      throw this.#told(error, "read the journal");
    }
  }

  #told(error: unknown, action: string, meaning?: string): unknown {
    return fileFailure(error, action, { path: this.path, meaning, ofItsEntries: ofItsEntries.has(action) });
  }
}
