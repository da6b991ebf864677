// Owns: driving an entry: the one process that may move it on, and each of its steps.
// Must not know: files, what the steps are.
import type { Entry, EntryProgress } from "./entry.ts";
import type { HeldLock } from "../disk/lock.ts";

/** An entry that this process alone may move on, until it is released. */
export interface Drive {
  /** As it stands after the last step that was recorded. */
  readonly entry: Entry;
  /**
   * Records a step: on disk and synced when it returns.
   * @throws Failure `usage` or `failed` where that cannot be done; the entry then stands as before.
   */
  record(change: Partial<EntryProgress>): Entry;
  /** Lets others drive it. Safe to repeat. */
  release(): void;
  readonly isDriven: true;
}

export interface Admission {
  /**
   * `resumed`: an unfinished entry of the same request, left by a process that is gone. `same_key`: the entry, in any
   * state, that holds the key given by hand. Their stored bytes are what is sent.
   */
  readonly kind: "new" | "resumed" | "same_key";
  readonly drive: Drive;
}

/**
 * @param from the entry as it stands, read after its lock was taken.
 * @param means.append puts a whole entry on the disk, synced, or throws.
 */
export function driveOf(
  from: Entry,
  means: { readonly lock: HeldLock; readonly now: () => number; readonly append: (entry: Entry) => void },
): Drive {
  let entry = from;
  let driven = true;
  return {
    get entry() {
      return entry;
    },
    record(change) {
      if (!driven) throw new Error(`journal entry ${entry.id} is recorded after its release`);
      const next = { ...entry, ...change, updated_at: new Date(means.now()).toISOString() };
      means.append(next);
      entry = next;
      return entry;
    },
    release() {
      driven = false;
      means.lock.release();
    },
    isDriven: true,
  };
}
