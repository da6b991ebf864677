// What reading the journal's file gives, and what is kept of it for the next time.
import type { Fold } from "../fold.ts";
import type { Slowly } from "../journal.ts";
import type { KeptPart } from "../record.ts";
import type { Damage, LineStart, Summarize } from "./scan.ts";

export interface FileParts {
  readonly now: () => number;
  readonly summarize?: Summarize | undefined;
  /** How a long file is read that has no index. */
  readonly slowly?: Slowly | undefined;
}

/** What was read so far. The last record read is found again before anything behind it is believed. */
export interface Known {
  readonly fold: Fold;
  readonly head: Buffer;
  readonly anchor: LineStart & { readonly bytes: Buffer; readonly isChained: boolean };
}

export type Beginning = Pick<Known, "fold"> & { readonly anchor?: Known["anchor"] };

export interface Reading {
  readonly fold: Fold;
  /** Damage behind the last sound record. */
  readonly damage: readonly Damage[];
  /** An append that a crash cut short; to a reader without the lock perhaps one under way. */
  readonly torn: Damage | undefined;
  readonly size: number;
  /** There is a file, and nothing in it. */
  readonly isEmptied: boolean;
}

/** The bytes of a file that is written again, with the header that they make. */
export type Written = (header: (kept: KeptPart) => string) => Iterable<Uint8Array>;

export interface OpenFile {
  readonly fd: number;
  /** How it begins. */
  readonly head: Buffer;
  readonly size: number;
}
