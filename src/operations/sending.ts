// How a request of a change goes out: admitted with the place of its secret, sent when it is due and no one else may be
// sending it, again as long as that may help; and what is said of one that was too early, is not completed, or was made twice.
import { type Attempt, retryAfterOf } from "../api/call/attempt.ts";
import { nextDelay, retryRead } from "../api/call/retry.ts";
import {
  type Entry,
  isPutOff,
  isSameRequest,
  isSettled,
  mayHaveArrived,
  nextStep,
  revokedFirst,
} from "../journal/entry.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { Destination, DestinationRecord } from "../secrets/destination.ts";
import {
  type Workbench,
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
import { shell, flags } from "../next-step.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import type { CreationRequest } from "../api/oauth-client-creation.ts";

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
  const attempted_at = [...new Set([...(detail.attempted_at ?? []), bench.secrets.place])];
  await lease.record({
    attempts: attempts + 1,
    state: about.state,
    destination: about.place ? { ...about.place } : destination,
    detail: { ...detail, attempted_at, ...about.detail },
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
  /** What is said while the next request is waited for. */
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
  /** What the last request met, if something else ends the work. */
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

// Two commands that request the same thing at the same moment create two. Neither waits for the other: a person who runs one
// twice may want two. Each says so at its end, since the second one may have started after the first one looked.

/** Reports who is working on the same request at this moment: each creates its own. */
export function tellAlongside({ tell }: Workbench, { alongside = [] }: Admission): void {
  for (const { entry, holder } of alongside)
    tell.warn(
      `${holder.user} on ${holder.host} (process ${holder.pid}) has been creating the same one since ${holder.since} (journal entry ${entry}). This creates another one.`,
    );
}

/**
 * Says which other creations of the same request were under way since this one began, and how to revoke one.
 * @param since when this one began, by the clock that the journal's records have
 */
export async function tellSimultaneous(bench: Workbench, own: Entry, since: string): Promise<void> {
  // Of several that begin the same item of a policy one continues: no one requested two.
  if (own.policy !== undefined) return;
  const { journal } = bench;
  // The clocks of a team's machines differ, and its ids are in order. A process that was at it before was named at the beginning.
  const range = journal.isShared ? { after: own.id } : { since };
  // The outcome of the creation does not change, whether the journal can be read again or not.
  const begun = await journal.select({ all: true, ...range }).catch(onFailure(() => []));
  const others = begun.filter(
    (entry) =>
      entry.id !== own.id &&
      (entry.state === "done" || !isSettled(entry.state)) &&
      entry.parent === own.parent &&
      entry.replaces === own.replaces &&
      entry.policy === undefined &&
      isSameRequest(entry, own),
  );
  if (others.length === 0) return;
  const names = others.map(({ id, resource_id: made }) => `${made ?? "not finished"} (journal entry ${id})`).join(", ");
  const [what, noun] = own.operation === "access_key.create" ? ["key", "keys"] : ["client", "oauth-clients"];
  // Of all that were made the newest, whichever process says it: of two logs that name each other's client, a person could
  // revoke both.
  const newest = [own, ...others].reduce((latest, entry) => (entry.id > latest.id ? entry : latest));
  const next = newest.resource_id === null ? `journal show ${newest.id}` : `${noun} revoke ${newest.resource_id}`;
  bench.tell.warn(`The same ${what} was created at the same moment: ${names}. If you need only one: integ ${next}`);
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

// A creation that is refused because the service account may have all the clients that it can have (§8): integ revokes none
// of them, and names those that a person could revoke.

/** §8: clients of one service account, with those that are being made or removed. */
const slots = 20;

/**
 * A conflict with the clients that hold slots, as far as this machine knows them; any other refusal as it is.
 * @param entry the creation
 * @param options.keep clients that are not to be revoked
 */
export async function noSlot(
  bench: Workbench,
  entry: Entry,
  { refusal, keep }: { readonly refusal: Failure; readonly keep: readonly string[] },
): Promise<Failure> {
  const { code, param } = refusal.details.problem ?? {};
  // §7: another code is about the key, and a parameter is named if it, not the number of clients, is in the way.
  if (refusal.kind !== "conflict" || code !== "invalid_request" || param !== undefined) return refusal;
  const { service_account_id: account } = JSON.parse(entry.request_text) as CreationRequest;
  const holders = await holdersOf(bench, entry, { account, keep });
  const [first] = holders;
  if (first === undefined) return refusal;
  const named = holders.map(({ id, status }) => (status === "active" ? id : `${id} (${status})`)).join(", ");
  return new Failure(refusal.kind, refusal.message, {
    ...refusal.details,
    meaning: `Nothing was revoked. If ${account} has all ${slots} clients that it can have, you can revoke one of these: ${named}.`,
    hint: undefined,
    nextCommand: shell`integ oauth-clients revoke ${first.id}`,
  });
}

/** So many clients are asked for at most: most of a long journal's may be revoked. */
const mostAsked = 3 * slots;

/** Clients of the service account that the journal knows and the service shows, those that do not work first. */
async function holdersOf(
  { journal, account: { service } }: Workbench,
  { base_url, operation }: Pick<Entry, "base_url" | "operation">,
  { account, keep }: { readonly account: string; readonly keep: readonly string[] },
): Promise<{ readonly id: string; readonly status: string }[]> {
  const asked = new Set<string>();
  const replaced = new Set<string | null>();
  const holders: { readonly id: string; readonly status: string }[] = [];
  for await (const other of journal.each({ all: true, serviceAccount: account, operation })) {
    const { resource_id: id, state } = other;
    replaced.add(revokedFirst(other));
    const isCandidate =
      id !== null && !keep.includes(id) && state !== "replaced" && !replaced.has(other.id) && !asked.has(id);
    if (!isCandidate || other.base_url !== base_url) continue;
    asked.add(id);
    const answer = await service.oauthClients.get(id);
    const { status } = answer.kind === "answered" ? answer.value : { status: "not confirmed" };
    if (status !== "revoked") holders.push({ id, status });
    if (holders.length === slots || asked.size === mostAsked) break;
  }
  return holders.sort((a, b) => Number(a.status === "active") - Number(b.status === "active"));
}
