import type { Entry, EntryProgress } from "./entry.ts";
import type { HeldLock } from "../disk/process-lock.ts";

/** An entry that this process alone may move on, until it is released. */
export interface EntryLease {
  /** As it stands after the last step that was recorded. */
  readonly entry: Entry;
  /**
   * Records a step: on disk and synced once the promise is fulfilled.
   * @throws Failure `usage` or `failed` where that cannot be done; the entry then stands as before.
   */
  record(change: Partial<EntryProgress>): Promise<Entry>;
  /** Lets others drive it. Safe to repeat; never fails, so that it cannot take the place of how the work ended. */
  release(): Promise<void>;
}

export interface Admission {
  /**
   * `resumed`: an unfinished entry of the same request, left by a process that is gone. `same_key`: the entry, in any
   * state, that holds the key given by hand. Their stored bytes are what is sent.
   */
  readonly kind: "new" | "resumed" | "same_key";
  readonly drive: EntryLease;
}

/**
 * @param from the entry as it stands, read after its lock was taken.
 * @param means.append puts a whole entry on the disk, synced, or throws.
 */
export function leaseOf(
  from: Entry,
  means: { readonly lock: HeldLock; readonly now: () => number; readonly append: (entry: Entry) => void },
): EntryLease {
  let entry = from;
  let driven = true;
  return {
    get entry() {
      return entry;
    },
    async record(change) {
      if (!driven) throw new Error(`journal entry ${entry.id} is recorded after its release`);
      const next = { ...entry, ...change, updated_at: new Date(means.now()).toISOString() };
      means.append(next);
      entry = next;
      return entry;
    },
    async release() {
      driven = false;
      try {
        means.lock.release();
      } catch {
        // The lock ends with this process: how the work ended stays what it is.
      }
    },
  };
}
