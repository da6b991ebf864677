// Imports the records that a journal lacks, and marks a journal as moved.
import { Failure } from "../errors.ts";
import { shell } from "../next-step.ts";
import { journalMovedFailure } from "./admission.ts";
import { type Entry, keyName, type MoveMark } from "./entry.ts";
import type { Keys } from "./keys.ts";
import { entryIn, type EntryRecords } from "./record.ts";
import type { NewRecord, Store, Transaction } from "./store.ts";

export type ImportedEntries = Iterable<EntryRecords> | AsyncIterable<EntryRecords>;

/** `extended` counts existing entries that got new records. */
export interface Merged {
  readonly added: number;
  readonly extended: number;
  readonly unchanged: number;
}

export interface MergeOptions {
  /** Accept the mark of an earlier move, and sign all added records with this journal's key. */
  readonly isMove?: boolean;
  /** Ids of entries that the user trusts: this journal's key signs their records. */
  readonly trusted?: ReadonlySet<string>;
}

const batchSize = 500;

async function* inBatches(imported: ImportedEntries): AsyncGenerator<EntryRecords[], undefined> {
  let batch: EntryRecords[] = [];
  for await (const entry of imported) {
    if (batch.push(entry) < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

export async function mergeInto(
  { store, keys }: { readonly store: Store; readonly keys: Keys },
  imported: ImportedEntries,
  { isMove = false, trusted }: MergeOptions,
): Promise<Merged> {
  const batches = inBatches(imported);
  // The source may read its whole file for the first batch, so the lock is taken afterwards.
  const first = await batches.next();
  return store.exclusive(async (tx) => {
    if (!isMove && tx.moved !== undefined) throw journalMovedFailure(store.path, tx.moved);
    const merged = { added: 0, extended: 0, unchanged: 0 };
    const idsByKey = new Map<string, string>();
    for (let next = first; !next.done; next = await batches.next()) {
      const changes = await changesFor(tx, next.value);
      await assertUniqueKeys(tx, changes, idsByKey);
      const extended = changes.filter(({ added, existing }) => existing > 0 && added.length > 0);
      const leased = extended.length === 0 ? new Set<string>() : await tx.leased();
      const busy = extended.find(({ id }) => leased.has(id));
      if (busy !== undefined) throw inUseFailure(`entry ${busy.id} is in use, and the import has new records for it`);
      const signed = (record: NewRecord): NewRecord =>
        isMove || trusted?.has(record.entry.id) || keys.judge(record) === "valid"
          ? { ...record, mac: keys.sign(record.content) || record.mac }
          : record;
      const added = changes.flatMap((change) => change.added.map(signed));
      if (added.length > 0) await tx.append(added);
      for (const { added, existing } of changes)
        merged[added.length === 0 ? "unchanged" : existing === 0 ? "added" : "extended"] += 1;
    }
    return merged;
  });
}

interface Change {
  readonly id: string;
  readonly entry: Entry;
  readonly added: readonly NewRecord[];
  readonly existing: number;
}

async function changesFor(tx: Transaction, imported: readonly EntryRecords[]): Promise<Change[]> {
  const byId = new Map((await tx.records(imported.map(({ id }) => id))).map(({ id, records }) => [id, records]));
  return imported.map(({ id, records }) => {
    const all = records.map((record) => ({ ...record, entry: entryIn(record.content) }));
    const isRecordOfEntry = (record: (typeof all)[number]): record is NewRecord => record.entry?.id === id;
    if (all.length === 0 || !all.every(isRecordOfEntry))
      throw new Failure("usage", `The records of entry ${id} are invalid.`, { meaning: nothingImported });
    const existing = byId.get(id) ?? [];
    const differs = existing.findIndex(({ content }, at) => at < all.length && content !== all[at]?.content);
    if (differs >= 0) throw contradictionFailure(id, `record ${differs + 1} differs`);
    return { id, entry: all.at(-1)!.entry, added: all.slice(existing.length), existing: existing.length };
  });
}

const nothingImported = "Nothing was imported.";

function contradictionFailure(id: string, what: string): Failure {
  return new Failure("conflict", `The entry ${id} contradicts the one in the journal: ${what}.`, {
    meaning: nothingImported,
    nextCommand: shell`integ journal show ${id}`,
    entry: id,
  });
}

/** @throws Failure if two entries have the same idempotency key. @param seen entry ids by key, of all batches so far */
async function assertUniqueKeys(tx: Transaction, changes: readonly Change[], seen: Map<string, string>): Promise<void> {
  const names = changes.flatMap(({ entry }) => keyName(entry) ?? []);
  for (const entry of names.length === 0 ? [] : await tx.ofKeys(names)) seen.set(keyName(entry)!, entry.id);
  for (const { id, entry } of changes) {
    const name = keyName(entry);
    if (name === null) continue;
    const other = seen.get(name);
    if (other !== undefined && other !== id) throw contradictionFailure(id, `entry ${other} has its idempotency key`);
    seen.set(name, id);
  }
}

export function markMoved(store: Store, moved: MoveMark | undefined): Promise<void> {
  return store.exclusive(async (tx) => {
    if (tx.moved !== undefined && moved !== undefined && tx.moved.to !== moved.to)
      throw journalMovedFailure(store.path, tx.moved);
    const leased = moved === undefined ? new Set<string>() : await tx.leased();
    if (leased.size > 0) throw inUseFailure(`entry ${[...leased].join(", ")} is in use`);
    if (tx.moved !== undefined || moved !== undefined) await tx.mark(moved);
  });
}

function inUseFailure(what: string): Failure {
  return new Failure("conflict", `The journal cannot be changed now: ${what}.`, {
    meaning: "The journal is as it was.",
    hint: "Wait until it is released, then run the command again.",
  });
}
