// Admits a change, sends it when it is due, and repeats it while that can help.
import { type Attempt, retryAfterOf } from "../api/call/attempt.ts";
import { mayRetryChange, nextDelay, retryRead } from "../api/call/retry.ts";
import { type Entry, isDeferred, mayHaveArrived, nextStep, lastErrorOf, attemptedPlaces } from "../journal/entry.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent } from "../journal/journal.ts";
import type { Destination, DestinationRecord } from "../secrets/destination.ts";
import {
  entryFailure,
  outcomeUnknown,
  prerequisite,
  recordOrWarn,
  recoveryAfter,
  recoveryIn,
  recoveryStep,
  isPermanentFailure,
  type Workbench,
} from "./workbench.ts";
import { Failure, onFailure, isInterruption, saysNothingWasDone } from "../errors.ts";
import { type Advice, flags } from "../next-step.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";

interface AdmissionOptions extends AdmissionChoice {
  readonly destination: Destination;
  readonly isDelivered: (lease: EntryLease) => Promise<boolean>;
}

/**
 * If the destination refuses the secret, an earlier process may have delivered it there: that process's entry is then resumed.
 * `isDelivered` needs the entry's lease, because it can complete the delivery.
 * @returns no `place` for such an entry
 */
export async function admitWork(
  { journal, secrets }: Workbench,
  intent: Intent,
  { destination, isDelivered, ...choice }: AdmissionOptions,
): Promise<Admission & { readonly place?: DestinationRecord }> {
  secrets.machine.make();
  let place: DestinationRecord;
  try {
    place = await destination.check();
  } catch (refusal) {
    const earlier = await journal.resume(intent, choice);
    if (earlier === undefined) throw refusal;
    let found = false;
    try {
      found = await isDelivered(earlier.lease);
    } finally {
      if (!found) await earlier.lease.release();
    }
    if (!found) throw refusal;
    return earlier;
  }
  return { ...(await journal.admit({ ...intent, destination: { ...place } }, choice)), place };
}

/** The attempt is recorded before its request: after a crash its outcome is unknown, and `place` may have the secret. */
export async function recordAttempt(
  { bench, lease }: { readonly bench: Workbench; readonly lease: EntryLease },
  { state, place, detail }: Pick<Entry, "state" | "detail"> & { readonly place: DestinationRecord | undefined },
): Promise<void> {
  const { attempts, destination, detail: before } = lease.entry;
  const { place: here, machine } = bench.secrets;
  const attempted_at = [...new Set([...attemptedPlaces(bench.secrets, before), here])];
  const attempted_by = [...new Set([...(before.attempted_by ?? []), machine.copy()])];
  await lease.record({
    attempts: attempts + 1,
    state,
    destination: place ? { ...place } : destination,
    detail: { ...before, attempted_at, attempted_by, ...detail },
  });
}

export async function readUntilAnswered<T>(
  bench: Pick<Workbench, "clock" | "retryForMs">,
  read: () => Promise<Attempt<T>>,
  about: { readonly what: string; readonly where?: string },
): Promise<T> {
  const { clock, retryForMs } = bench;
  const options = { ...about, retryForMs, clock, random: () => clock.random(), signal: clock.interruption };
  return (await retryRead(read, options)).value;
}

/** @returns ms until the next attempt; null if the request must not be repeated, or `retryForMs` is over */
export function delayBeforeNext(
  { clock, retryForMs }: Workbench,
  answer: Attempt<unknown>,
  { attempt, startedAt }: { readonly attempt: number; readonly startedAt: number },
): number | null {
  if (!mayRetryChange(answer)) return null;
  const elapsedMs = clock.elapsed() - startedAt;
  const random = (): number => clock.random();
  return nextDelay({ attempt, elapsedMs, retryForMs, retryAfterSeconds: retryAfterOf(answer), random });
}

type State = Entry["state"] | undefined;

export interface SendSteps<A, R> {
  /** The state to keep if the next request changes nothing; undefined if no earlier request can have changed anything. */
  readonly stateBefore: () => State;
  readonly prepare: (stateBefore: State, attempt: number) => Promise<void>;
  readonly send: () => Promise<Attempt<A>>;
  /** @returns the result, a failure if the request may be sent again later, or undefined to send it again now */
  readonly read: (answer: Attempt<A>, stateBefore: State) => Promise<{ readonly end: R } | Failure | undefined>;
  readonly retryLabel: string;
}

/** Repeats the request within `retryForMs`. @throws Failure that fits the entry's state */
export async function sendUntilKnown<A, R>(
  bench: Workbench,
  lease: EntryLease,
  { stateBefore, prepare, send, read, retryLabel }: SendSteps<A, R>,
): Promise<R> {
  const first = stateBefore();
  if (first === undefined) await waitUntilDue(bench, lease.entry);
  else await recordingFailure(bench, lease, { stateBefore: first }, () => waitUntilDue(bench, lease.entry));
  const startedAt = bench.clock.elapsed();
  for (let attempt = 1; ; attempt++) {
    const state = stateBefore();
    await recordingFailure(bench, lease, { stateBefore: state }, async () => {
      assertMayContinue(bench);
      await prepare(state, attempt);
    });
    const answer = await send();
    const outcome = await read(answer, state);
    if (outcome === undefined) continue;
    if (!(outcome instanceof Failure)) return outcome.end;
    const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
    await recordingFailure(bench, lease, { stateBefore: stateBefore(), requestFailure: outcome }, async () => {
      if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
      if (delay === null) throw outcome;
      await wait(bench, delay, `${outcome.message} ${retryLabel}`);
    });
  }
}

export function assertMayContinue({ clock, disk }: Workbench): void {
  if (clock.interruption.aborted) throw clock.interruption.reason;
  disk.assertHealthy();
}

interface EarlierState {
  readonly stateBefore: State;
  /** The last request's failure, if another failure prevents the retry. */
  readonly requestFailure?: Failure;
}

export async function recordingFailure<T>(
  bench: Workbench,
  lease: EntryLease,
  standing: EarlierState,
  step: () => Promise<T>,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw error instanceof Failure ? await recordFailure(bench, lease, { ...standing, failure: error }) : error;
  }
}

/** Records the failure. Without `stateBefore`, no request had an effect. @returns the failure that fits the entry's state */
export async function recordFailure(
  bench: Workbench,
  lease: EntryLease,
  { stateBefore, failure, requestFailure = failure }: EarlierState & { readonly failure: Failure },
): Promise<Failure> {
  const state = stateBefore ?? (isRateLimitRefusal(requestFailure) ? "open" : "refused");
  const last_error = lastErrorOf(state === "open" ? requestFailure : failure);
  const detail = { ...lease.entry.detail, in_flight: state === "unknown" };
  await recordOrWarn(bench, lease, { state, last_error, detail });
  if (state === "unknown") return outcomeUnknown(lease.entry, failure);
  if (state === "pending") return pendingFailure(lease.entry, failure);
  return entryFailure(lease.entry, failure.kind, failure.message, failure.details);
}

export async function wait(bench: Workbench, ms: number, label: string): Promise<void> {
  const done = bench.tell.waiting(label, ms);
  try {
    await bench.clock.sleep(ms);
  } finally {
    done();
  }
}

export function isRateLimitRefusal({ kind, details }: Failure): boolean {
  // If a token endpoint sent the 429, the request itself was not sent.
  return kind === "rate_limited" && details.unsent !== true;
}

export async function waitUntilDue(bench: Workbench, entry: Entry): Promise<void> {
  const { clock, account, retryForMs } = bench;
  const until = entry.detail.put_off_until;
  // If the clock was set back, the remaining wait cannot be computed.
  if (until === undefined || clock.now() < Date.parse(entry.updated_at)) return;
  const now = clock.now() + (account.service.clockOffset() ?? entry.clock_offset_ms ?? 0);
  const leftMs = Date.parse(until) - now;
  if (leftMs <= 0) return;
  // The recovery of the parent includes this entry. The suggested `--retry-for` covers the wait.
  const minutes = [flags.retryFor, `${Math.ceil(leftMs / 60_000) + 2}m`];
  const step = recoveryStep(entry.parent ?? entry.id, leftMs > longestWaitMs ? [] : minutes);
  const hint: Advice | undefined = leftMs > longestWaitMs ? `Wait until ${until}, then run the command.` : undefined;
  if (leftMs > retryForMs)
    throw entryFailure(entry, "rate_limited", `The service asked to wait until ${until}.`, {
      unsent: true,
      meaning: isDeferred(entry)
        ? "Nothing was sent now, and nothing was changed before. The request and its key are saved."
        : "Nothing was sent now.",
      ...step,
      hint,
    });
  await wait(bench, leftMs, "The service asked for this wait");
}

/** The longest wait for which `--retry-for` is suggested. */
const longestWaitMs = 24 * 60 * 60_000;

/** @throws Failure `outcome_unknown` while a process that lost its lease may still send the request */
export function assertNoneInFlight({ entry, quietUntil }: EntryLease): void {
  if (quietUntil === undefined || !mayHaveArrived(entry)) return;
  const message = `Another process may still be sending the request of ${entry.id}, until ${quietUntil} at the latest.`;
  throw entryFailure(entry, "outcome_unknown", message, {
    meaning: "Nothing was sent now. A check before that time would not be certain.",
    ...recoveryStep(entry.id),
  });
}

/**
 * Reads a pending client until it has another status (§4.2).
 * @assumed §3.1 does not show how `pending` ends: the client is read again and again, and any other status is the end
 * @throws Failure `pending` once `waitMs` is over, or of the kind of the interruption
 */
export async function waitWhilePending(
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
      if (clock.elapsed() + pauseMs > deadline) throw pendingFailure(entry);
      done ??= tell.waiting(`Client ${id} is pending. If it stays so, integ stops waiting`, deadline - clock.elapsed());
      const interrupted = onFailure(() => Promise.reject(pendingFailure(entry, clock.interruption.reason)));
      await clock.sleep(pauseMs).catch(interrupted);
    }
  } finally {
    done?.();
  }
}

/** An interruption that ended the wait keeps its exit code. */
function pendingFailure(entry: Entry, because?: unknown): Failure {
  const failure = because instanceof Failure ? because : undefined;
  const isMissing = failure !== undefined && isPermanentFailure(failure);
  const stops = failure !== undefined && (saysNothingWasDone(failure) || isMissing) ? failure : undefined;
  const next = isMissing ? recoveryAfter(failure, entry.id) : { nextCommand: nextStep(entry) ?? undefined };
  const kind = failure !== undefined && isInterruption(failure) ? failure.kind : "pending";
  const message = `The service accepted the creation and has not completed it yet.${stops ? ` ${stops.message}` : ""}`;
  return entryFailure(entry, kind, message, {
    meaning: `The request and its idempotency key are saved, so retrying cannot create a second one.${stops ? prerequisite(stops) : ""}`,
    ...((stops && recoveryIn(stops.details)) ?? next),
  });
}
