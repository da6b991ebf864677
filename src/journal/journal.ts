// The record of every requested change, and who may continue it. The methods are asynchronous for an engine that asks a
// server; the file engine does its work on the main thread.
import type { Actor } from "./actor.ts";
import type { Intent } from "./admission.ts";
import type { Entry, EntryProgress, Moved } from "./entry.ts";
import type { EntryFilter } from "./lookup.ts";
import type { SecretDigests } from "./keys.ts";
import type { Prunable } from "./prunable.ts";
import type { EntryRecords, Finding, Step } from "./record.ts";

export type { Intent } from "./admission.ts";
export type { Finding } from "./record.ts";

export interface Journal {
  /** Path of the file, or the address of the server without its password. */
  readonly path: string;
  /** It is a team's: other machines and other people change it too. */
  readonly isShared: boolean;
  readonly digests: SecretDigests;
  /** Encrypted secrets, kept beside their entries until they are delivered. A file has none: no one else could claim them. */
  readonly escrow?: EscrowStore;
  /** All entries, the newest first. A missing journal has none. */
  entries(): Promise<Entry[]>;
  /** The unfinished ones, the newest first: much cheaper than to filter all in a long journal. */
  unsettled(): Promise<Entry[]>;
  /** Those that fit, the newest first. What relates to one entry or resource is found without reading the others. */
  select(filter: EntryFilter): Promise<Entry[]>;
  /** The same one by one: for more than should be in memory, or a search that ends with the first. */
  each(filter: EntryFilter): AsyncIterable<Entry>;
  /** How many entries there are, settled ones too. */
  count(): Promise<number>;
  /** Each step of an entry's work, the first one first. @param id a whole one */
  history(id: string): Promise<Step[]>;
  /** @throws Failure `not_found`, or `usage` if the beginning of an id fits several. */
  find(idOrPrefix: string): Promise<Entry>;
  /**
   * Puts an intent on disk, synced, before anything is sent, under one key for ever; the caller holds its lease.
   * @throws Failure: `usage` or `failed` if it cannot be written, `conflict` if the key has another request,
   * `secret_lost` or `undelivered` if an earlier entry of the same request stops it. Nothing was sent and nothing changed.
   */
  admit(intent: Intent, options?: AdmissionChoice): Promise<Admission>;
  /**
   * The entry that `admit` would resume, leased to the caller; undefined if it would start another one: there is none,
   * or a running process holds it. Writes nothing.
   */
  resume(intent: Intent, options?: AdmissionChoice): Promise<Admission | undefined>;
  /** Waits for a running holder up to a limit, then names it. The entry is read again once it is leased. */
  lease(id: string): Promise<EntryLease>;
  /** null if a running process holds it. */
  tryLease(id: string): Promise<EntryLease | null>;
  /** Who works on which entry now, by its id. Of a file only its locks know it. */
  holders(): Promise<ReadonlyMap<string, Holder>>;
  /**
   * Takes an entry away from the holder that was seen; its process records nothing more.
   * @throws Failure `conflict` if another holds it by now; of a file, if its process is known to run, or made a step only now
   */
  takeAway(id: string, seen: Holder | undefined): Promise<void>;
  /**
   * Makes sure that every lease of this process outlasts one request, before that is sent.
   * @throws Failure if another has one of them now: nothing may be sent
   */
  extendLeases(): Promise<void>;
  /** Whether no lease of this process can have ended: asked in the moment in which a request leaves. */
  holdsLeases(): boolean;
  /** Each entry with its records, the oldest first: to be carried to another journal. */
  records(): AsyncIterable<EntryRecords>;
  /**
   * Takes in entries of another journal: all, or none.
   * @throws Failure `conflict` if one contradicts what is here; `usage` if this journal is marked, unless they are moved back
   */
  merge(entries: Coming, options?: MergeOptions): Promise<Merged>;
  /** Where its entries were moved to, or are being moved to: it is read, and never changed. */
  movedTo(): Promise<Moved | undefined>;
  /** Says where the entries are from now on; undefined: here. @throws Failure if someone works on one, or moves them elsewhere */
  markMoved(moved: Moved | undefined): Promise<void>;
  verify(): Promise<Finding[]>;
  /** Those of these entries that have a record without a valid HMAC; all of them if this machine has no key. */
  untrusted(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Signs all records of an entry with the journal's key: a person has looked at it. @throws Failure `usage` without a key */
  trust(id: string): Promise<void>;
  /** What every command should report, as read: cheaper than `verify`, and it writes nothing. */
  condition(): Promise<Condition>;
  /** Forgets settled entries last touched longer ago than that; see `prunable`. */
  prune(olderThanMs: number, options?: PruneOptions): Promise<Pruned>;
  /** Ends what was opened for it. Safe to repeat. */
  close(): void;
}

export interface EscrowStore {
  /** The entries that have one. */
  ids(): Promise<ReadonlySet<string>>;
  /** Committed once the promise is fulfilled. */
  put(entry: string, ciphertext: string): Promise<void>;
  get(entry: string): Promise<string | undefined>;
  /** Safe to repeat. */
  remove(entry: string): Promise<void>;
}

/** Entries to be taken in, one by one where they come from another journal. */
export type Coming = Iterable<EntryRecords> | AsyncIterable<EntryRecords>;

/** How many entries were new, had new records, or were there as they came. */
export interface Merged {
  readonly added: number;
  readonly extended: number;
  readonly unchanged: number;
}

export interface MergeOptions {
  /** The entries come back to a journal that is marked, and stays so until all of them are there. */
  readonly isMove?: boolean;
  /** A person vouches for the records: they are signed with this journal's key. */
  readonly isTrusted?: boolean;
}

/** Who works on an entry. */
export interface Holder extends Actor {
  readonly pid: number;
  /** ISO 8601 UTC, by the server's clock, as `until`. */
  readonly since: string;
  /** When others may have it if nothing more is heard of it. */
  readonly until: string;
}

export interface PruneOptions {
  /** Says what would be removed, and removes nothing. */
  readonly isTrial?: boolean;
  /** Entries whose client or key may still be live are removed too. */
  readonly includeLive?: boolean;
}

export interface Pruned extends Pick<Prunable, "live" | "keptLive"> {
  readonly removed: number;
}

/** An entry that this process alone may change, until it is released. */
export interface EntryLease {
  /** As it is after the last step that was recorded. */
  readonly entry: Entry;
  /**
   * Until when a request of its last holder may be under way, who never let it go: ISO 8601 UTC. undefined: none is.
   */
  readonly quietUntil?: string | undefined;
  /**
   * Records a step: on disk and synced once the promise is fulfilled.
   * @throws Failure `usage` or `failed` if that cannot be done; the entry then stands as before.
   */
  record(change: Partial<EntryProgress>): Promise<Entry>;
  /** Whether each of its records was signed with a key of the journal: another's permits nothing. */
  isTrusted(): Promise<boolean>;
  /** Keeps what was learned on the way, to be recorded with the next step. */
  note(change: Partial<EntryProgress>): void;
  /** Lets others lease it. Safe to repeat; never fails, so that it cannot replace the outcome of the work. */
  release(): Promise<void>;
}

export interface Admission {
  /**
   * `resumed`: an unfinished entry of the same request, left by a process that has ended. `same_key`: the entry, in any
   * state, that holds the key given by hand. Their stored bytes are what is sent.
   */
  readonly kind: "new" | "resumed" | "same_key";
  readonly lease: EntryLease;
  /** Who is working on the same request at this moment, under an entry of its own. */
  readonly alongside?: readonly { readonly entry: string; readonly holder: Holder }[];
}

export interface AdmissionChoice {
  /** Leave an unfinished entry of the same request alone. */
  readonly fresh?: boolean;
  /** An idempotency key given by hand. */
  readonly key?: string;
}

export interface Condition {
  readonly damagedPlaces: number;
  /** The file exists and is empty: someone emptied it, or a crash came before its first record. */
  readonly isEmptied: boolean;
  /** Where its entries were moved to, or are being moved to. */
  readonly moved: Moved | undefined;
}
