// The creation of a client or key, from any point that it had reached: what is on this machine is delivered, the request sent,
// what it made looked for, and a lost secret replaced if that is agreed to (§4.2). What differs: client.ts, key.ts.
import { Failure, onFailure, withReason, saysNothingWasDone } from "../errors.ts";
import { type Entry, isGuess, isPutOff, isSameRequest, isSettled, mayHaveArrived, nextStep } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import { flags } from "../next-step.ts";
import { type Destination, isPartlyDelivered, type OneTimeSecret, placesOf } from "../secrets/destination.ts";
import { assertPartMayGo, assertTrusted } from "./acts/overwrite.ts";
import { next } from "./next.ts";
import {
  assertAsAsked,
  completeDelivery,
  reserveDestination,
  releaseReserved,
  type SecretDelivery,
  type SecretWork,
  secretLost,
  type TakenUp,
  undelivered,
} from "./secret-delivery.ts";
import { type Credential, unlessHidden } from "./revocation.ts";
import { admitTo, assertQuiet } from "./sending.ts";
import { entryFailure, holding, isoTime, recordAfterwards, recoveryIn, type Workbench } from "./workbench.ts";

export interface CreationOptions {
  /** Where the secret of an entry goes: asked for now, else where the original command wanted it. */
  readonly destinationOf: (entry: Entry) => Destination | Promise<Destination>;
  /** Asks once for each lost secret. Without a yes, nothing is revoked. */
  readonly mayReplace?: ((entry: Entry) => Promise<boolean>) | undefined;
  /** `--revoke <id>`: a person named what is revoked. */
  readonly revokes?: string | undefined;
  /** How long to wait for a pending client, or for a key to appear in the list, in milliseconds; default: 0. */
  readonly waitMs?: number;
  /** An idempotency key that was typed with this command: its receipt is asked for, whatever the journal says. */
  readonly key?: string | undefined;
  readonly claimedBy?: SecretDelivery["claimedBy"];
}

/** A creation under way. */
export interface CreationWork extends SecretWork, CreationOptions {}

/** How a creation ended. */
export interface Made {
  /** `delivered_before`: by an earlier process; `nothing_made`: certainly none exists; after a lost secret other work follows. */
  readonly kind: "delivered" | "delivered_before" | "secret_lost" | "nothing_made";
  readonly entry: Entry;
  /** The API's object: with the secret if it came in this process. */
  readonly receipt?: string | undefined;
  readonly secret?: OneTimeSecret;
  readonly requestId?: string | undefined;
}

export interface CreationContract extends Credential {
  /** Resumes the delivery of a secret that an earlier process left. @returns nothing if it is nowhere */
  takeUp(work: CreationWork): Promise<TakenUp | undefined>;
  /** Sends the stored request until it is known what became of it, and delivers the secret. */
  send(work: CreationWork): Promise<Made>;
  /** Looks for what a request without a key made. @returns nothing if that is found, and its secret is lost */
  look?(work: CreationWork): Promise<Made | undefined>;
  /** @throws Failure if the lost one is in use: its secret is not lost */
  assertUnused?(bench: Workbench, lost: Entry): Promise<void>;
  /** The same request once more, as an intent of its own. @throws Failure `usage` if it cannot be sent any more */
  again(bench: Workbench, lost: Entry): Intent;
  /** The receipt of what was delivered before, as the service shows it now. */
  receiptNow?(bench: Workbench, entry: Entry): Promise<string>;
}

/** A requested creation. */
export interface AskedCreation extends Omit<CreationOptions, "destinationOf"> {
  readonly destination: Destination;
  /** `--new`: leave unfinished work of the same request alone. */
  readonly fresh?: boolean | undefined;
}

/** Creates a client or key, or finishes the unfinished creation of the same one; the journal holds what may have happened. */
export async function create(
  contract: CreationContract,
  bench: Workbench,
  intent: Intent,
  asked: AskedCreation,
): Promise<Made> {
  const { destination, fresh, key } = asked;
  const since = isoTime(bench.clock.now());
  // Typed again, what was delivered needs no space at its destination.
  const isThere = async (resumed: EntryLease): Promise<boolean> =>
    (await completeDelivery(bench, resumed)) || isPartlyDelivered(resumed.entry);
  const { kind, lease, alongside = [] } = await admitTo(bench, intent, { destination, fresh, key, isThere });
  return holding(lease, async () => {
    for (const { entry, holder } of alongside)
      bench.tell.warn(
        `${holder.user} on ${holder.host} (process ${holder.pid}) has been creating the same one since ${holder.since} (journal entry ${entry}). This creates another one.`,
      );
    if (kind === "resumed")
      bench.tell.note(`Resuming the unfinished creation ${lease.entry.id}${howResumed(lease.entry)}`);
    const made = await finishCreation(contract, { ...asked, bench, lease, destinationOf: () => destination });
    // After an older entry of a team others may have come that ended long ago.
    if (kind === "new" || !bench.journal.isShared) await tellSimultaneous(bench, lease.entry, since);
    return made;
  });
}

/** How an unfinished one continues, as the sentence ends. @throws Failure `outcome_unknown`: without a key no second one is made */
function howResumed(entry: Entry): string {
  if (entry.idempotency_key !== null) return `, under its own key (${flags.new} starts another).`;
  if (!mayHaveArrived(entry)) return `: ${whyUnfinished(entry)}.`;
  const message = "The same key was requested before, and it is not known whether it was created.";
  throw entryFailure(entry, "outcome_unknown", message, {
    meaning: `Nothing was sent now. Recover that creation first; ${flags.new} creates another key anyway.`,
    nextCommand: nextStep(entry) ?? undefined,
  });
}

/** The ends of an entry's earlier requests, none of which changed anything. */
export function whyUnfinished(entry: Entry): string {
  return isPutOff(entry) ? "the service refused it as too early" : "it was never sent";
}

/** Completes a creation. @throws Failure `secret_lost` without consent to a replacement */
export async function finishCreation(
  contract: CreationContract,
  asked: Omit<CreationWork, "destination">,
): Promise<Made> {
  const { bench, lease } = asked;
  const wasSent = lease.entry.attempts > 0;
  const replacements = wasSent ? await bench.journal.select({ all: true, replaces: lease.entry.id }) : [];
  const begun = replacements.find((entry) => !cameToNothing(entry));
  const work = { ...asked, destination: await asked.destinationOf(begun ?? lease.entry) };
  let end: Made | undefined;
  const wasLost = lease.entry.state === "secret_lost";
  if (asked.key === undefined) {
    assertAsAsked(lease.entry);
    if (lease.entry.idempotency_key === null) assertQuiet(lease);
    const isUnsent = begun?.attempts === 0 && lease.entry.detail.revoking !== true;
    const found =
      wasSent && (begun === undefined || isUnsent) ? await foundMeanwhile(contract, work, begun) : undefined;
    if (found !== undefined) return { kind: "delivered_before", entry: lease.entry, ...found };
  } else end = await contract.send(work);
  for (; end === undefined || end.kind === "secret_lost"; ) {
    const step = end === undefined ? next(lease.entry) : "replace";
    // Another process ended it while this one waited for its lease.
    if (step === "end" && lease.entry.state !== "done") return { kind: "nothing_made", entry: lease.entry };
    if (step === "end") return deliveredBefore(contract, bench, lease.entry);
    if (step === "replace") return replaceLost(contract, { work, end, begun, wasLost });
    end = step === "look" ? await contract.look?.(work) : await contract.send(work);
  }
  return end;
}

/** Looks for the secret, and ends the replacement that was started for it and never sent, if it is not lost. */
async function foundMeanwhile(contract: CreationContract, work: CreationWork, begun: Entry | undefined) {
  const { bench, lease } = work;
  try {
    return await contract.takeUp(work);
  } finally {
    if (begun !== undefined && lease.entry.state !== "secret_lost") {
      const why = `the secret of ${lease.entry.id} was found`;
      await holding(await bench.journal.lease(begun.id), (unneeded) => refuseReplacement(bench, unneeded, why));
    }
  }
}

async function deliveredBefore(contract: CreationContract, bench: Workbench, entry: Entry): Promise<Made> {
  return { kind: "delivered_before", entry, receipt: await contract.receiptNow?.(bench, entry) };
}

interface Lost {
  readonly work: CreationWork;
  readonly end: Made | undefined;
  readonly begun: Entry | undefined;
  /** An earlier process called it lost: someone may have acted since. */
  readonly wasLost: boolean;
}

/** Replaces a lost secret's client or key, if that is agreed to; a replacement that was started was agreed to then. */
async function replaceLost(contract: CreationContract, lost: Lost): Promise<Made> {
  const { work, end, begun, wasLost } = lost;
  const { bench, lease } = work;
  if (begun !== undefined) await assertTrusted(bench, [begun.id]);
  else {
    if (wasLost || contract.noun === "key") await assertNotRevoked(contract, work);
    const isNamed = work.revokes !== undefined && work.revokes === lease.entry.resource_id;
    if (isNamed && isGuess(lease.entry))
      await lease.record({ detail: { ...lease.entry.detail, orphan_certain: true } });
    if (isGuess(lease.entry) || !(isNamed || (await work.mayReplace?.(lease.entry))))
      throw secretLost(lease.entry, { requestId: end?.requestId, here: bench.secrets.place });
  }
  const { id, resource_id } = lease.entry;
  if (!resource_id) throw entryFailure(lease.entry, "failed", `The entry ${id} does not name its ${contract.noun}.`);
  try {
    return await replaceNow(contract, lost);
  } catch (error) {
    if (!(error instanceof Failure) || !saysNothingWasDone(error) || lease.entry.state !== "secret_lost") throw error;
    const { message, details } = secretLost(lease.entry);
    throw new Failure("secret_lost", withReason(`${message} It could not be replaced`, error), {
      ...details,
      ...recoveryIn(error.details),
      cause: error,
    });
  }
}

/** The new entry is on disk before anything is revoked, and sent after the lost one was seen revoked. */
async function replaceNow(contract: CreationContract, { work, begun }: Lost): Promise<Made> {
  const { bench, lease, destination } = work;
  const { id: replaces, parent } = lease.entry;
  const replacement = begun
    ? await bench.journal.lease(begun.id)
    : await admitPart(bench, destination, { ...contract.again(bench, lease.entry), parent, replaces });
  const settle = (): Promise<boolean> =>
    recordAfterwards(bench, lease, { state: "replaced", replaced_by: replacement.entry.id, last_error: null });
  try {
    // Another process ended it while this one waited for its lease.
    if (cameToNothing(replacement.entry)) return await finishCreation(contract, work);
    const { attempts, state } = replacement.entry;
    const isOver = isSettled(state) || state === "undelivered";
    try {
      if (!isOver && attempts === 0 && !(await completeDelivery(bench, replacement)))
        // Made ready before anything is revoked; a replacement whose destination cannot be is refused.
        await reserveDestination(bench, replacement, { destination }).catch(async (error: unknown) => {
          await recordAfterwards(bench, replacement, { state: "refused" });
          throw error;
        });
      await revokeBefore(contract, work);
    } catch (error) {
      await releaseReserved(bench, replacement.entry, destination);
      throw error;
    }
    // Without an idempotency key, recovery must search the list for this replacement only: link it to the lost entry before it is sent.
    const settlesFirst = replacement.entry.idempotency_key === null;
    if (settlesFirst || isOver) await settle();
    if (state === "undelivered")
      throw undelivered(replacement.entry, "an earlier run could not deliver it.", bench.secrets);
    if (isOver) return await deliveredBefore(contract, bench, await lastReplacement(bench.journal, replacement.entry));
    // One of this run's own that was lost as well is enough; one that an earlier run had started is replaced like any other.
    const mayReplace = begun && work.mayReplace;
    const again = { ...work, lease: replacement, key: undefined, mayReplace, destinationOf: () => destination };
    const made = await finishCreation(contract, again);
    if (!settlesFirst) await settle();
    return made;
  } catch (error) {
    const isStanding = replacement.entry.state === "undelivered" || replacement.entry.state === "secret_lost";
    if (isStanding && lease.entry.state !== "replaced") await settle();
    throw error;
  } finally {
    await replacement.release();
  }
}

/** Admits a part of larger work, with the place of its secret. */
export async function admitPart(bench: Workbench, destination: Destination, intent: Intent): Promise<EntryLease> {
  const place = { ...(await destination.check()) };
  await assertPartMayGo(bench, intent, placesOf(place));
  return (await bench.journal.admit({ ...intent, destination: place }, { fresh: true })).lease;
}

/** @throws Failure `unusable` if someone has ended the client or key since its secret was lost: that was on purpose */
async function assertNotRevoked(contract: CreationContract, { bench, lease }: CreationWork): Promise<void> {
  const { resource_id: id, detail } = lease.entry;
  if (id === null || detail.revoking === true) return;
  const status = await contract.statusOf(bench, id).catch(unlessHidden);
  const how = contract.endOf(status);
  if (how === undefined) return;
  await recordAfterwards(bench, lease, { state: "unusable", last_error: null });
  const what = `The ${contract.noun} ${id}, whose secret is lost, ${how}, and integ did not revoke it.`;
  throw entryFailure(lease.entry, "unusable", what, {
    meaning: "Nothing was sent, and nothing is created in its place. If you still need one, create another.",
  });
}

/** A replacement is sent only after the service showed that the lost credential is revoked. */
async function revokeBefore(contract: CreationContract, { bench, lease }: CreationWork): Promise<void> {
  const { id: entry, resource_id: id } = lease.entry;
  const others = await bench.journal.select({ all: true, replaces: entry });
  if (others.some(({ attempts }) => attempts > 0)) return;
  await contract.assertUnused?.(bench, lease.entry);
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await contract.revoke(bench, id ?? "", { grounds: { kind: "secret_lost" }, lease });
}

async function lastReplacement(journal: Journal, entry: Entry): Promise<Entry> {
  if (entry.replaced_by === null) return entry;
  const [by] = await journal.select({ all: true, ids: [entry.replaced_by] });
  return by ? lastReplacement(journal, by) : entry;
}

/** Nothing of an entry that failed is in use. */
function cameToNothing({ state }: Entry): boolean {
  return state === "refused" || state === "abandoned" || state === "unusable";
}

/** Ends a replacement that was never sent. @param why as it ends a sentence */
export async function refuseReplacement(bench: Workbench, lease: EntryLease, why: string): Promise<void> {
  const { id } = lease.entry;
  await lease.record({ state: "refused", last_error: null });
  await releaseReserved(bench, lease.entry);
  bench.tell.note(`Nothing was sent for ${id}: ${why}.`);
}

/** Says which other creations of the same request were under way since this one began, and how to revoke one. */
async function tellSimultaneous(bench: Workbench, own: Entry, since: string): Promise<void> {
  // Only one process continues a policy item.
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
  // The error names the newest client only: if two logs named each other's client, a person could revoke both.
  const newest = [own, ...others].reduce((latest, entry) => (entry.id > latest.id ? entry : latest));
  const next = newest.resource_id === null ? `journal show ${newest.id}` : `${noun} revoke ${newest.resource_id}`;
  bench.tell.warn(`The same ${what} was created at the same moment: ${names}. If you need only one: integ ${next}`);
}
