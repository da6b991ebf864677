import type { Actor } from "../../src/journal/actor.ts";
import { FileStore } from "../../src/journal/file/file-store.ts";
import type { LockMeans } from "../../src/disk/process-lock.ts";
import { keyRing, type Keys } from "../../src/journal/keys.ts";
import { StoredJournal } from "../../src/journal/journal.ts";

interface FileJournalParts {
  readonly now: () => number;
  readonly actor: Actor;
  readonly locks?: { readonly means: () => LockMeans; readonly waitMs?: number };
  readonly archiveBytes?: number;
  readonly keys?: Keys;
}

export const testKeys = keyRing({ read: () => ["a-key-of-a-machine-in-the-tests-0123456789"] });

export function fileJournal(
  path: string,
  { now, actor, locks, archiveBytes, keys = testKeys }: FileJournalParts,
): StoredJournal {
  const { means, waitMs } = locks ?? {};
  return new StoredJournal(new FileStore(path, { now, means, waitMs, archiveBytes }), { now, actor, waitMs, keys });
}
