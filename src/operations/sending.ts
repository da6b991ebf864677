// How a request of a change goes out: admitted with the place of its secret, sent when it is due and no one else may be
// sending it, again as long as that may help; and what is said of one that was too early, or is not completed.
import { type Attempt, retryAfterOf } from "../api/call/attempt.ts";
import { nextDelay, retryRead } from "../api/call/retry.ts";
import { type Entry, isPutOff, mayHaveArrived, nextStep } from "../journal/entry.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { Destination, DestinationRecord } from "../secrets/destination.ts";
import {
  type Workbench,
  attemptedPlaces,
  detailsOf,
  lastErrorOf,
  outcomeUnknown,
  recordAfterwards,
  recoveryStep,
  type RecoveryStep,
  isInterruption,
  prerequisite,
  recoveryAfter,
  recoveryIn,
  saysNothingWasDone,
  standsUntilChanged,
} from "./workbench.ts";
import { Failure, onFailure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";

/** An admission, and where its secret is to go; nothing if no secret is to come. */
export type PlacedAdmission = Admission & { readonly place?: DestinationRecord };

/**
 * Admits work with the destination of its secret: a crash before anything is reserved there must not make recovery forget
 * it. The same command typed again finds the secret's file there, because an earlier process put it there: that work is
 * resumed. Only who holds the entry may look: looking can finish a delivery, and a running process is still at its own.
 * @param about.isThere whether an earlier process delivered the secret of that entry
 * @throws Failure of the destination, if it can take no secret and one is still to come
 */
export async function admitTo(
  { journal }: { readonly journal: Pick<Journal, "admit" | "resume"> },
  intent: Intent,
  about: {
    readonly destination: Destination;
    readonly choice: AdmissionChoice;
    readonly isThere: (lease: EntryLease) => Promise<boolean>;
  },
): Promise<PlacedAdmission> {
  const { destination, choice, isThere } = about;
  let place: DestinationRecord;
  try {
    place = await destination.check();
  } catch (refusal) {
    const earlier = await journal.resume(intent, choice);
    if (earlier === undefined) throw refusal;
    let found = false;
    try {
      found = await isThere(earlier.lease);
    } finally {
      if (!found) await earlier.lease.release();
    }
    if (!found) throw refusal;
    return earlier;
  }
  return { ...(await journal.admit({ ...intent, destination: { ...place } }, choice)), place };
}

/**
 * An attempt is on disk before it leaves: from here on a crash leaves one whose outcome no one knows, and may leave its secret
 * on this machine and say so nowhere.
 */
export async function recordAttempt(
  { bench, lease }: { readonly bench: Workbench; readonly lease: EntryLease },
  about: {
    readonly state: Entry["state"];
    readonly place: DestinationRecord | undefined;
    readonly detail: Entry["detail"];
  },
): Promise<void> {
  const { attempts, destination, detail } = lease.entry;
  const { place, machine } = bench.secrets;
  const attempted_at = [...new Set([...attemptedPlaces(bench, detail), place])];
  const attempted_by = [...new Set([...(detail.attempted_by ?? []), machine.make()])];
  await lease.record({
    attempts: attempts + 1,
    state: about.state,
    destination: about.place ? { ...about.place } : destination,
    detail: { ...detail, attempted_at, attempted_by, ...about.detail },
  });
}

/** A read repeated until it has a response. @throws Failure of the last attempt */
export async function readUntilAnswered<T>(
  bench: Pick<Workbench, "clock" | "retryForMs">,
  read: () => Promise<Attempt<T>>,
  about: { readonly what: string; readonly where?: string },
): Promise<T> {
  const { clock, retryForMs } = bench;
  const options = { ...about, retryForMs, clock, random: () => clock.random(), signal: clock.interruption };
  return (await retryRead(read, options)).value;
}

/** Reasons that a repetition cannot change: a name, a certificate or a proxy stays wrong, and nothing to send stays nothing. */
const lasting: ReadonlySet<string> = new Set(["dns", "tls", "proxy", "redirect", "interrupted", "unsendable"]);

/**
 * Milliseconds until the same request goes out again, or null if it does not: `--retry-for` is over, or no repetition
 * can help. The caller decides whether repeating is safe.
 * @param at `attempt` counts from 1; `startedAt` is what had elapsed at the first one
 */
export function delayBeforeNext(
  bench: Workbench,
  answer: Attempt<unknown>,
  at: { readonly attempt: number; readonly startedAt: number },
): number | null {
  if (answer.kind === "refused" && answer.status !== 429) return null;
  const isTemporary = answer.kind === "not_sent" && answer.temporary === true;
  if ((answer.kind === "unknown" || answer.kind === "not_sent") && lasting.has(answer.reason) && !isTemporary)
    return null;
  return nextDelay({
    attempt: at.attempt,
    elapsedMs: bench.clock.elapsed() - at.startedAt,
    retryForMs: bench.retryForMs,
    retryAfterSeconds: retryAfterOf(answer),
    random: () => bench.clock.random(),
  });
}

/** A request that brings a secret, sent until it is known what became of it. */
export interface Sending<A, R> {
  /** How the entry stands if the next request changes nothing: what an earlier one may have done is not undone. */
  readonly before: () => Entry["state"] | undefined;
  /** Puts in place what must be there before a request may leave; the attempt is on disk then. */
  readonly ready: (before: Entry["state"] | undefined, attempt: number) => Promise<void>;
  readonly send: () => Promise<Attempt<A>>;
  /** What a response means. @returns the end; or the failure that it is if the same request may go out later; nothing: it goes out now */
  readonly read: (
    answer: Attempt<A>,
    before: Entry["state"] | undefined,
  ) => Promise<{ readonly end: R } | Failure | undefined>;
  readonly again: string;
}

/** Sends within `retryForMs`. @throws Failure as the entry stands then */
export async function sendUntilKnown<A, R>(
  bench: Workbench,
  lease: EntryLease,
  { before, ready, send, read, again }: Sending<A, R>,
): Promise<R> {
  const first = before();
  if (first === undefined) await untilDue(bench, lease.entry);
  else await orEndWithout(bench, lease, { before: first }, () => untilDue(bench, lease.entry));
  const startedAt = bench.clock.elapsed();
  for (let attempt = 1; ; attempt++) {
    const stood = before();
    await orEndWithout(bench, lease, { before: stood }, async () => {
      assertMayContinue(bench);
      await ready(stood, attempt);
    });
    const answer = await send();
    const met = await read(answer, stood);
    if (met === undefined) continue;
    if (!(met instanceof Failure)) return met.end;
    const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
    await orEndWithout(bench, lease, { before: before(), met }, async () => {
      if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
      if (delay === null) throw met;
      await wait(bench, delay, `${met.message} ${again}`);
    });
  }
}

/** @throws Failure after a Ctrl-C, and after the disk failed: nothing more is sent */
export function assertMayContinue({ clock, disk }: Workbench): void {
  if (clock.interruption.aborted) throw clock.interruption.reason;
  disk.assertHealthy();
}

interface Standing {
  /** How an earlier request left the entry, if that may have changed something. */
  readonly before: Entry["state"] | undefined;
  readonly met?: Failure;
}

/** Does something on the way to a request. What stops it ends the work. */
export async function orEndWithout<T>(
  bench: Workbench,
  lease: EntryLease,
  standing: Standing,
  step: () => Promise<T>,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw error instanceof Failure ? await endWithout(bench, lease, { ...standing, failure: error }) : error;
  }
}

/** Ends work whose last request certainly changed nothing. @returns how that reads, as the entry stands then */
export async function endWithout(
  bench: Workbench,
  lease: EntryLease,
  { before, failure, met = failure }: Standing & { readonly failure: Failure },
): Promise<Failure> {
  const state = before ?? (isTooEarly(met) ? "open" : "refused");
  const last_error = lastErrorOf(state === "open" ? met : failure);
  const detail = { ...lease.entry.detail, in_flight: state === "unknown" };
  await recordAfterwards(bench, lease, { state, last_error, detail });
  if (state === "unknown") return outcomeUnknown(lease.entry, failure);
  if (state === "pending") return stillPending(lease.entry, failure);
  return new Failure(failure.kind, failure.message, detailsOf(lease.entry, failure.details));
}

/** Waits, and says for what; Ctrl-C ends it with a Failure. */
export async function wait(bench: Workbench, ms: number, label: string): Promise<void> {
  const done = bench.tell.waiting(label, ms);
  try {
    await bench.clock.sleep(ms);
  } finally {
    done();
  }
}

// A request that the service refused as too early (429): nothing was changed, and the entry keeps the request, its key and the
// time at which it may be sent again (§4.2, §8).

/** True if the service itself refused the request as too early. A token endpoint that does leaves the request unsent. */
export function isTooEarly({ kind, details }: Failure): boolean {
  return kind === "rate_limited" && details.unsent !== true;
}

/**
 * Waits as the service asked, if `--retry-for` allows it. A clock that was set back since says nothing of how long is left:
 * the service is asked.
 * @throws Failure `rate_limited` if the wait is longer; nothing was sent
 */
export async function untilDue(bench: Workbench, entry: Entry): Promise<void> {
  const { clock, account, retryForMs } = bench;
  const until = entry.detail.put_off_until;
  if (until === undefined || clock.now() < Date.parse(entry.updated_at)) return;
  const now = clock.now() + (account.service.clockOffset() ?? entry.clock_offset_ms ?? 0);
  const leftMs = Date.parse(until) - now;
  if (leftMs <= 0) return;
  if (leftMs > retryForMs)
    throw new Failure("rate_limited", `The service asked to wait until ${until}.`, {
      ...detailsOf(entry, { unsent: true }),
      meaning: isPutOff(entry)
        ? "Nothing was sent now, and nothing was changed before. The request and its key are saved."
        : "Nothing was sent now.",
      ...stepAfter(entry, { leftMs, until }),
    });
  await wait(bench, leftMs, "The service asked for this wait");
}

/** No one lets a command wait for days. */
const longestWaitMs = 24 * 60 * 60_000;

/** A step of larger work is resumed by the id of that work; with the time that the wait takes, or it ends here again. */
function stepAfter({ id, parent }: Entry, { leftMs, until }: { leftMs: number; until: string }): RecoveryStep {
  const resumed = parent ?? id;
  if (leftMs > longestWaitMs) return { ...recoveryStep(resumed), hint: `Wait until ${until}, then run the command.` };
  return recoveryStep(resumed, [flags.retryFor, `${Math.ceil(leftMs / 60_000) + 2}m`]);
}

// A request that no one may repeat, of a process that lost its entry: it may still leave, or be under way.

/**
 * Nothing is asked about a request that must not be repeated while a holder who lost the entry may still send it.
 * @throws Failure `outcome_unknown`, which says from when it can be asked
 */
export function assertQuiet({ entry, quietUntil }: EntryLease): void {
  if (quietUntil === undefined || !mayHaveArrived(entry)) return;
  const message = `Another process may still be sending the request of ${entry.id}, until ${quietUntil} at the latest.`;
  throw new Failure("outcome_unknown", message, {
    ...detailsOf(entry),
    meaning: "Nothing was sent now. A check before that time would not be certain.",
    ...recoveryStep(entry.id),
  });
}

// A creation that the service accepted and has not completed (§4.2): the key is kept, the client inspected, nothing created
// again.

/**
 * Inspects the client until it has another status.
 * @assumed §3.1 does not show how `pending` ends: the client is read again and again, and any other status is the end
 * @throws Failure `pending` once `waitMs` is over
 */
export async function untilNotPending(
  bench: Workbench,
  { entry, id, waitMs }: { readonly entry: Entry; readonly id: string; readonly waitMs: number },
): Promise<OAuthClient> {
  const { clock, account, tell } = bench;
  const deadline = clock.elapsed() + waitMs;
  let done: (() => void) | undefined;
  try {
    for (let round = 0; ; round++) {
      const answer = await account.service.oauthClients.get(id);
      if (answer.kind === "answered" && answer.value.status !== "pending") return answer.value;
      const pauseMs = Math.min(10_000, 500 * 2 ** round) * (0.5 + clock.random() / 2);
      if (clock.elapsed() + pauseMs > deadline) throw stillPending(entry);
      done ??= tell.waiting(`Client ${id} is pending. If it stays so, integ stops waiting`, deadline - clock.elapsed());
      const interrupted = onFailure(() => Promise.reject(stillPending(entry, clock.interruption.reason)));
      await clock.sleep(pauseMs).catch(interrupted);
    }
  } finally {
    done?.();
  }
}

/**
 * @param because what ended the wait: an interruption keeps its own exit code (130, 143), since nothing is unknown; a
 * destination that can take no secret is reported with what fixes it
 */
export function stillPending(entry: Entry, because?: unknown): Failure {
  const failure = because instanceof Failure ? because : undefined;
  const isMissing = failure !== undefined && standsUntilChanged(failure);
  const stops = failure !== undefined && (saysNothingWasDone(failure) || isMissing) ? failure : undefined;
  const next = isMissing ? recoveryAfter(failure, entry.id) : { nextCommand: nextStep(entry) ?? undefined };
  return new Failure(
    failure !== undefined && isInterruption(failure) ? failure.kind : "pending",
    `The service accepted the creation and has not completed it yet.${stops ? ` ${stops.message}` : ""}`,
    {
      ...detailsOf(entry),
      meaning: `The idempotency key is saved: integ creates no other one.${stops ? prerequisite(stops) : ""}`,
      ...((stops && recoveryIn(stops.details)) ?? next),
    },
  );
}
