// What an engine of the journal does; everything else is written once above it (stored-journal.ts).
import { setTimeout as sleep } from "node:timers/promises";
import type { Failure } from "../errors.ts";
import type { Entry, Moved } from "./entry.ts";
import type { EscrowStore, Holder, Condition } from "./journal.ts";
import type { EntryFilter } from "./lookup.ts";
import type { EntryRecords } from "./record.ts";
import type { Finding, Signed } from "./record.ts";
import type { Intent } from "./admission.ts";

/** A running process has what is wanted. */
export class Busy {
  /** Names it, after so many milliseconds of waiting; `meaning` if that is not that nothing was sent. */
  readonly failure: (waitedMs: number, meaning?: string) => Failure;

  constructor(failure: Busy["failure"]) {
    this.failure = failure;
  }
}

/** Milliseconds until the next try: doubling, with chance in it so that waiters do not retry at the same time. */
function pauseMs(round: number): number {
  const most = Math.min(40, 2 ** Math.min(round, 6));
  return most / 2 + (Math.random() * most) / 2;
}

/**
 * Tries again until no one is in the way. No lock is held over a pause, and other work of this process continues.
 * @throws Failure that names who is in the way
 */
export async function untilFree<T>(
  attempt: () => T | Busy | Promise<T | Busy>,
  { waitMs, meaning }: { readonly waitMs: number; readonly meaning?: string | undefined },
): Promise<T> {
  // Asked of no clock before someone is in the way: Node loads ten parts for it.
  let end: number | undefined;
  for (let round = 0; ; round += 1) {
    const came = await attempt();
    if (!(came instanceof Busy)) return came;
    end ??= performance.now() + waitMs;
    const left = end - performance.now();
    if (left <= 0) throw came.failure(waitMs, meaning);
    await sleep(Math.min(left, pauseMs(round)));
  }
}

/** A record that is to be written, with the entry as it is after it. */
export interface NewRecord extends Signed {
  readonly entry: Entry;
  readonly hash: string;
}

/** An entry that this process alone may change. */
export interface Hold {
  /** As it was when it was taken. */
  readonly entry: Entry;
  /** The hash of its newest record. */
  readonly hash: string;
  /** Until when a request of its last holder may be under way, who never let it go: ISO 8601 UTC. */
  readonly quietUntil?: string | undefined;
  /** On disk and synced once the promise is fulfilled. @throws Failure if another process has taken the entry */
  append(record: NewRecord): Promise<void>;
  isHeld(): boolean;
  /** Makes it outlast one request. @throws Failure if another has it now */
  extend(): Promise<void>;
  /** Safe to repeat; never fails. */
  release(): Promise<void>;
}

/** What a store has of a request. */
export interface Looked {
  /** Unfinished entries, those of the request among them; the newest first, each with who works on it. */
  readonly unfinished: readonly { readonly entry: Entry; readonly holder: Holder | undefined }[];
  /** Entries that have the idempotency key. */
  readonly ofKey: readonly Entry[];
  /** The highest id. */
  readonly newest: string | undefined;
}

/** A change of many entries: all of it takes effect, or nothing. */
export interface Transaction {
  readonly moved: Moved | undefined;
  /** Says where the entries are from now on; undefined: here. */
  mark(moved: Moved | undefined): Promise<void>;
  /** Of each of these entries that is there, the hashes of its records, the oldest first. */
  hashes(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Entries that have one of these idempotency keys. */
  ofKeys(keys: readonly string[]): Promise<readonly Pick<Entry, "id" | "base_url" | "idempotency_key">[]>;
  /** Ids of the entries that a process works on. */
  held(): Promise<ReadonlySet<string>>;
  entries(): Promise<readonly Entry[]>;
  append(records: readonly NewRecord[]): Promise<void>;
  /** Replaces the HMACs of an entry's records, the oldest first. */
  sign(id: string, records: readonly Signed[]): Promise<void>;
  remove(ids: ReadonlySet<string>): Promise<void>;
}

export interface TransactionOptions {
  /** Nothing is changed. */
  readonly isTrial?: boolean;
  /** It changes what is there, and makes no journal. */
  readonly isOfExisting?: boolean;
}

export interface Store {
  /** Path of the file, or the address of the server without its password. */
  readonly path: string;
  readonly isShared: boolean;
  readonly escrow?: EscrowStore;
  /** Entries that may fit, the newest first. */
  select(filter: EntryFilter): AsyncIterable<Entry>;
  count(): Promise<number>;
  /** Entries whose id begins so, a thousand at most. */
  beginning(start: string): Promise<readonly Entry[]>;
  /** The records of these entries. */
  recordsOf(ids: readonly string[]): Promise<readonly EntryRecords[]>;
  /** Every entry with its records, from the lowest id to the highest. */
  all(): AsyncIterable<EntryRecords>;
  condition(): Promise<Condition>;
  movedTo(): Promise<Moved | undefined>;
  holders(): Promise<ReadonlyMap<string, Holder>>;
  look(intent: Intent, key: string | undefined): Promise<Looked>;
  /** Does the work of an admission: of several on the same store one after the other, where the store itself does not decide. */
  admitting<T>(work: () => Promise<T | Busy>): Promise<T | Busy>;
  /** Puts a new entry there, held. @returns undefined if its id or key is taken, or the store was moved meanwhile */
  insert(record: NewRecord): Promise<Hold | Busy | undefined>;
  take(id: string): Promise<Hold | Busy>;
  takeAway(entry: Entry, seen: Holder | undefined): Promise<void>;
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** What only this engine can find. */
  verify(): Promise<readonly Finding[]>;
  /** A failure of the engine's own calls, in words. */
  failure(error: unknown, action: Action, meaning?: string): unknown;
  close(): void;
}

/** What was being done, for the words of a failure. */
export type Action =
  | "read the journal"
  | "write to the journal"
  | "lock the journal"
  | "lock an entry of the journal"
  | "update the journal"
  | "prune the journal";
