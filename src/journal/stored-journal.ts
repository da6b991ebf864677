// The journal above its store: admission, leases, history, import, export, move, verify and prune, for both engines.
import { randomInt, randomUUID } from "node:crypto";
import type { Actor } from "./actor.ts";
import * as admission from "./admission.ts";
import { type Entry, type EntryProgress, keyName, type Moved } from "./entry.ts";
import type {
  Admission,
  Coming,
  Merged,
  MergeOptions,
  AdmissionChoice,
  Condition,
  EntryLease,
  EscrowStore,
  Finding,
  Holder,
  Intent,
  Journal,
  Pruned,
  PruneOptions,
} from "./journal.ts";
import type { Keys, SecretDigests } from "./keys.ts";
import { type EntryFilter, findEntry, fits, idPattern, newEntryId, normalizeId } from "./lookup.ts";
import { prunable } from "./prunable.ts";
import { type EntryRecords, recordContent, recordHash, type Step, stepIn } from "./record.ts";
import {
  type Action,
  Busy,
  type Hold,
  inTurn,
  type Looked,
  type NewRecord,
  nothingSent,
  type Store,
  untilFree,
} from "./store.ts";

export interface JournalOptions {
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly actor: Actor;
  /** How long a running holder is waited for. */
  readonly waitMs?: number | undefined;
  readonly keys: Keys;
}

/** How long a running holder of an entry is waited for. */
export const holderWaitMs = 10_000;

/** See `Journal`. */
export class StoredJournal implements Journal {
  readonly path: string;
  readonly isShared: boolean;
  readonly digests: SecretDigests;
  readonly escrow?: EscrowStore;
  readonly #store: Store;
  readonly #parts: Required<JournalOptions>;
  readonly #held = new Set<Hold>();
  /** Of admissions: of those at the same time all but one would have to look again. */
  readonly #inTurn = inTurn();

  constructor(store: Store, { now, actor, waitMs = holderWaitMs, keys }: JournalOptions) {
    this.path = store.path;
    this.isShared = store.escrow !== undefined;
    this.digests = keys.digests;
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

  async select(filter: EntryFilter): Promise<Entry[]> {
    const found: Entry[] = [];
    for await (const entry of this.each(filter)) found.push(entry);
    return found;
  }

  async *each(filter: EntryFilter): AsyncIterable<Entry> {
    let left = filter.limit ?? Number.POSITIVE_INFINITY;
    if (left <= 0) return;
    try {
      for await (const entry of this.#store.select(filter)) {
        if (!fits(entry, filter)) continue;
        yield entry;
        left -= 1;
        if (left <= 0) return;
      }
    } catch (error) {
      throw this.#store.failure(error, "read the journal");
    }
  }

  count(): Promise<number> {
    return this.#reading(() => this.#store.count());
  }

  history(id: string): Promise<Step[]> {
    return this.#reading(async () => (await this.#recordsOf(id)).map(({ content }) => stepIn(content)));
  }

  async #recordsOf(id: string): Promise<EntryRecords["records"]> {
    for await (const { records } of this.#store.records([id])) return records;
    return [];
  }

  async find(typed: string): Promise<Entry> {
    return findEntry(await this.select({ all: true, start: normalizeId(typed), limit: 1000 }), typed);
  }

  /** A whole id is not looked for first. */
  async #idOf(typed: string): Promise<string> {
    const id = normalizeId(typed);
    return idPattern.test(id) ? id : (await this.find(typed)).id;
  }

  #reading<T>(work: () => Promise<T>): Promise<T> {
    return this.#orFailure("read the journal", undefined, work);
  }

  /** @throws Failure in words for what the engine's own calls met */
  async #orFailure<T>(action: Action, meaning: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#store.failure(error, action, meaning);
    }
  }

  /** The same of work that leads to a record: it has to be signed. */
  async #signing<T>(action: Action, meaning: string, work: () => Promise<T>): Promise<T> {
    this.#parts.keys.assertCanSign();
    return this.#orFailure(action, meaning, work);
  }

  admit(intent: Intent, options: AdmissionChoice = {}): Promise<Admission> {
    const attempt = (): Promise<Admission | Busy> => this.#inTurn(() => this.#admitNow(intent, options));
    return this.#signing("write to the journal", nothingSent, () => this.#wait(attempt));
  }

  resume(intent: Intent, options: AdmissionChoice = {}): Promise<Admission | undefined> {
    return this.#signing("lock the journal", nothingSent, () =>
      this.#wait(async () => this.#resumeNow(await this.#look(intent, options), { intent, options })),
    );
  }

  #look(intent: Intent, options: AdmissionChoice): Promise<Looked> {
    const { base_url } = intent;
    const key = admission.keyOf(intent, options) ?? null;
    return this.#store.look(intent, keyName({ base_url, idempotency_key: key }));
  }

  #wait<T>(attempt: () => Promise<T | Busy>): Promise<T> {
    return untilFree(attempt, { waitMs: this.#parts.waitMs });
  }

  async #admitNow(intent: Intent, options: AdmissionChoice): Promise<Admission | Busy> {
    const key = admission.keyOf(intent, options);
    const looked = await this.#look(intent, options);
    const resumed = await this.#resumeNow(looked, { intent, options });
    if (resumed) return resumed;
    const unfinished = looked.unfinished.map(({ entry }) => entry);
    const same = admission.entriesOfRequest(unfinished, intent, this.isShared);
    if (key === undefined && options.fresh !== true) {
      admission.assertNoneLost(same);
      admission.assertSameAccount(unfinished, intent, this.isShared);
    }
    const hold = await this.#insert(intent, looked.newest, key);
    // Another process was first: what is there now is looked at again.
    if (hold === undefined) return this.#admitNow(intent, options);
    const ids = new Set(same.map(({ id }) => id));
    const alongside = looked.unfinished.flatMap(({ entry, holder }) =>
      holder !== undefined && ids.has(entry.id) ? [{ entry: entry.id, holder }] : [],
    );
    return { kind: "new", lease: this.#lease(hold, { isNew: true }), alongside };
  }

  /** The entry of the key given by hand, whose running holder is waited for; else the first unfinished one that is free. */
  async #resumeNow(
    looked: Looked,
    { intent, options }: { readonly intent: Intent; readonly options: AdmissionChoice },
  ): Promise<Admission | Busy | undefined> {
    const key = admission.keyOf(intent, options);
    if (key !== undefined) {
      const holder = admission.entryOfKey(looked.ofKey, intent, { key, isShared: this.isShared });
      const taken = holder && (await this.#store.take(holder.id));
      return taken instanceof Busy || taken === undefined ? taken : { kind: "same_key", lease: this.#lease(taken) };
    }
    if (options.fresh === true) return undefined;
    const unfinished = looked.unfinished.map(({ entry }) => entry);
    for (const entry of admission.entriesOfRequest(unfinished, intent, this.isShared)) {
      if (!admission.isResumable(entry)) continue;
      const taken = await this.#store.take(entry.id);
      if (taken instanceof Busy) continue;
      if (admission.isResumable(taken.entry)) return { kind: "resumed", lease: this.#lease(taken) };
      // Its holder has finished it since it was read: what is there now is looked at again.
      await taken.release();
      return this.#resumeNow(await this.#look(intent, options), { intent, options });
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
    this.#held.add(hold);
    let { entry, content } = hold;
    // A number is used once, even if its record could not be written: something of it may be there.
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
        // The clocks of several machines differ: a step is never before the one before it.
        const at = Math.max(this.#parts.now(), Date.parse(entry.updated_at) + 1);
        sequence += 1;
        const next = { ...entry, ...change, sequence, updated_at: new Date(at).toISOString() };
        const record = this.#recordOf(next, { prev: recordHash(content), before: entry });
        const meaning = "The journal still shows the entry as it was before this step.";
        await this.#orFailure("update the journal", meaning, () => hold.append(record));
        ({ entry, content } = record);
        return entry;
      },
      // No other process writes to it while it is held.
      isTrusted: () => (trusted ??= this.untrusted([entry.id]).then((found) => !found.has(entry.id))),
      note: (change) => {
        entry = { ...entry, ...change };
      },
      release: async () => {
        isReleased = true;
        this.#held.delete(hold);
        await hold.release();
      },
    };
  }

  holders(): Promise<ReadonlyMap<string, Holder>> {
    return this.#reading(() => this.#store.holders());
  }

  async takeAway(id: string, seen: Holder | undefined): Promise<void> {
    const entry = await this.find(id);
    await this.#orFailure("lock an entry of the journal", "Nothing changed.", () => this.#store.takeAway(entry, seen));
  }

  async extendLeases(): Promise<void> {
    for (const hold of this.#held) await hold.extend();
  }

  holdsLeases(): boolean {
    return [...this.#held].every((hold) => hold.isHeld());
  }

  async *records(): AsyncIterable<EntryRecords> {
    try {
      yield* this.#store.records();
    } catch (error) {
      throw this.#store.failure(error, "read the journal");
    }
  }

  async merge(coming: Coming, options: MergeOptions = {}): Promise<Merged> {
    const { mergeInto } = await import("./merge.ts");
    const parts = { store: this.#store, keys: this.#parts.keys };
    return this.#signing("update the journal", "Nothing was imported.", () => mergeInto(parts, coming, options));
  }

  async movedTo(): Promise<Moved | undefined> {
    return (await this.condition()).moved;
  }

  async markMoved(moved: Moved | undefined): Promise<void> {
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

  async untrusted(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { keys } = this.#parts;
    const found = new Set<string>();
    if (ids.length === 0) return found;
    return this.#reading(async () => {
      for await (const { id, records } of this.#store.records(ids))
        if (!records.every((record) => keys.judge(record) === "valid")) found.add(id);
      return found;
    });
  }

  async trust(typed: string): Promise<void> {
    const { id } = await this.find(typed);
    return this.#signing("update the journal", "The journal is as it was.", async () => {
      const records = await this.#recordsOf(id);
      const signed = records.map(({ content }) => ({ content, mac: this.#parts.keys.sign(content) }));
      return this.#store.exclusive((tx) => tx.sign(id, signed));
    });
  }

  condition(): Promise<Condition> {
    return this.#reading(() => this.#store.condition());
  }

  prune(olderThanMs: number, { includeLive = false, isTrial = false }: PruneOptions = {}): Promise<Pruned> {
    const before = new Date(this.#parts.now() - olderThanMs).toISOString();
    return this.#orFailure("prune the journal", "The journal was not changed.", async () => {
      const isNone = (await this.#store.condition()).damagedPlaces + (await this.#store.count()) === 0;
      if (isNone) return { removed: 0, live: [], keptLive: [] };
      return this.#store.exclusive(async (tx) => {
        if (tx.moved !== undefined) throw admission.movedAway(this.path, tx.moved);
        const choice = { before, leased: await tx.held(), includeLive };
        const { going, live, keptLive } = prunable(await tx.entries(), choice);
        if (!isTrial) await tx.remove(going);
        return { removed: going.size, live, keptLive };
      }, isTrial);
    });
  }

  close(): void {
    this.#store.close();
  }
}
