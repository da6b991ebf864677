// Owns: what the revocations of both contracts share: a DELETE that may be repeated (§4.2, RFC 9110 §9.2.2) is repeated until
// its end is seen, and the journal says at every moment whether one may have arrived.
// Must not know: flags, terminals, files, what is revoked and how its end is seen.
import type { Attempt } from "../api/http/attempt.ts";
import { Failure } from "../errors.ts";
import type { EntryLease } from "../journal/journal.ts";
import { delayBeforeNext, wait } from "./trying-again.ts";
import { detailsOf, exchanged, lastErrorOf, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";

/** Told before each request, and of every attempt that may have arrived. */
export type Mark = (before: "send" | Failure) => Promise<void>;

/** What an answer to a DELETE came to. */
export type Reading<R> =
  | { readonly isOver: true; readonly end: R }
  | { readonly isOver: false; readonly failure: Failure; readonly mayHaveArrived: boolean };

export interface Revocation<T, R> {
  /** One attempt. */
  readonly send: () => Promise<Attempt<T>>;
  /** Throws where no repetition can tell more. */
  readonly read: (answer: Attempt<T>) => Promise<Reading<R>>;
  readonly mark?: Mark;
}

/** Sends until the end is seen, within `retryForMs`. @throws Failure of the last attempt */
export async function repeatRevocation<T, R>(bench: Workbench, { send, read, mark }: Revocation<T, R>): Promise<R> {
  const startedAt = bench.clock.now();
  for (let attempt = 1; ; attempt++) {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    bench.disk.assert();
    await mark?.("send");
    const answer = await exchanged(bench, send);
    const reading = await read(answer);
    if (reading.isOver) return reading.end;
    const { failure } = reading;
    if (reading.mayHaveArrived) await mark?.(failure);
    const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
    if (delay === null || bench.clock.interruption.aborted) throw failure;
    await wait(bench, delay, `${failure.message} Trying again`);
  }
}

export interface JournalledRevocation<R> {
  /** Resource id of what is revoked. */
  readonly id: string;
  readonly work: (mark: Mark) => Promise<R>;
  /** True of a failure that settles the entry even after an attempt that may have arrived. */
  readonly settles?: (failure: Failure) => boolean;
}

/** Does the work under an entry: `done` at its end; else `unknown` where any attempt may have arrived, or `refused`. */
export async function driveRepeated<R>(
  bench: Workbench,
  drive: EntryLease,
  { id, work, settles = () => false }: JournalledRevocation<R>,
): Promise<R> {
  let mayHaveArrived = drive.entry.state === "unknown" || drive.entry.attempts > 0;
  try {
    const end = await work(async (before) => {
      if (before === "send") {
        await drive.record({ attempts: drive.entry.attempts + 1, resource_id: id });
        return;
      }
      mayHaveArrived = true;
      await recordAfterwards(bench, drive, { state: "unknown", last_error: lastErrorOf(before) });
    });
    await recordAfterwards(bench, drive, { state: "done", last_error: null });
    return end;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    mayHaveArrived ||= error.kind === "outcome_unknown";
    const isSettled = !mayHaveArrived || settles(error);
    await recordAfterwards(bench, drive, { state: isSettled ? "refused" : "unknown", last_error: lastErrorOf(error) });
    throw isSettled
      ? new Failure(error.kind, error.message, detailsOf(drive.entry, error.details))
      : outcomeUnknown(drive.entry, error);
  }
}
