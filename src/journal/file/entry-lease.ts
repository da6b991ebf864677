import type { HeldLock } from "../../disk/process-lock.ts";
import type { Entry } from "../entry.ts";
import type { EntryLease } from "../journal.ts";

interface LeaseParts {
  readonly now: () => number;
  /** Puts a record on the disk, or throws and changes nothing. */
  readonly append: (entry: Entry) => void;
}

/** @param first as it stands, read after its lock was taken */
export function entryLease(first: Entry, lock: HeldLock, { now, append }: LeaseParts): EntryLease {
  let entry = first;
  // A number is used once, even if its record could not be written: something of it may stand in the file.
  let { sequence } = first;
  let isHeld = true;
  return {
    get entry() {
      return entry;
    },
    record: async (change) => {
      if (!isHeld) throw new Error(`journal entry ${entry.id} is recorded after its release`);
      sequence += 1;
      const next = { ...entry, ...change, sequence, updated_at: new Date(now()).toISOString() };
      append(next);
      entry = next;
      return next;
    },
    note: (change) => {
      entry = { ...entry, ...change };
    },
    release: async () => {
      isHeld = false;
      lock.release();
    },
  };
}
