// Entries as they are carried from one journal to another, and what of them is new there. Pure.
import { Failure } from "../errors.ts";
import { shell } from "../next-step.ts";
import type { Entry } from "./entry.ts";
import { entryOfContent } from "./read-entry.ts";
import { recordHash } from "./record.ts";

/** An entry with the contents of its records, the oldest first. */
export interface EntryRecords {
  readonly id: string;
  readonly contents: readonly string[];
}

/** Entries to be taken in, one by one where they come from another journal. */
export type Coming = Iterable<EntryRecords> | AsyncIterable<EntryRecords>;

/** So many at a time, of more than should be in memory. */
export async function* inBatches(coming: Coming, count: number): AsyncGenerator<EntryRecords[], undefined> {
  let batch: EntryRecords[] = [];
  for await (const entry of coming) {
    if (batch.push(entry) < count) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** How many entries were new, had new records, or were there as they came. */
export interface Merged {
  readonly added: number;
  readonly extended: number;
  readonly unchanged: number;
}

export interface MergeOptions {
  /** The entries come back to a journal that is marked, and stays so until all of them are there. */
  readonly isMove?: boolean;
}

/** What of an entry is to be appended. */
export interface MergeStep {
  readonly id: string;
  /** As it is after its newest record. */
  readonly entry: Entry;
  readonly contents: readonly string[];
  /** How many of its records are there. */
  readonly there: number;
}

/**
 * @param hashesOf of the records of an entry that are there, the oldest first
 * @throws Failure `conflict` if an entry is there with other records; `usage` for what is not an entry
 */
export function mergeStep(coming: EntryRecords, hashesOf: (id: string) => readonly string[]): MergeStep {
  const { id, contents } = coming;
  const entry = contents.map(entryIn(id)).at(-1);
  if (entry === undefined) throw notAnEntry(id);
  const there = hashesOf(id);
  const hashes = contents.map((content) => recordHash(content));
  const common = Math.min(there.length, hashes.length);
  for (let at = 0; at < common; at += 1)
    if (there[at] !== hashes[at]) throw contradiction(id, `record ${at + 1} differs`);
  return { id, entry, contents: contents.slice(there.length), there: there.length };
}

function entryIn(id: string): (content: string) => Entry {
  return (content) => {
    let entry: Entry | undefined;
    try {
      entry = entryOfContent(content);
    } catch {
      // Not even JSON: said below.
    }
    if (entry?.id !== id) throw notAnEntry(id);
    return entry;
  };
}

function notAnEntry(id: string): Failure {
  return new Failure("usage", `The records of entry ${id} are not those of a journal.`, {
    meaning: "Nothing was imported.",
  });
}

export function contradiction(id: string, what: string): Failure {
  return new Failure("conflict", `The entry ${id} contradicts the one in the journal: ${what}.`, {
    meaning: "Nothing was imported.",
    nextCommand: shell`integ journal show ${id}`,
    entry: id,
  });
}

export function countMerged(steps: readonly MergeStep[]): Merged {
  const isNew = ({ there }: MergeStep): boolean => there === 0;
  const changed = steps.filter(({ contents }) => contents.length > 0);
  const added = changed.filter(isNew).length;
  return { added, extended: changed.length - added, unchanged: steps.length - changed.length };
}

export function sumOfMerged(one: Merged, other: Merged): Merged {
  return {
    added: one.added + other.added,
    extended: one.extended + other.extended,
    unchanged: one.unchanged + other.unchanged,
  };
}

/** Refuses two entries with one idempotency key. @param holderOf the id of the entry that has the key already */
export function assertOwnKeys(steps: readonly MergeStep[], holderOf: (entry: Entry) => string | undefined): void {
  const seen = new Map<string, string>();
  for (const { id, entry } of steps) {
    if (entry.idempotency_key === null) continue;
    const key = JSON.stringify([entry.base_url, entry.idempotency_key]);
    const other = seen.get(key) ?? holderOf(entry);
    if (other !== undefined && other !== id) throw contradiction(id, `entry ${other} has its idempotency key`);
    seen.set(key, id);
  }
}
