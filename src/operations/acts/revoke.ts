// The act `revoke`: revokes a client or key. The DELETE request may be repeated (§4.2, RFC 9110 §9.2.2).
import type { AccessKey } from "../../api/access-keys.ts";
import type { Attempt } from "../../api/call/attempt.ts";
import type { Service } from "../../api/connect.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import { Failure } from "../../errors.ts";
import { type Entry, isGuess, nextStep, lastErrorOf } from "../../journal/entry.ts";
import type { EntryLease } from "../../journal/journal.ts";
import { type NextCommand, shell } from "../../next-step.ts";
import type { Proof } from "../next.ts";
import { assertMayContinue, delayBeforeNext, waitUntilDue, wait } from "../sending.ts";
import { entryFailure, recordOrWarn, type Workbench } from "../workbench.ts";
import { send } from "./send.ts";

export type RevocationGrounds =
  | { readonly kind: "named" }
  /** `look` checks the successor again before each request. */
  | { readonly kind: "replaced"; readonly look: () => Promise<Successor> }
  /** The replacement of the lost secret was permitted, now or in an earlier run. */
  | { readonly kind: "secret_lost" };

export interface Successor {
  readonly id: string;
  readonly proof: Proof | undefined;
  /** Destinations that have not received the new secret. */
  readonly missing: readonly string[];
  /** Destinations that received the new secret, but lack it now or have a secret that no longer works. */
  readonly lostFrom: readonly string[];
}

interface RevocationAnswers {
  readonly "revoke client": OAuthClient;
  readonly "revoke key": AccessKey;
}

export interface RevocationOptions {
  readonly grounds: RevocationGrounds;
  readonly lease: EntryLease;
  /** Used in place of the workbench's service if the profile's credential was replaced. */
  readonly service?: Service | undefined;
}

export interface Revocation<C extends keyof RevocationAnswers, R> extends RevocationOptions {
  readonly change: C;
  readonly id: string;
  /** @returns a failure if the response does not show the revocation. @throws Failure if a repeated request cannot help */
  readonly read: (answer: Attempt<RevocationAnswers[C]>, earlier: readonly Attempt<unknown>[]) => Promise<R | Failure>;
}

export async function revoke<C extends keyof RevocationAnswers, R>(
  bench: Workbench,
  { change, id, service = bench.account.service, read, grounds, lease }: Revocation<C, R>,
): Promise<R> {
  const startedAt = bench.clock.elapsed();
  await waitUntilDue(bench, lease.entry);
  for (const earlier: Attempt<unknown>[] = []; ; ) {
    assertMayContinue(bench);
    // If the token were fetched after the look, the successor could change meanwhile.
    const unsent = await service.authorize(change === "revoke client" ? "v1" : "legacy");
    await assertGrounds(grounds, lease.entry).catch((error: unknown) => {
      if (!(error instanceof Failure) || earlier.every(isWithoutEffect)) throw error;
      const meaning = "An earlier request may have revoked the old credential. integ does not send it again.";
      throw new Failure(error.kind, error.message, { ...error.details, meaning });
    });
    await recordBefore(lease, id);
    const answer = unsent ?? (await send<C>(bench, lease, { change, id, service }));
    const end = await read(answer, earlier);
    if (!(end instanceof Failure)) return end;
    if (!isWithoutEffect(answer) && isOwn(lease.entry)) {
      const recorded = await recordOrWarn(bench, lease, { state: "unknown", last_error: lastErrorOf(end) });
      if (!recorded) throw end;
    }
    // Saves the `put_off_until` that `send` has noted, so that other processes wait too.
    else if (lease.entry.detail.put_off_until !== undefined) await recordOrWarn(bench, lease, {});
    earlier.push(answer);
    const delay = delayBeforeNext(bench, answer, { attempt: earlier.length, startedAt });
    if (delay === null) throw end;
    await wait(bench, delay, `${end.message} Trying again`);
  }
}

const isWithoutEffect = ({ kind }: Attempt<unknown>): boolean => kind === "refused" || kind === "not_sent";

const isOwn = ({ operation }: Entry): boolean => operation.endsWith(".revoke");

/** A later run must know that integ itself may have revoked the credential. */
async function recordBefore(lease: EntryLease, id: string): Promise<void> {
  const { operation, state, attempts, detail } = lease.entry;
  const isOfRotation = operation.endsWith(".rotate");
  if (isOwn(lease.entry))
    await lease.record({ attempts: attempts + 1, resource_id: id, detail: { ...detail, in_flight: true } });
  else await lease.record({ state: isOfRotation ? "pending" : state, detail: { ...detail, revoking: true } });
}

export const revokeStep = (noun: "client" | "key", id: string): NextCommand =>
  noun === "key" ? shell`integ keys revoke ${id}` : shell`integ oauth-clients revoke ${id}`;

async function assertGrounds(grounds: RevocationGrounds, entry: Entry): Promise<void> {
  if (grounds.kind === "secret_lost" && isGuess(entry)) throw uncertainKeyFailure(entry);
  if (grounds.kind !== "replaced") return;
  const { id, proof, missing, lostFrom } = await grounds.look();
  if (proof === undefined)
    throw new Failure("pending", `It is not known whether ${id} works: the old one is not revoked.`);
  if (id === "") throw new Failure("failed", "The id of the new credential is not known: the old one is not revoked.");
  if (missing.length > 0)
    throw new Failure("undelivered", `The new secret has not reached ${missing.join(", ")}.`, {
      meaning: "The old credential is not revoked before every destination has the new secret.",
    });
  if (lostFrom.length > 0)
    throw new Failure(
      "pending",
      `The secret of ${id} was delivered to ${lostFrom.join(", ")}, and is not there now, or no longer works.`,
      {
        meaning:
          "The old credential is not revoked: programs that read this destination may still use it. Put the new secret back before you continue, or revoke the old credential yourself if no program uses it any more.",
      },
    );
}

/** A key that was found only by its name and time may be another person's, so integ revokes it only if a person names its id. */
export function uncertainKeyFailure(entry: Entry): Failure {
  return entryFailure(entry, "secret_lost", `The key ${entry.resource_id} may be the one that ${entry.id} created.`, {
    meaning: "Nothing was revoked. Its name and time fit, and another person's key can look the same.",
    hint: "Look at it with integ keys list. Revoke and replace it only if its secret is nowhere in use.",
    nextCommand: nextStep(entry) ?? undefined,
  });
}
