// How a creation ends that the service accepted and has not completed (§4.2): the key is kept, nothing is created anew.
import { Failure } from "../../errors.ts";
import { type Entry, nextStep } from "../../journal/entry.ts";
import { detailsOf, isInterruption, prerequisite, recoveryIn, saysNothingWasDone } from "../workbench.ts";

/**
 * @param because what ended the wait: an interruption keeps its own exit code (130, 143), since nothing is unknown; a
 * destination that can take no secret is reported with what fixes it
 */
export function stillPending(entry: Entry, because?: unknown): Failure {
  const failure = because instanceof Failure ? because : undefined;
  const stops = failure !== undefined && saysNothingWasDone(failure) ? failure : undefined;
  return new Failure(
    failure !== undefined && isInterruption(failure) ? failure.kind : "pending",
    `The service accepted the creation and has not completed it yet.${stops ? ` ${stops.message}` : ""}`,
    {
      ...detailsOf(entry),
      meaning: `The key is saved; the creation goes on by itself.${stops ? prerequisite(stops) : ""}`,
      ...((stops && recoveryIn(stops.details)) ?? { hint: nextStep(entry) ?? undefined }),
    },
  );
}
