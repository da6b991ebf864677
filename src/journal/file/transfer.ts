// Carrying entries into and out of a journal in a file. The caller holds the file's lock.
import { Failure } from "../../errors.ts";
import { movedAway } from "../admission.ts";
import type { Entry } from "../entry.ts";
import type { Fold } from "../fold.ts";
import {
  assertOwnKeys,
  type Coming,
  countMerged,
  type EntryRecords,
  type Merged,
  type MergeOptions,
  mergeStep,
} from "../merge.ts";
import { keyName } from "../lookup.ts";
import { contentIn, hashOfRecord, type Moved } from "../record.ts";
import type { JournalFile } from "./journal-file.ts";
import type { JournalLocks } from "./locks.ts";
import { writtenAnew } from "./rewriting.ts";

interface TransferParts {
  readonly file: JournalFile;
  readonly locks: JournalLocks;
}

/** Every entry with its records, the oldest first. */
export function* recordsOf(fold: Fold): Iterable<EntryRecords> {
  for (const id of [...fold.ids()].reverse()) yield { id, contents: fold.lines(id).map(contentIn) };
}

/** All of them: one append takes them in, or none. */
export async function gathered(coming: Coming): Promise<EntryRecords[]> {
  const entries: EntryRecords[] = [];
  for await (const entry of coming) entries.push(entry);
  return entries;
}

export function mergeInto(
  { file, locks }: TransferParts,
  coming: readonly EntryRecords[],
  { isMove = false }: MergeOptions,
): Merged {
  locks.sweep();
  const { fold } = file.read();
  if (!isMove) file.assertHere();
  const steps = coming.map((entry) => mergeStep(entry, (id) => fold.lines(id).map(hashOfRecord)));
  assertOwnKeys(steps, (entry) => holderOf(fold, entry));
  const leased = locks.leased();
  const held = steps.find(({ id, there, contents }) => there > 0 && contents.length > 0 && leased.has(id));
  if (held !== undefined) throw inUse(`entry ${held.id} is in use, and the import has new records for it`);
  const contents = steps.flatMap((step) => step.contents);
  if (contents.length > 0) file.append(() => contents, { isMove });
  return countMerged(steps);
}

function holderOf(fold: Fold, { base_url, idempotency_key }: Entry): string | undefined {
  for (const entry of fold.named(keyName(base_url, idempotency_key ?? "")))
    if (entry.base_url === base_url && entry.idempotency_key === idempotency_key) return entry.id;
  return undefined;
}

/** Says in the file's first line where its entries are from now on. */
export function markMoved({ file, locks }: TransferParts, moved: Moved | undefined): void {
  locks.sweep();
  const before = file.movedTo();
  if (before !== undefined && moved !== undefined && before.to !== moved.to) throw movedAway(file.path, before);
  const leased = locks.leased();
  if (moved !== undefined && leased.size > 0) throw inUse(`entry ${[...leased].join(", ")} is in use`);
  const others = locks.holdOthers(leased);
  try {
    const reading = file.readWhole();
    const all = { going: new Set<string>() };
    file.replace(reading, (header) => writtenAnew(reading.fold, { ...all, header }), moved);
  } finally {
    others.release();
  }
}

function inUse(what: string): Failure {
  return new Failure("conflict", `The journal cannot be changed now: ${what}.`, {
    meaning: "The journal is as it was.",
    hint: "Wait until it is released, then run the command again.",
  });
}
