// The act "revoke": the one place where a client or key stops working. Nothing is revoked without grounds. What passes is a
// DELETE that may be repeated (§4.2, RFC 9110 §9.2.2) and is repeated until its end is seen, and the journal says at every moment
// whether one may have arrived.
import type { AccessKey } from "../../api/access-keys.ts";
import type { Attempt } from "../../api/call/attempt.ts";
import type { Service } from "../../api/connect.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import { Failure } from "../../errors.ts";
import { type Entry, isGuess, nextStep } from "../../journal/entry.ts";
import type { EntryLease } from "../../journal/journal.ts";
import { type NextCommand, shell } from "../../next-step.ts";
import type { Proof } from "../next.ts";
import { delayBeforeNext, untilDue, wait } from "../sending.ts";
import { detailsOf, recordAfterwards, type Workbench } from "../workbench.ts";
import { send } from "./send.ts";

/** Why a client or key may be revoked. */
export type RevocationGrounds =
  /** A person named it in `revoke`. */
  | { readonly kind: "named" }
  /** Another one is in its place. */
  | { readonly kind: "replaced"; readonly by: Successor }
  /** It exists, no one has its secret, and a person agreed (now, or when the replacement began). */
  | { readonly kind: "secret_lost"; readonly entry: string };

/** A new credential whose secret is delivered: what is known of it when the old one is to be revoked. */
export interface Successor {
  readonly id: string;
  readonly proof: Proof | undefined;
  /** When it was last seen to work: made in this process just now, or asked for just now. */
  readonly seen: "just made" | "looked at";
  /** Destinations that have not got its secret. */
  readonly missing: readonly string[];
  /** Destinations that had its secret, and have not now. */
  readonly gone: readonly string[];
}

/** Reported before each request, and after every attempt that may have arrived. */
export type Mark = (event: "send" | Failure) => Promise<void>;

/** The result of a DELETE. */
export type Reading<R> =
  | { readonly isOver: true; readonly end: R }
  | { readonly isOver: false; readonly failure: Failure; readonly mayHaveArrived: boolean };

interface Revoked {
  readonly "revoke client": OAuthClient;
  readonly "revoke key": AccessKey;
}

export interface Revocation<C extends keyof Revoked, R> {
  readonly change: C;
  /** Resource id of what is revoked. */
  readonly id: string;
  /** Instead of the workbench's: the service as the profile is after its credential was replaced. */
  readonly service?: Service | undefined;
  /** Throws if no repetition can say more. */
  readonly read: (answer: Attempt<Revoked[C]>) => Promise<Reading<R>>;
  readonly grounds: RevocationGrounds;
  /** Of the entry whose work it is a part of. */
  readonly lease: EntryLease;
  readonly mark?: Mark | undefined;
}

/**
 * Sends until the end is seen, within `retryForMs`.
 * @throws Failure of the last attempt
 */
export async function revoke<C extends keyof Revoked, R>(
  bench: Workbench,
  { change, id, service, read, grounds, lease, mark }: Revocation<C, R>,
): Promise<R> {
  assertGrounds(grounds, { entry: lease.entry, typed: revokes(change, id) });
  const startedAt = bench.clock.elapsed();
  await untilDue(bench, lease.entry);
  for (let attempt = 1; ; attempt++) {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    bench.disk.assertHealthy();
    await mark?.("send");
    const answer = await send<C>(bench, lease, { change, id, service });
    const reading = await read(answer);
    if (reading.isOver) return reading.end;
    const { failure } = reading;
    if (reading.mayHaveArrived) await mark?.(failure);
    // Another process waits until then, too.
    if (lease.entry.detail.put_off_until !== undefined) await recordAfterwards(bench, lease, {});
    const delay = delayBeforeNext(bench, answer, { attempt, startedAt });
    if (delay === null || bench.clock.interruption.aborted) throw failure;
    await wait(bench, delay, `${failure.message} Trying again`);
  }
}

function revokes(change: keyof Revoked, id: string): NextCommand {
  return change === "revoke key" ? shell`integ keys revoke ${id}` : shell`integ oauth-clients revoke ${id}`;
}

/** @throws Failure if there are no grounds: what works stays */
function assertGrounds(
  grounds: RevocationGrounds,
  { entry, typed }: { readonly entry: Entry; readonly typed: NextCommand },
): void {
  if (grounds.kind === "secret_lost" && isGuess(entry)) throw guessed(entry);
  if (grounds.kind !== "replaced") return;
  const { id, proof, missing, gone } = grounds.by;
  if (proof === undefined)
    throw new Failure("pending", `It is not known whether ${id} works: the old one is not revoked.`);
  if (id === "") throw new Failure("failed", "The id of the new credential is not known: the old one is not revoked.");
  if (missing.length > 0)
    throw new Failure("undelivered", `The new secret has not reached ${missing.join(", ")}.`, {
      meaning: "The old one is not revoked before every destination has the new one.",
    });
  if (gone.length > 0)
    throw new Failure("pending", `The secret of ${id} was delivered to ${gone.join(", ")}, and is not there now.`, {
      meaning: "The old one is not revoked: what relies on that destination may still need it.",
      hint: "Put the secret of the new one back, or revoke the old one if nothing uses it any more.",
      nextCommand: typed,
    });
}

/** The failure of a key that was found by its name and time: a person names it, or nothing is revoked. */
export function guessed(entry: Entry): Failure {
  return new Failure("secret_lost", `The key ${entry.resource_id} may be the one that ${entry.id} created.`, {
    ...detailsOf(entry),
    meaning: "Nothing was revoked. Its name and time fit, and another person's key can look the same.",
    hint: "Look at it with integ keys list. Revoke and replace it only if its secret is nowhere in use.",
    nextCommand: nextStep(entry) ?? undefined,
  });
}
