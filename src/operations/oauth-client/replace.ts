// The way out of a lost secret (§4.2: "revoke the client, confirm, create a replacement with a new key"), one piece of work
// over two entries: the lost one names its replacement before anything is revoked, and is settled last.
import { Failure } from "../../errors.ts";
import { type Entry, isSettled, revokedFirst } from "../../journal/entry.ts";
import type { EntryLease, Journal } from "../../journal/journal.ts";
import type { Destination } from "../../secrets/destination.ts";
import {
  begunReplacement,
  refuseReplacement,
  settleReplaced,
  reserveBeforeRevocation,
  settleIfFound,
} from "../delivery-recovery.ts";
import { goneOnPurpose, markRevoking, untilClientRevoked } from "../revocation.ts";
import { assertAsAsked, secretLost, undelivered, releaseReserved } from "../secret-delivery.ts";
import { readUntilAnswered } from "../sending.ts";
import { detailsOf, madeAs, recoveryIn, saysNothingWasDone, withReason, type Workbench } from "../workbench.ts";
import { type CreationOptions, type CreationEnd, finishCreation } from "./create.ts";

export interface ReplacementOptions {
  /** Where the secret of an entry goes. */
  readonly destinationOf: (entry: Entry) => Promise<Destination>;
  readonly waitMs: number;
  /** Asked once for each lost secret; no means that nothing is revoked. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
}

/**
 * Completes a creation that may have lost its secret: found, created, or replaced once a person has agreed.
 * @returns the entry that is done, with the receipt if there was one to be had
 * @throws Failure `secret_lost` if no one agreed
 */
export async function finishOrReplace(
  bench: Workbench,
  lease: EntryLease,
  options: ReplacementOptions,
): Promise<{ readonly entry: Entry; readonly receipt?: string }> {
  assertAsAsked(lease.entry);
  const begun = await begunReplacement(bench.journal, lease.entry);
  const isUnsent = begun?.attempts === 0 && lease.entry.detail.revoking !== true;
  if ((begun === undefined || isUnsent) && (await foundMeanwhile(bench, lease, begun))) return { entry: lease.entry };
  if (begun === undefined) await assertClientNotRevoked(bench, lease);
  const { waitMs } = options;
  const creation = { destination: await options.destinationOf(begun ?? lease.entry), waitMs };
  const end = lease.entry.state === "secret_lost" ? undefined : await finishCreation(bench, lease, creation);
  if (end !== undefined && end.kind !== "secret_lost") return end;
  // A replacement that was started was agreed to then.
  const isAgreed = begun !== undefined || (await options.mayReplace(lease.entry));
  if (!isAgreed) throw secretLost(lease.entry, { requestId: end?.requestId, here: bench.secrets.place });
  const replaced = await replaceLostSecret(bench, lease, creation);
  if (replaced.kind !== "secret_lost") return replaced;
  // One of this run's own that was lost as well is enough; one that an earlier run had started is replaced like any other.
  if (begun === undefined) throw secretLost(replaced.entry, replaced);
  const next = await bench.journal.lease(replaced.entry.id);
  try {
    return await finishOrReplace(bench, next, options);
  } finally {
    await next.release();
  }
}

/** Settles what is found, and ends the replacement that was started for it and never sent. @returns as `settleIfFound` */
async function foundMeanwhile(bench: Workbench, lease: EntryLease, begun: Entry | undefined): Promise<boolean> {
  try {
    return await settleIfFound(bench, lease);
  } finally {
    const { id, state } = lease.entry;
    if (begun !== undefined && state !== "secret_lost") {
      const unneeded = await bench.journal.lease(begun.id);
      try {
        await refuseReplacement(bench, unneeded, `the secret of ${id} was found`);
      } finally {
        await unneeded.release();
      }
    }
  }
}

/**
 * A client that someone has revoked since its secret was lost, or that was disabled, is not replaced: that was on purpose.
 * @throws Failure `unusable`, and the entry is settled; or of the read, and nothing was revoked
 */
async function assertClientNotRevoked(bench: Workbench, lease: EntryLease): Promise<void> {
  const { state, resource_id: id, detail } = lease.entry;
  if (state !== "secret_lost" || id === null || detail.revoking === true) return;
  const { oauthClients } = bench.account.service;
  const asked = readUntilAnswered(bench, () => oauthClients.get(id), { what: "get the OAuth client" });
  const client = await asked.catch(orNotShown);
  if (client === undefined || client.status === "active" || client.status === "pending") return;
  throw await goneOnPurpose(bench, lease, `The client ${id}, whose secret is lost, is ${client.status}`);
}

/** A service that refuses to show a client says nothing about it; one that cannot be asked now is asked again later. */
function orNotShown(error: unknown): undefined {
  if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return;
  throw error;
}

/**
 * Revokes a client whose secret is lost, sees it revoked, and creates another one like it under a new key. Started work of
 * this kind is resumed. The new secret goes to `options.destination`.
 * @param lost the entry in state `secret_lost`, held by this process
 */
export async function replaceLostSecret(
  bench: Workbench,
  lost: EntryLease,
  options: CreationOptions,
): Promise<CreationEnd> {
  try {
    const begun = await begunReplacement(bench.journal, lost.entry);
    const isOver = begun && (isSettled(begun.state) || begun.state === "undelivered");
    return isOver ? await concludeReplacement(bench, lost, begun) : await replaceNow(bench, lost, { begun, options });
  } catch (error) {
    if (!(error instanceof Failure) || !saysNothingWasDone(error)) throw error;
    // What stopped the replacement is not all that a person has to know.
    const { message, details } = secretLost(lost.entry);
    throw new Failure("secret_lost", withReason(`${message} It could not be replaced`, error), {
      ...details,
      ...recoveryIn(error.details),
      cause: error,
    });
  }
}

async function replaceNow(
  bench: Workbench,
  lost: EntryLease,
  { begun, options }: { readonly begun: Entry | undefined; readonly options: CreationOptions },
): Promise<CreationEnd> {
  const replacement = begun
    ? await bench.journal.lease(begun.id)
    : await admitReplacement(bench, lost.entry, { ...(await options.destination.check()) });
  try {
    await reserveBeforeRevocation(bench, replacement, options.destination);
    await revokeLost(bench, lost).catch(async (error: unknown) => {
      await releaseReserved(bench, replacement.entry, options.destination);
      throw error;
    });
    const end = await finishCreation(bench, replacement, options);
    await settleReplaced(bench, lost, end.entry);
    return end;
  } catch (error) {
    if (replacement.entry.state === "undelivered") await settleReplaced(bench, lost, replacement.entry);
    throw error;
  } finally {
    await replacement.release();
  }
}

/** A replacement that was finished before a crash: nothing is sent for it again. */
async function concludeReplacement(bench: Workbench, lost: EntryLease, begun: Entry): Promise<CreationEnd> {
  await revokeLost(bench, lost);
  await settleReplaced(bench, lost, begun);
  if (begun.state === "undelivered") throw undelivered(begun, "an earlier run could not deliver it.", bench.secrets);
  const entry = await lastReplacement(bench.journal, begun);
  return { kind: "delivered_before", entry, receipt: await clientReceipt(bench, entry) };
}

/** What is at the end of a row of replacements. */
async function lastReplacement(journal: Journal, entry: Entry): Promise<Entry> {
  if (entry.replaced_by === null) return entry;
  const [next] = await journal.select({ all: true, ids: [entry.replaced_by] });
  return next ? lastReplacement(journal, next) : entry;
}

/** The receipt of a client whose secret was delivered before, as the service shows it now. */
export async function clientReceipt(bench: Workbench, { resource_id }: Entry): Promise<string> {
  const answer = await bench.account.service.oauthClients.get(resource_id ?? "");
  return answer.kind === "answered" ? answer.body.toString() : JSON.stringify({ id: resource_id, client_secret: null });
}

async function admitReplacement(bench: Workbench, lost: Entry, destination: Entry["destination"]): Promise<EntryLease> {
  const { lease } = await bench.journal.admit(
    {
      ...madeAs(lost),
      operation: "oauth_client.create",
      method: "POST",
      path: "/v1/oauth_clients",
      request_text: lost.request_text,
      fingerprint: lost.fingerprint,
      idempotent: true,
      replaces: lost.id,
      destination,
      parent: lost.parent ?? undefined,
      detail: { own_key: true },
    },
    { fresh: true },
  );
  return lease;
}

async function revokeLost(bench: Workbench, lost: EntryLease): Promise<void> {
  const { id: entry, resource_id: id } = lost.entry;
  if (!id) throw new Failure("failed", `The entry ${entry} does not name its client.`, detailsOf(lost.entry));
  if (await isRevokedForAnother(bench.journal, lost.entry)) return;
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await untilClientRevoked(bench, id, {
    grounds: { kind: "secret_lost", entry },
    lease: lost,
    mark: () => markRevoking(lost),
  });
}

async function isRevokedForAnother(journal: Journal, lost: Entry): Promise<boolean> {
  return (await journal.select({ all: true, replaces: lost.id })).some((entry) => revokedFirst(entry) === lost.id);
}
