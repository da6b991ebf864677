// Owns: whether a file is a journal of ours, and one that this version may change.
// Must not know: how it is read, locks.
import { Failure } from "../../errors.ts";
import type { Fold } from "../fold.ts";
import { recordStart } from "./record.ts";

/** Refuses to treat somebody else's file as a damaged journal. Zeros are what a power failure leaves of a first append. */
export function assertOurs(bytes: Buffer, path: string): void {
  const start = bytes.toString("latin1", 0, recordStart.length);
  if (recordStart.startsWith(start) || bytes.every((byte) => byte === 0)) return;
  throw new Failure("usage", `The file ${path} is not a journal of integ.`, {
    meaning: "It is left as it is.",
    hint: "set INTEG_JOURNAL to another path, or move the file away",
  });
}

/** A journal of a newer format is read and never changed. */
export function assertCurrent(fold: Fold, path: string): void {
  if (!fold.isNewer) return;
  throw new Failure("usage", `The journal ${path} was written by a newer integ (format ${fold.format}).`, {
    meaning: "This one shows its entries and changes nothing.",
    hint: "upgrade integ, then run the command again",
  });
}
