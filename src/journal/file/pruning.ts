// `journal prune` of a file: written again without what goes. The caller holds the file's lock.
import type { Pruned, PruneOptions } from "../journal.ts";
import { prunable } from "../prunable.ts";
import type { JournalFile } from "./journal-file.ts";
import type { JournalLocks } from "./locks.ts";
import { writtenAnew } from "./rewriting.ts";
import { assertCurrent } from "./safety.ts";

interface PruneParts {
  readonly file: JournalFile;
  readonly locks: JournalLocks;
  /** What was last touched before that may go: ISO 8601 UTC. */
  readonly before: string;
}

export function pruneFile({ file, locks, before }: PruneParts, options: PruneOptions): Pruned {
  const { includeLive = false, isTrial = false } = options;
  if (!isTrial) locks.sweep();
  const reading = file.readWhole();
  assertCurrent(reading.fold, file.path);
  file.assertHere();
  const leased = locks.leased();
  const { going, live, keptLive } = prunable([...reading.fold.entries()], { before, leased, includeLive });
  const { damage, misplaced } = reading.fold;
  const isWhole = damage.length + misplaced.length + reading.damage.length === 0;
  if (!isTrial && (going.size > 0 || !isWhole)) {
    const others = locks.holdOthers(leased);
    try {
      file.replace(reading, (header) => writtenAnew(reading.fold, { going, header }));
    } finally {
      others.release();
    }
  }
  return { removed: going.size, live, keptLive };
}
