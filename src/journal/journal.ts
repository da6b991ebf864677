// The record, on this machine, of every change asked for, and who may move it on. The methods are asynchronous for an
// engine that asks a server; the file engine does its work synchronously, on the main thread, before it returns.
import type { Intent } from "./admission.ts";
import type { Admission, EntryLease } from "./lease.ts";
import type { Entry } from "./entry.ts";
import { FileJournal } from "./file/file-journal.ts";
import { refuseAddress } from "./file/file-safety.ts";
import type { Finding } from "./file/verify.ts";

export type { Intent } from "./admission.ts";
export type { Admission, EntryLease } from "./lease.ts";
export type { Finding } from "./file/verify.ts";

export interface Journal {
  /** Path of the file. */
  readonly path: string;
  /** All entries, the newest first. A missing journal has none. */
  entries(): Promise<Entry[]>;
  /** Those that want something done, the newest first: much cheaper than to filter all in a long journal. */
  unsettled(): Promise<Entry[]>;
  /** @throws Failure `not_found`, or `usage` where the beginning of an id fits several. */
  find(idOrPrefix: string): Promise<Entry>;
  /**
   * Puts an intent on disk, synced, before anything is sent, under one key for ever; the caller drives it.
   * @throws Failure: `usage` or `failed` where it cannot be written, `conflict` where the key has another request,
   * `secret_lost` or `undelivered` where a twin stops it. Nothing was sent, nothing changed.
   */
  admit(intent: Intent, options?: AdmissionChoice): Promise<Admission>;
  /**
   * The entry that `admit` would go on with, driven by the caller; undefined where it would start another one: where
   * there is none, or a living process drives it. Writes nothing.
   */
  resume(intent: Intent, options?: AdmissionChoice): Promise<Admission | undefined>;
  /** Waits for a living driver up to the bound, then names it. The entry is read again once it is driven. */
  drive(id: string): Promise<EntryLease>;
  /** null where a living process drives it. */
  tryDrive(id: string): Promise<EntryLease | null>;
  verify(): Promise<Finding[]>;
  /** What every command should tell, as read: cheaper than `verify`, and it writes nothing. */
  condition(): Promise<Condition>;
  /** Forgets settled entries last touched longer ago than that. */
  prune(olderThanMs: number): Promise<{ removed: number }>;
}

export interface Condition {
  readonly damagedPlaces: number;
  /** The file is there and holds nothing: somebody emptied it, or a crash came before its first record. */
  readonly isEmptied: boolean;
}

export interface AdmissionChoice {
  /** Leave an unfinished twin alone. */
  readonly fresh?: boolean;
  /** An idempotency key given by hand. */
  readonly key?: string;
}

export interface JournalOptions {
  /** The file; it and its folder are made by the first admission. */
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A whole number from 0 up to below the bound. */
  readonly random?: (bound: number) => number;
  readonly pid?: number;
  /** false: the owner files alone, as where the kernel's locks cannot be had. */
  readonly nativeLocks?: boolean;
  /** How long a living holder is waited for. */
  readonly waitMs?: number;
}

/**
 * Opens the journal at a path. Nothing on the disk is touched until something is asked of it.
 * @throws Failure `usage` where the path is an address
 */
export function openJournal(options: JournalOptions): Journal {
  refuseAddress(options.path);
  return new FileJournal(options);
}
