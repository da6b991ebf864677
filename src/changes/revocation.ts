// The one gate in front of every revocation: nothing is revoked without grounds. What passes is a DELETE that may be
// repeated (§4.2, RFC 9110 §9.2.2) and is repeated until its end is seen, and the journal says at every moment whether one
// may have arrived.
import type { Attempt } from "../api/http/attempt.ts";
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import {
  delayBeforeNext,
  detailsOf,
  exchanged,
  lastErrorOf,
  outcomeUnknown,
  recordAfterwards,
  wait,
  type Workbench,
} from "./workbench.ts";

/** Why a client or key may be revoked. */
export type RevocationGrounds =
  /** A person named it in `revoke`. */
  | { readonly kind: "named" }
  /** Another one is in its place. */
  | { readonly kind: "replaced"; readonly by: Successor }
  /** It exists, no one has its secret, and a person agreed (now, or when the replacement began). */
  | { readonly kind: "secret_lost"; readonly entry: string };

/** How it was shown that a new credential works. What else an entry may say is not evidence. */
const evidence = ["token exchange", "by the person"] as const;
export type Proof = (typeof evidence)[number];

/** The evidence that an entry has of its new credential. */
export function proofIn({ proven }: Entry["detail"]): Proof | undefined {
  return evidence.find((known) => known === proven);
}

/** A new credential whose secret is delivered: what is known of it when the old one is to go. */
export interface Successor {
  readonly id: string;
  readonly proof: Proof | undefined;
  /** When it was last seen to work: made in this process just now, or asked for just now. */
  readonly seen: "just made" | "looked at";
  /** Destinations that have not got its secret. */
  readonly missing: readonly string[];
}

/** Reported before each request, and after every attempt that may have arrived. */
export type Mark = (event: "send" | Failure) => Promise<void>;

/** What an answer to a DELETE came to. */
export type Reading<R> =
  | { readonly isOver: true; readonly end: R }
  | { readonly isOver: false; readonly failure: Failure; readonly mayHaveArrived: boolean };

export interface Revocation<T, R> {
  /** One attempt. */
  readonly send: () => Promise<Attempt<T>>;
  /** Throws if no repetition can say more. */
  readonly read: (answer: Attempt<T>) => Promise<Reading<R>>;
  readonly grounds: RevocationGrounds;
  /** Of the entry whose work it is a part of. */
  readonly lease: EntryLease;
  readonly mark?: Mark;
}

/**
 * Sends until the end is seen, within `retryForMs`. Every revocation of every resource goes through here.
 * @throws Failure of the last attempt
 */
export async function revoke<T, R>(
  bench: Workbench,
  { send, read, grounds, lease, mark }: Revocation<T, R>,
): Promise<R> {
  assertGrounds(grounds);
  const startedAt = bench.clock.elapsed();
  for (let attempt = 1; ; attempt++) {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    bench.disk.assertHealthy();
    await mark?.("send");
    const answer = await exchanged(bench, lease, send);
    const reading = await read(answer);
    if (reading.isOver) return reading.end;
    const { failure } = reading;
    if (reading.mayHaveArrived) await mark?.(failure);
    const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
    if (delay === null || bench.clock.interruption.aborted) throw failure;
    await wait(bench, delay, `${failure.message} Trying again`);
  }
}

/** @throws Failure if the grounds are none: what works stays */
function assertGrounds(grounds: RevocationGrounds): void {
  if (grounds.kind !== "replaced") return;
  const { id, proof, missing } = grounds.by;
  if (proof === undefined)
    throw new Failure("pending", `It is not known whether ${id} works: the old one is not revoked.`);
  if (id === "") throw new Failure("failed", "The id of the new credential is not known: the old one is not revoked.");
  if (missing.length > 0)
    throw new Failure("undelivered", `The new secret has not reached ${missing.join(", ")}.`, {
      meaning: "The old one is not revoked before every destination has the new one.",
    });
}

/** Recorded before the first request to revoke what an entry made: later no one takes its end for someone else's. */
export async function markRevoking(lease: EntryLease): Promise<void> {
  const { detail } = lease.entry;
  if (detail.revoking !== true) await lease.record({ detail: { ...detail, revoking: true } });
}

/** The end of an entry whose client or key someone else has revoked: nothing is made in its place. */
export async function goneOnPurpose(bench: Workbench, lease: EntryLease, what: string): Promise<Failure> {
  await recordAfterwards(bench, lease, { state: "unusable", last_error: null });
  return new Failure("unusable", `${what}, and integ did not revoke it.`, {
    ...detailsOf(lease.entry),
    meaning: "Nothing was sent, and nothing is created in its place. If you still need one, create another.",
  });
}

export interface JournalledRevocation<R> {
  /** Resource id of what is revoked. */
  readonly id: string;
  readonly work: (mark: Mark) => Promise<R>;
}

/** Does the work under an entry: `done` at its end; else `unknown` if any attempt may have arrived, or `refused`. */
export async function revokeUnderEntry<R>(
  bench: Workbench,
  lease: EntryLease,
  { id, work }: JournalledRevocation<R>,
): Promise<R> {
  let mayHaveArrived = lease.entry.state === "unknown" || lease.entry.attempts > 0;
  try {
    const end = await work(async (event) => {
      if (event === "send") {
        await lease.record({ attempts: lease.entry.attempts + 1, resource_id: id });
        return;
      }
      mayHaveArrived = true;
      await recordAfterwards(bench, lease, { state: "unknown", last_error: lastErrorOf(event) });
    });
    await recordAfterwards(bench, lease, { state: "done", last_error: null });
    return end;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    mayHaveArrived ||= error.kind === "outcome_unknown";
    // What is refused after an attempt that may have arrived can have another cause: it settles nothing.
    const isSettled = !mayHaveArrived;
    await recordAfterwards(bench, lease, { state: isSettled ? "refused" : "unknown", last_error: lastErrorOf(error) });
    throw isSettled
      ? new Failure(error.kind, error.message, detailsOf(lease.entry, error.details))
      : outcomeUnknown(lease.entry, error);
  }
}
