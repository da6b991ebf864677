// What an engine of the journal does; everything else is written once above it (journal.ts).
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, type FailureDetails, type FailureKind } from "../errors.ts";
import { shell } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import type { Intent } from "./admission.ts";
import type { Entry, Moved } from "./entry.ts";
import type { EntryFilter } from "./lookup.ts";
import type { EntryRecords, Finding, Signed } from "./record.ts";

export const nothingSent = "Nothing was sent and nothing changed.";

/** A running process has what is wanted. */
export class Busy {
  /** Names it, after so many milliseconds of waiting; `meaning` if that is not that nothing was sent. */
  readonly failure: (waitedMs: number, meaning?: string) => Failure;

  /** @param about.entry which a person may take away from that process, if it cannot be seen from here whether it runs */
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

/** @returns what does one piece of work after the other */
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
  /** ISO 8601 UTC, by the server's clock, as `until`. */
  readonly since: string;
  /** When others may have it if nothing more is heard of it. */
  readonly until: string;
}

/** A record that is to be written, with the entry as it is after it. */
export interface NewRecord extends Signed {
  readonly entry: Entry;
}

/** An entry that this process alone may change. */
export interface Hold {
  /** As it was when it was taken. */
  readonly entry: Entry;
  /** The content of its newest record. */
  readonly content: string;
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

export interface Looked {
  /** Unfinished entries, those of the request among them; the newest first, each with who works on it. */
  readonly unfinished: readonly { readonly entry: Entry; readonly holder: Holder | undefined }[];
  /** Entries that have the idempotency key. */
  readonly ofKey: readonly Entry[];
  /** The highest id; empty if there is none. */
  readonly newest: string;
}

/** A change of many entries, while nothing else changes: all of it takes effect, or nothing. */
export interface Transaction {
  readonly moved: Moved | undefined;
  /** Says where the entries are from now on; undefined: here. */
  mark(moved: Moved | undefined): Promise<void>;
  /** The records of these entries, as far as they are there. */
  records(ids: readonly string[]): Promise<readonly EntryRecords[]>;
  /** Entries that have one of these idempotency keys, as `keyName` names them. */
  ofKeys(keys: readonly string[]): Promise<readonly Entry[]>;
  /** Ids of the entries that a process works on. */
  held(): Promise<ReadonlySet<string>>;
  entries(): Promise<readonly Entry[]>;
  append(records: readonly NewRecord[]): Promise<void>;
  /** Replaces the HMACs of an entry's records, the oldest first. */
  sign(id: string, records: readonly Signed[]): Promise<void>;
  remove(ids: ReadonlySet<string>): Promise<void>;
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

export interface Condition {
  readonly damagedPlaces: number;
  /** The file exists and is empty: someone emptied it, or a crash came before its first record. */
  readonly isEmptied: boolean;
  /** Where its entries were moved to, or are being moved to. */
  readonly moved: Moved | undefined;
}

export interface Store {
  /** Path of the file, or the address of the server without its password. */
  readonly path: string;
  readonly escrow?: EscrowStore;
  /** Entries that may fit, the newest first. */
  select(filter: EntryFilter): AsyncIterable<Entry>;
  /** Entries with their records, from the lowest id to the highest. @param ids these alone */
  records(ids?: readonly string[]): AsyncIterable<EntryRecords>;
  condition(): Promise<Condition>;
  holders(): Promise<ReadonlyMap<string, Holder>>;
  /** @param key as `keyName` names it */
  look(intent: Intent, key: string | null): Promise<Looked>;
  /** Puts a new entry there, held. @returns undefined if another was put there since `newest` was the highest id: it may be the same */
  insert(record: NewRecord, newest: string): Promise<Hold | undefined>;
  take(id: string): Promise<Hold | Busy>;
  takeAway(entry: Entry, seen: Holder | undefined): Promise<void>;
  /** @param isTrial nothing is changed */
  exclusive<T>(work: (tx: Transaction) => Promise<T>, isTrial?: boolean): Promise<T>;
  verify(): Promise<readonly Finding[]>;
  /** A failure of the engine's own calls, in words. @param action what was being done, such as `read the journal` */
  failure(error: unknown, action: string, meaning?: string): unknown;
  close(): void;
}
