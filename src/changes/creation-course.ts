// Owns: one run at the creation of an OAuth client: what it remembers of earlier attempts, how it waits between attempts,
// and how it gives up without settling what is unknown.
// Must not know: flags, terminals, files, what an answer means (oauth-client-creation.ts).
import type { Attempt } from "../api/http/attempt.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import { type Entry, nextStep } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination } from "../secrets/destination.ts";
import { delayBeforeNext, wait } from "./trying-again.ts";
import {
  detailsOf,
  isInterruption,
  lastErrorOf,
  mendFirst,
  outcomeUnknown,
  recordAfterwards,
  recoveryIn,
  saysNothingWasDone,
  type Workbench,
} from "./workbench.ts";

export interface CreationOptions {
  readonly destination: Destination;
  /** How long a pending creation is waited for, milliseconds; 0 inspects once. */
  readonly waitMs: number;
  /** `--idempotency-key` */
  readonly key?: string;
  /** `--new`: leave an unfinished twin alone. */
  readonly fresh?: boolean;
}

/** A creation that came to its end. A lost secret is an end too: what follows is another piece of work. */
export type CreationEnd =
  | { readonly kind: "delivered"; readonly entry: Entry; readonly receipt: string }
  /** The secret was delivered by an earlier process: the receipt shows the client as it stands. */
  | { readonly kind: "delivered_before"; readonly entry: Entry; readonly receipt: string }
  | {
      readonly kind: "secret_lost";
      readonly entry: Entry;
      readonly receipt: string;
      /** Of the answer that showed the client without its secret. */
      readonly requestId?: string | undefined;
    };

/** One creation under way: what is known of earlier attempts, and since when this process tries. */
export interface Course {
  readonly bench: Workbench;
  readonly drive: EntryLease;
  readonly options: CreationOptions;
  readonly startedAt: number;
  /** An attempt of this or an earlier process may have made the client. */
  uncertain: boolean;
  /** The entry was settled before: a key given again. What the journal says of it stays. */
  readonly settledBefore: boolean;
  /** The remembered destination holds the secret already. */
  deliveredBefore: boolean;
  attempt: number;
  /** `Request-Id` of the last POST's answer, where that showed the client. */
  requestId: string | undefined;
  /** The secret could neither be delivered nor kept: what was reserved for it is not wiped. */
  leaveReserve: boolean;
}

export async function pause(course: Course, answer: Attempt<OAuthClient>, failure: Failure): Promise<void> {
  const { bench, attempt, startedAt } = course;
  const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
  if (delay === null || bench.clock.interruption.aborted) throw await giveUp(course, interruptedOr(course, failure));
  await waitOr(course, delay, `${failure.message} Trying again under the same key`, () =>
    giveUp(course, interruptedOr(course, failure)),
  );
}

function interruptedOr(course: Course, failure: Failure): Failure {
  const { interruption } = course.bench.clock;
  return interruption.aborted && interruption.reason instanceof Failure ? interruption.reason : failure;
}

/** Ends this run without a client: the journal stays uncertain where any attempt is, and is settled where none is. */
export async function giveUp(course: Course, failure: Failure): Promise<Failure> {
  const { drive } = course;
  if (course.settledBefore) {
    await noteError(course, failure, drive.entry.state);
    return new Failure(failure.kind, failure.message, detailsOf(drive.entry, failure.details));
  }
  if (course.uncertain) {
    if (drive.entry.state === "pending") {
      await noteError(course, failure, "pending");
      return stillPending(drive.entry, failure);
    }
    await noteError(course, failure, "unknown");
    return outcomeUnknown(drive.entry, failure);
  }
  await noteError(course, failure, "refused");
  return new Failure(failure.kind, failure.message, detailsOf(drive.entry, failure.details));
}

export async function noteError(course: Course, failure: Failure, state: Entry["state"]): Promise<void> {
  await recordAfterwards(course.bench, course.drive, { state, last_error: lastErrorOf(failure) });
}

/**
 * @param because what ended the wait: an interruption keeps its own exit code (130, 143), since nothing is unknown; a place
 * that can take no secret is told with what mends it
 */
export function stillPending(entry: Entry, because?: unknown): Failure {
  const failure = because instanceof Failure ? because : undefined;
  const stops = failure !== undefined && saysNothingWasDone(failure) ? failure : undefined;
  return new Failure(
    failure !== undefined && isInterruption(failure) ? failure.kind : "pending",
    `The service accepted the creation and has not completed it yet.${stops ? ` ${stops.message}` : ""}`,
    {
      ...detailsOf(entry),
      meaning: `The key is saved; the creation goes on by itself.${stops ? mendFirst(stops) : ""}`,
      hint: (stops && recoveryIn(stops.details)) ?? nextStep(entry) ?? undefined,
    },
  );
}

/** A wait that Ctrl-C ends: the failure then says how the work stands, not that a key was pressed. */
export async function waitOr(
  course: Course,
  ms: number,
  ...[label, failure]: [string, () => Failure | Promise<Failure>]
): Promise<void> {
  try {
    await wait(course.bench, ms, label);
  } catch (error) {
    if (error instanceof Failure) throw await failure();
    throw error;
  }
}
