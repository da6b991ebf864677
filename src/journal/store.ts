// Defines the interface of the journal's stores, on which journal.ts builds, and how to wait for another process.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, type FailureDetails, type FailureKind } from "../errors.ts";
import { shell } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import type { Intent } from "./admission.ts";
import type { Entry, MoveMark } from "./entry.ts";
import type { EntryFilter } from "./lookup.ts";
import type { EntryRecords, Finding, Signed } from "./record.ts";

export const nothingSent = "Nothing was sent and nothing changed.";

/** Another process holds the entry or the file. */
export class Busy {
  /** @param meaning defaults to "nothing was sent" */
  readonly failure: (waitedMs: number, meaning?: string) => Failure;

  /** @param about.entry set if `integ journal release` may take the entry from its holder */
  constructor(
    what: string,
    { kind, entry, by }: { readonly kind: FailureKind; readonly by: string; readonly entry?: string | undefined },
  ) {
    const takeAway = "Wait for that process, or take the entry from it if it has ended.";
    const step: FailureDetails =
      entry === undefined
        ? { hint: "Wait for that process, or end it, then run the command again." }
        : { hint: takeAway, nextCommand: shell`integ journal release ${entry}`, entry };
    this.failure = (waitedMs, meaning = nothingSent) => {
      const waited = Math.round(waitedMs / 100) / 10;
      return new Failure(kind, `${what} is in use by ${by}; integ waited ${waited} s.`, { meaning, ...step });
    };
  }
}

/** @returns a wait that doubles each round up to 40 ms, with jitter so that waiting processes do not retry together */
function backoffMs(round: number): number {
  const most = Math.min(40, 2 ** Math.min(round, 6));
  return most / 2 + (Math.random() * most) / 2;
}

/** Holds no lock between attempts; other work of this process continues. @throws Failure that names the holder */
export async function waitUntilFree<T>(
  attempt: () => T | Busy | Promise<T | Busy>,
  { waitMs, meaning }: { readonly waitMs: number; readonly meaning?: string | undefined },
): Promise<T> {
  // The time is read only before a wait, because loading `performance` takes time.
  let end: number | undefined;
  for (let round = 0; ; round += 1) {
    const result = await attempt();
    if (!(result instanceof Busy)) return result;
    end ??= performance.now() + waitMs;
    const left = end - performance.now();
    if (left <= 0) throw result.failure(waitMs, meaning);
    await sleep(Math.min(left, backoffMs(round)));
  }
}

export function inTurn(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}

export interface Holder extends Actor {
  readonly pid: number;
  /** The start of the lease by the server's clock, ISO 8601 UTC, like `until`. */
  readonly since: string;
  readonly until: string;
}

/** `entry` is the entry after this record. */
export interface NewRecord extends Signed {
  readonly entry: Entry;
}

export interface Hold {
  readonly entry: Entry;
  readonly content: string;
  /** Set if the last holder did not release the entry: a request of that holder may arrive until this time (ISO 8601 UTC). */
  readonly quietUntil?: string | undefined;
  /** The record is durable once the promise is fulfilled. @throws Failure if another process has taken the entry */
  append(record: NewRecord): Promise<void>;
  isHeld(): boolean;
  /** Makes the lease outlast one request. @throws Failure if another process has taken the entry */
  extend(): Promise<void>;
  /** Safe to repeat; never fails. */
  release(): Promise<void>;
}

export interface LookupResult {
  /** At least the unfinished entries of the same request, the newest first. */
  readonly unfinished: readonly { readonly entry: Entry; readonly holder: Holder | undefined }[];
  readonly ofKey: readonly Entry[];
  /** The highest id; empty without entries. */
  readonly newest: string;
}

export interface Transaction {
  readonly moved: MoveMark | undefined;
  mark(moved: MoveMark | undefined): Promise<void>;
  /** A missing entry has no records, or is left out. */
  records(ids: readonly string[]): Promise<readonly EntryRecords[]>;
  /** @param keys as named by `keyName` */
  ofKeys(keys: readonly string[]): Promise<readonly Entry[]>;
  leased(): Promise<ReadonlySet<string>>;
  entries(): Promise<readonly Entry[]>;
  append(records: readonly NewRecord[]): Promise<void>;
  /** Replaces HMACs from the oldest record on. In PostgreSQL, also restores the entry's row from its records. */
  sign(id: string, records: readonly Signed[]): Promise<void>;
  remove(ids: ReadonlySet<string>): Promise<void>;
}

export interface EscrowStore {
  ids(): Promise<ReadonlySet<string>>;
  /** The ciphertext is committed once the promise is fulfilled. */
  put(entry: string, ciphertext: string): Promise<void>;
  get(entry: string): Promise<string | undefined>;
  remove(entry: string): Promise<void>;
}

export interface Condition {
  readonly damagedPlaces: number;
  /** The file exists and is empty: emptied by a person, or left by a crash before the first record. */
  readonly isEmptied: boolean;
  readonly moved: MoveMark | undefined;
}

export interface Store {
  readonly path: string;
  readonly escrow?: EscrowStore;
  /** @returns entries, the newest first; some may not match the filter */
  select(filter: EntryFilter): AsyncIterable<Entry>;
  /** @returns the records of these entries; without `ids` of all entries, in ascending order of the ids */
  records(ids?: readonly string[]): AsyncIterable<EntryRecords>;
  condition(): Promise<Condition>;
  holders(): Promise<ReadonlyMap<string, Holder>>;
  /** Finds the entries that an admission considers. @param key as named by `keyName` */
  look(intent: Intent, key: string | null): Promise<LookupResult>;
  /** Inserts the entry and leases it. @returns undefined if another process inserted an entry first */
  insert(record: NewRecord, newest: string): Promise<Hold | undefined>;
  take(id: string): Promise<Hold | Busy>;
  takeAway(entry: Entry, seen: Holder | undefined): Promise<void>;
  /**
   * No other process can change the journal during the work.
   * @param isTrial true if the work changes nothing: a store may then take no lock
   */
  exclusive<T>(work: (tx: Transaction) => Promise<T>, isTrial?: boolean): Promise<T>;
  verify(): Promise<readonly Finding[]>;
  /** @param action such as `read the journal`. @returns a Failure for an error of the store, any other error unchanged */
  failure(error: unknown, action: string, meaning?: string): unknown;
  close(): void;
}
