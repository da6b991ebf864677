// A request that no one may repeat, of a process that lost its entry: it may still leave, or be under way.
import { Failure } from "../../errors.ts";
import type { EntryLease } from "../../journal/journal.ts";
import { detailsOf, recoveryStep } from "../workbench.ts";

/**
 * Nothing is asked about a request that must not be repeated while a holder who lost the entry may still send it.
 * @throws Failure `outcome_unknown`, which says from when it can be asked
 */
export function assertQuiet({ entry, quietUntil }: EntryLease): void {
  const mayHaveArrived = entry.state === "unknown" || entry.detail.in_flight === true;
  if (quietUntil === undefined || !mayHaveArrived) return;
  const message = `Another process may still be sending the request of ${entry.id}, until ${quietUntil} at the latest.`;
  throw new Failure("outcome_unknown", message, {
    ...detailsOf(entry),
    meaning: "Nothing was sent now, not even a question: before then its answer would not be certain.",
    ...recoveryStep(entry.id),
  });
}
