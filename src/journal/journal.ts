// Implements the parts of the journal that do not depend on its store, such as admissions, leases and the history.
import { randomInt, randomUUID } from "node:crypto";
import { Failure } from "../errors.ts";
import { shell } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import * as admission from "./admission.ts";
import type { Intent } from "./admission.ts";
import { type Entry, type EntryProgress, keyName, type MoveMark } from "./entry.ts";
import type { Keys, SecretDigests } from "./keys.ts";
import { type EntryFilter, findEntry, fits, idPattern, newEntryId, normalizeId } from "./lookup.ts";
import type { ImportedEntries, Merged, MergeOptions } from "./merge.ts";
import { prunable } from "./prunable.ts";
import {
  type EntryRecords,
  type Finding,
  historyHash,
  recordContent,
  recordHash,
  type Step,
  stepIn,
} from "./record.ts";
import type { Condition, EscrowStore, Hold, Holder, LookupResult, NewRecord, Store, Transaction } from "./store.ts";
import { Busy, inTurn, nothingSent, waitUntilFree } from "./store.ts";

export type { Intent } from "./admission.ts";
export type { ImportedEntries, Merged, MergeOptions } from "./merge.ts";
export type { Finding } from "./record.ts";
export type { Condition, EscrowStore, Holder } from "./store.ts";

/** An entry leased to this process: no other process may change it until the lease ends. */
export interface EntryLease {
  readonly entry: Entry;
  /** Set if the last holder did not release the entry: a request of that holder may arrive until this time (ISO 8601 UTC). */
  readonly quietUntil?: string | undefined;
  /** The record is durable once the promise is fulfilled. @throws Failure; `entry` is then unchanged */
  record(change: Partial<EntryProgress>): Promise<Entry>;
  /** True if all records are signed with keys of the journal; an untrusted entry permits no request. */
  isTrusted(): Promise<boolean>;
  /** Changes the entry in memory; the next `record` saves the change. */
  note(change: Partial<EntryProgress>): void;
  /** Safe to repeat; never fails. */
  release(): Promise<void>;
}

export interface Admission {
  /**
   * `resumed`: an unfinished entry of the same request. `same_key`: an entry in any state with the user's idempotency
   * key.
   */
  readonly kind: "new" | "resumed" | "same_key";
  readonly lease: EntryLease;
  readonly alongside?: readonly { readonly entry: string; readonly holder: Holder }[];
}

export interface AdmissionChoice {
  /** Resume no unfinished entry of the same request. */
  readonly fresh?: boolean;
  readonly key?: string;
}

function requestOf(intent: Intent, { key, fresh = false }: AdmissionChoice) {
  return { intent, key: intent.idempotent ? key : undefined, fresh };
}

type AdmissionRequest = ReturnType<typeof requestOf>;

interface JournalOptions {
  readonly now: () => number;
  readonly actor: Actor;
  readonly waitMs?: number | undefined;
  readonly keys: Keys;
}

export class StoredJournal {
  readonly path: string;
  /** True for a team's journal. */
  readonly isShared: boolean;
  readonly digests: SecretDigests;
  readonly escrowDigests: SecretDigests;
  /** Encrypted secrets awaiting delivery. A journal in a file has none, because no other machine could claim them. */
  readonly escrow?: EscrowStore;
  readonly #store: Store;
  readonly #parts: Required<JournalOptions>;
  readonly #holds = new Set<Hold>();
  /** Runs the admissions of this process one by one, because concurrent ones would make each other repeat. */
  readonly #inTurn = inTurn();

  constructor(store: Store, { now, actor, waitMs = 10_000, keys }: JournalOptions) {
    this.path = store.path;
    this.isShared = store.escrow !== undefined;
    this.digests = keys.digests;
    this.escrowDigests = keys.escrowDigests;
    if (store.escrow) this.escrow = store.escrow;
    this.#store = store;
    this.#parts = { now, actor, waitMs, keys };
  }

  entries(): Promise<Entry[]> {
    return this.select({ all: true });
  }

  unsettled(): Promise<Entry[]> {
    return this.select({});
  }

  /** @param trusted leave out entries without a valid HMAC, which decide nothing. @returns the entries, the newest first */
  async select({
    trusted = false,
    ...filter
  }: EntryFilter & { readonly trusted?: boolean | undefined }): Promise<Entry[]> {
    const found: Entry[] = [];
    for await (const entry of this.each(filter)) found.push(entry);
    const unknown = await this.untrusted(trusted ? found.map(({ id }) => id) : []);
    return found.filter(({ id }) => !unknown.has(id));
  }

  async *each(filter: EntryFilter): AsyncIterable<Entry> {
    let left = filter.limit ?? Number.POSITIVE_INFINITY;
    if (left <= 0) return;
    for await (const entry of this.#eachOrFailure(this.#store.select(filter))) {
      if (!fits(entry, filter)) continue;
      yield entry;
      left -= 1;
      if (left <= 0) return;
    }
  }

  async *#eachOrFailure<T>(read: AsyncIterable<T>): AsyncIterable<T> {
    try {
      yield* read;
    } catch (error) {
      throw this.#store.failure(error, "read the journal");
    }
  }

  async count(): Promise<number> {
    let count = 0;
    for await (const _ of this.each({ all: true, archived: true })) count += 1;
    return count;
  }

  /** @param id a complete id. @returns the steps, the oldest first */
  history(id: string): Promise<Step[]> {
    return this.#reading(async () => (await this.recordsOf([id]))[0]!.records.map(({ content }) => stepIn(content)));
  }

  /** Actors of each entry's steps: `user@host`, or the address of a CI run. */
  async actors(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const found = new Map<string, readonly string[]>();
    if (ids.length === 0) return found;
    return this.#reading(async () => {
      for await (const { id, records } of this.#store.records(ids)) {
        const actors = records.flatMap(({ content }) => stepIn(content).actor ?? []);
        found.set(id, [...new Set(actors.map(({ user, host, run }) => run ?? `${user}@${host}`))]);
      }
      return found;
    });
  }

  /** An unknown entry has no records. @param ids complete ids */
  async recordsOf(ids: readonly string[]): Promise<EntryRecords[]> {
    const found = new Map<string, EntryRecords>();
    for await (const entry of this.#eachOrFailure(this.#store.records(ids))) found.set(entry.id, entry);
    return ids.map((id) => found.get(id) ?? { id, records: [] });
  }

  async find(typed: string): Promise<Entry> {
    return findEntry(await this.select({ all: true, start: normalizeId(typed), limit: 1000 }), typed);
  }

  async #idOf(typed: string): Promise<string> {
    const id = normalizeId(typed);
    return idPattern.test(id) ? id : (await this.find(typed)).id;
  }

  #reading<T>(work: () => Promise<T>): Promise<T> {
    return this.#orFailure("read the journal", undefined, work);
  }

  async #orFailure<T>(action: string, meaning: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#store.failure(error, action, meaning);
    }
  }

  /** @throws Failure `usage` before the work if this machine cannot sign records */
  async #signing<T>(action: string, meaning: string, work: () => Promise<T>): Promise<T> {
    this.#parts.keys.assertCanSign();
    return this.#orFailure(action, meaning, work);
  }

  /**
   * Leases the entry that the change resumes, or a new entry, which is then durable.
   * @throws Failure `conflict` if the key belongs to another request or account, or the request is unfinished under
   * another account; `secret_lost` or `undelivered` if an earlier entry of the request needs attention first; `usage` if
   * the journal was moved
   */
  admit(intent: Intent, choice: AdmissionChoice = {}): Promise<Admission> {
    const attempt = (): Promise<Admission | Busy> => this.#inTurn(() => this.#admitNow(requestOf(intent, choice)));
    return this.#signing("write to the journal", nothingSent, () => this.#wait(attempt));
  }

  /** Leases the entry that `admit` would resume, without writing a record. @returns undefined without such an entry */
  resume(intent: Intent, choice: AdmissionChoice = {}): Promise<Admission | undefined> {
    const request = requestOf(intent, choice);
    const attempt = async (): Promise<Admission | Busy | undefined> =>
      this.#resumeNow(await this.#look(request), request);
    return this.#signing("lock the journal", nothingSent, () => this.#wait(attempt));
  }

  #look({ intent, key }: AdmissionRequest): Promise<LookupResult> {
    return this.#store.look(intent, keyName({ base_url: intent.base_url, idempotency_key: key ?? null }));
  }

  #wait<T>(attempt: () => Promise<T | Busy>): Promise<T> {
    return waitUntilFree(attempt, { waitMs: this.#parts.waitMs });
  }

  async #admitNow(request: AdmissionRequest): Promise<Admission | Busy> {
    const { intent, key, fresh } = request;
    const lookup = await this.#look(request);
    const resumed = await this.#resumeNow(lookup, request);
    if (resumed) return resumed;
    const unfinished = lookup.unfinished.map(({ entry }) => entry);
    const same = admission.entriesOfRequest(unfinished, intent, this.isShared);
    if (key === undefined && !fresh) {
      admission.assertNoSecretLost(same);
      admission.assertSameAccount(unfinished, intent, this.isShared);
    }
    const hold = await this.#insert(intent, lookup.newest, key);
    // Another process inserted an entry first.
    if (hold === undefined) return this.#admitNow(request);
    const ids = new Set(same.map(({ id }) => id));
    const alongside = lookup.unfinished.flatMap(({ entry, holder }) =>
      holder !== undefined && ids.has(entry.id) ? [{ entry: entry.id, holder }] : [],
    );
    return { kind: "new", lease: this.#lease(hold, { isNew: true }), alongside };
  }

  /**
   * Resumes the entry with the user's key. Without a key, resumes the oldest unfinished entry of the request that no
   * other process holds, except one whose secret is lost or kept.
   */
  async #resumeNow(lookup: LookupResult, request: AdmissionRequest): Promise<Admission | Busy | undefined> {
    const { intent, key, fresh } = request;
    if (key !== undefined) {
      const existing = admission.entryOfKey(lookup.ofKey, intent, { key, isShared: this.isShared });
      const taken = existing && (await this.#store.take(existing.id));
      return taken instanceof Busy || taken === undefined ? taken : { kind: "same_key", lease: this.#lease(taken) };
    }
    if (fresh) return undefined;
    const unfinished = lookup.unfinished.map(({ entry }) => entry);
    for (const entry of admission.entriesOfRequest(unfinished, intent, this.isShared)) {
      if (!admission.isResumable(entry)) continue;
      const taken = await this.#store.take(entry.id);
      if (taken instanceof Busy) continue;
      if (admission.isResumable(taken.entry)) return { kind: "resumed", lease: this.#lease(taken) };
      // Its last holder changed the entry's state after the lookup.
      await taken.release();
      return this.#resumeNow(await this.#look(request), request);
    }
    return undefined;
  }

  #insert(intent: Intent, newest: string, typed: string | undefined): Promise<Hold | undefined> {
    const now = this.#parts.now();
    const id = newEntryId(now, { random: randomInt(2 ** 20), newest });
    const key = intent.idempotent ? (typed ?? randomUUID()) : null;
    const entry = admission.newEntry(intent, { id, key, at: new Date(now).toISOString() });
    return this.#store.insert(this.#recordOf(entry, {}), newest);
  }

  #recordOf(entry: Entry, about: { readonly prev?: string; readonly before?: Entry }): NewRecord {
    const content = recordContent(entry, { by: this.#parts.actor, ...about });
    return { entry, content, mac: this.#parts.keys.sign(content) };
  }

  /** Waits for a running holder up to the time limit. */
  lease(typed: string): Promise<EntryLease> {
    return this.#signing("lock an entry of the journal", nothingSent, async () => {
      const id = await this.#idOf(typed);
      return this.#lease(await this.#wait(() => this.#store.take(id)));
    });
  }

  tryLease(typed: string): Promise<EntryLease | null> {
    return this.#signing("lock an entry of the journal", nothingSent, async () => {
      const hold = await this.#store.take(await this.#idOf(typed));
      return hold instanceof Busy ? null : this.#lease(hold);
    });
  }

  #lease(hold: Hold, { isNew = false } = {}): EntryLease {
    this.#holds.add(hold);
    let { entry, content } = hold;
    // A failed append may have left part of a record, so the number of that record is not used again.
    let { sequence } = entry;
    let isReleased = false;
    let trusted = isNew ? Promise.resolve(true) : undefined;
    return {
      get entry() {
        return entry;
      },
      get quietUntil() {
        return hold.quietUntil;
      },
      record: async (change: Partial<EntryProgress>) => {
        if (isReleased) throw new Error(`journal entry ${entry.id} is recorded after its release`);
        // The clock of the previous step's machine may be ahead, and a step must be later than the previous step.
        const at = Math.max(this.#parts.now(), Date.parse(entry.updated_at) + 1);
        sequence += 1;
        const next = { ...entry, ...change, sequence, updated_at: new Date(at).toISOString() };
        const record = this.#recordOf(next, { prev: recordHash(content), before: entry });
        const meaning = "The journal still shows the entry as it was before this step.";
        await this.#orFailure("update the journal", meaning, () => hold.append(record));
        ({ entry, content } = record);
        return entry;
      },
      // Computed once, because only the holder adds records.
      isTrusted: () =>
        (trusted ??= this.recordsOf([entry.id]).then(
          ([own]) => own !== undefined && this.isSigned(own) && own.records.at(-1)?.content === content,
        )),
      note: (change) => {
        entry = { ...entry, ...change };
      },
      release: async () => {
        isReleased = true;
        this.#holds.delete(hold);
        await hold.release();
      },
    };
  }

  holders(): Promise<ReadonlyMap<string, Holder>> {
    return this.#reading(() => this.#store.holders());
  }

  /**
   * Takes an entry from the holder that the user saw. That holder can record no more steps.
   * @throws Failure `conflict` if the holder has changed or, in a file, if the holder runs or recorded a step recently
   */
  async takeAway(id: string, seen: Holder | undefined): Promise<void> {
    const entry = await this.find(id);
    await this.#orFailure("lock an entry of the journal", "Nothing changed.", () => this.#store.takeAway(entry, seen));
  }

  /** Makes this process's leases outlast one request. @throws Failure if a lease is lost: nothing may be sent */
  async extendLeases(): Promise<void> {
    for (const hold of this.#holds) await hold.extend();
  }

  holdsLeases(): boolean {
    return [...this.#holds].every((hold) => hold.isHeld());
  }

  records(): AsyncIterable<EntryRecords> {
    return this.#eachOrFailure(this.#store.records());
  }

  /** @throws Failure `conflict` for an untrusted entry that differs from what a person saw */
  async *recordsAsSeen(seen: readonly EntryRecords[]): AsyncIterable<EntryRecords> {
    const before = new Map(seen.map((entry) => [entry.id, entry]));
    for await (const entry of this.records()) {
      if (!this.isSigned(entry)) assertUnchanged(entry, before.get(entry.id));
      yield entry;
    }
  }

  /**
   * Imports all entries or none.
   * @throws Failure `conflict` if an entry contradicts this journal or is in use; `usage` for invalid records, or if the
   * journal was moved
   */
  async merge(imported: ImportedEntries, options: MergeOptions = {}): Promise<Merged> {
    const { mergeInto } = await import("./merge.ts");
    const parts = { store: this.#store, keys: this.#parts.keys };
    return this.#signing("update the journal", "Nothing was imported.", () => mergeInto(parts, imported, options));
  }

  /** `undefined` removes the mark. A new mark fails if an entry is leased, or if an existing mark names another journal. */
  async markMoved(moved: MoveMark | undefined): Promise<void> {
    const { markMoved } = await import("./merge.ts");
    return this.#orFailure("update the journal", "The journal is as it was.", () => markMoved(this.#store, moved));
  }

  async verify(): Promise<Finding[]> {
    const { verifyRecords } = await import("./verify.ts");
    return this.#reading(async () => [
      ...(await this.#store.verify()),
      ...(await verifyRecords(this.#store, this.#parts.keys)),
    ]);
  }

  /** @returns ids of entries that were edited or lack a valid HMAC; all ids if this machine has no key */
  async untrusted(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    if (ids.length === 0) return found;
    return this.#reading(async () => {
      for await (const entry of this.#store.records(ids)) if (!this.isSigned(entry)) found.add(entry.id);
      return found;
    });
  }

  isSigned({ records, mismatch }: EntryRecords): boolean {
    return mismatch === undefined && records.every((record) => this.#parts.keys.judge(record) === "valid");
  }

  /** Signs the records that a person saw. @throws Failure `conflict` if an entry has changed, `usage` without a key */
  trust(seen: readonly EntryRecords[]): Promise<void> {
    const work = async (tx: Transaction): Promise<void> => {
      const now = new Map((await tx.records(seen.map(({ id }) => id))).map((entry) => [entry.id, entry]));
      for (const entry of seen) {
        assertUnchanged(entry, now.get(entry.id));
        const signed = entry.records.map(({ content }) => ({ content, mac: this.#parts.keys.sign(content) }));
        await tx.sign(entry.id, signed);
      }
    };
    return this.#signing("update the journal", "The journal is as it was.", () => this.#store.exclusive(work));
  }

  condition(): Promise<Condition> {
    return this.#reading(() => this.#store.condition());
  }

  async prune(olderThanMs: number, { includeLive = false, isTrial = false } = {}) {
    const before = new Date(this.#parts.now() - olderThanMs).toISOString();
    const isNone = (await this.select({ all: true, archived: true, limit: 1 })).length === 0;
    if (isNone && (await this.condition()).damagedPlaces === 0) return { removed: 0, live: [], keptLive: [] };
    const work = async (tx: Transaction) => {
      if (tx.moved !== undefined) throw admission.journalMovedFailure(this.path, tx.moved);
      const choice = { before, leased: await tx.leased(), includeLive };
      const { removable, live, keptLive } = prunable(await tx.entries(), choice);
      if (!isTrial) await tx.remove(removable);
      return { removed: removable.size, live, keptLive };
    };
    const meaning = "The journal was not changed.";
    return this.#orFailure("prune the journal", meaning, () => this.#store.exclusive(work, isTrial));
  }

  close(): void {
    this.#store.close();
  }
}

function assertUnchanged({ id, records }: EntryRecords, other: EntryRecords | undefined): void {
  if (historyHash(records) === historyHash(other?.records ?? [])) return;
  throw new Failure("conflict", `The entry ${id} is not as it was shown: the journal has changed since.`, {
    meaning: "Nothing was signed.",
    hint: "Look at the entry, then run the command again.",
    nextCommand: shell`integ journal show ${id}`,
    entry: id,
  });
}

export type Journal = Pick<StoredJournal, keyof StoredJournal>;
