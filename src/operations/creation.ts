// The creation of a client or key, from any point that it had reached: what is on this machine is delivered, the request sent,
// what it made looked for, and a lost secret replaced if that is agreed to (§4.2: "revoke the client, confirm, create a
// replacement with a new key"). What the two contracts make of the steps: client.ts, key.ts.
import { Failure, onFailure } from "../errors.ts";
import {
  type Entry,
  isGuess,
  isPutOff,
  isSameRequest,
  isSettled,
  mayHaveArrived,
  nextStep,
  revokedFirst,
} from "../journal/entry.ts";
import type { Admission, EntryLease, Intent, Journal } from "../journal/journal.ts";
import { flags } from "../next-step.ts";
import { type Destination, type OneTimeSecret, placesOf } from "../secrets/destination.ts";
import { assertPartMayGo, assertTrusted } from "./acts/overwrite.ts";
import { completeDelivery, isPartlyDelivered, type TakenUp } from "./delivery-recovery.ts";
import { next } from "./next.ts";
import {
  assertAsAsked,
  reserveDestination,
  releaseReserved,
  type SecretDelivery,
  type SecretWork,
  secretLost,
  undelivered,
} from "./secret-delivery.ts";
import { type Credential, unlessHidden } from "./revocation.ts";
import { admitTo, assertQuiet } from "./sending.ts";
import {
  detailsOf,
  holding,
  isoTime,
  recordAfterwards,
  recoveryIn,
  saysNothingWasDone,
  withReason,
  type Workbench,
} from "./workbench.ts";

export interface CreationOptions {
  /** Where the secret of an entry goes: asked for now, else where the original command wanted it. */
  readonly destinationOf: (entry: Entry) => Promise<Destination>;
  /** Asked once for each lost secret; no, or no one to ask, means that nothing is revoked. */
  readonly mayReplace?: ((entry: Entry) => Promise<boolean>) | undefined;
  /** `--revoke <id>`: a person named what is revoked. */
  readonly revokes?: string | undefined;
  /** How long a pending client, or a list that may be too early, is waited for, milliseconds; by default not at all. */
  readonly waitMs?: number;
  /** Proves the secret before it is delivered: for one that replaces a credential in use. */
  readonly prove?: ((secret: string) => Promise<void>) | undefined;
  /** An idempotency key that was typed with this command: its receipt is asked for, whatever the journal says. */
  readonly key?: string | undefined;
  readonly claimedBy?: SecretDelivery["claimedBy"];
}

/** A creation under way. */
export interface CreationWork extends SecretWork, Omit<CreationOptions, "destinationOf" | "mayReplace" | "revokes"> {}

/** How a creation ended. */
export interface Made {
  /**
   * `delivered_before`: by an earlier process; the receipt shows the client as it is now. `nothing_made`: certainly none
   * exists. After a lost secret other work follows.
   */
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
  receiptNow(bench: Workbench, entry: Entry): Promise<string | undefined>;
}

/** A creation as it is asked for. */
export interface AskedCreation extends Omit<CreationOptions, "destinationOf"> {
  readonly destination: Destination;
  /** `--new`: leave an unfinished creation of the same request alone. */
  readonly fresh?: boolean | undefined;
}

/**
 * Creates a client or key, or finishes the unfinished creation of the same one.
 * @throws Failure of every kind that the contract knows; the journal holds what may have happened
 */
export async function create(
  contract: CreationContract,
  bench: Workbench,
  intent: Intent,
  { destination, fresh, ...options }: AskedCreation,
): Promise<Made> {
  const since = isoTime(bench.clock.now());
  const admission = await admitTo(bench, intent, {
    destination,
    choice: { fresh, key: options.key },
    // Typed again, what was delivered needs no space at its destination.
    isThere: async (resumed) => (await completeDelivery(bench, resumed)) || isPartlyDelivered(resumed.entry),
  });
  const { kind, lease } = admission;
  return holding(lease, async () => {
    tellAlongside(bench, admission);
    if (kind === "resumed")
      bench.tell.note(`Resuming the unfinished creation ${lease.entry.id}${howResumed(lease.entry)}`);
    const destinationOf = (): Promise<Destination> => Promise.resolve(destination);
    const made = await finishCreation(contract, { bench, lease }, { ...options, destinationOf });
    // After an older entry of a team others may have come that ended long ago.
    if (kind === "new" || !bench.journal.isShared) await tellSimultaneous(bench, lease.entry, since);
    return made;
  });
}

/**
 * How an unfinished one continues, as the sentence ends.
 * @throws Failure `outcome_unknown` if it has no key and may have arrived: a second one is not created automatically
 */
function howResumed(entry: Entry): string {
  if (entry.idempotency_key !== null) return `, under its own key (${flags.new} starts another).`;
  if (!mayHaveArrived(entry)) return `: ${whyUnfinished(entry)}.`;
  const message = "The same key was requested before, and it is not known whether it was created.";
  throw new Failure("outcome_unknown", message, {
    ...detailsOf(entry),
    meaning: `Nothing was sent now. Recover that creation first; ${flags.new} creates another key anyway.`,
    nextCommand: nextStep(entry) ?? undefined,
  });
}

/** How earlier requests of an entry ended, of which none changed anything. */
export function whyUnfinished(entry: Entry): string {
  return isPutOff(entry) ? "the service refused it as too early" : "it was never sent";
}

/**
 * Completes a creation from the point that it had reached.
 * @returns the end of the entry, or of the one that replaces it
 * @throws Failure `secret_lost` if no one agreed to a replacement
 */
export async function finishCreation(
  contract: CreationContract,
  { bench, lease }: { readonly bench: Workbench; readonly lease: EntryLease },
  options: CreationOptions,
): Promise<Made> {
  const { destinationOf, mayReplace: _, revokes: __, ...about } = options;
  const wasSent = lease.entry.attempts > 0;
  const begun = wasSent ? await begunReplacement(bench.journal, lease.entry) : undefined;
  const work = { bench, lease, destination: await destinationOf(begun ?? lease.entry), ...about };
  let end: Made | undefined;
  const wasLost = lease.entry.state === "secret_lost";
  if (options.key === undefined) {
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
    if (step === "replace") return replaceLost(contract, { work, options, end, begun, wasLost });
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

export async function deliveredBefore(contract: CreationContract, bench: Workbench, entry: Entry): Promise<Made> {
  return { kind: "delivered_before", entry, receipt: await contract.receiptNow(bench, entry) };
}

interface Lost {
  readonly work: CreationWork;
  readonly options: CreationOptions;
  readonly end: Made | undefined;
  readonly begun: Entry | undefined;
  /** An earlier process called it lost: someone may have acted since. */
  readonly wasLost: boolean;
}

/**
 * Revokes what the lost entry made, sees it revoked, and makes another like it under a new key. The new entry is on disk before
 * anything is revoked; a replacement that was started is resumed, and was agreed to then.
 */
async function replaceLost(contract: CreationContract, lost: Lost): Promise<Made> {
  const { work, options, end, begun, wasLost } = lost;
  const { bench, lease } = work;
  if (begun !== undefined) await assertTrusted(bench, [begun.id]);
  else {
    if (wasLost || contract.noun === "key") await assertNotRevoked(contract, work);
    const isNamed = options.revokes !== undefined && options.revokes === lease.entry.resource_id;
    if (isNamed && isGuess(lease.entry))
      await lease.record({ detail: { ...lease.entry.detail, orphan_certain: true } });
    if (isGuess(lease.entry) || !(isNamed || (await options.mayReplace?.(lease.entry))))
      throw secretLost(lease.entry, { requestId: end?.requestId, here: bench.secrets.place });
  }
  const { id, resource_id } = lease.entry;
  if (!resource_id)
    throw new Failure("failed", `The entry ${id} does not name its ${contract.noun}.`, detailsOf(lease.entry));
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

async function replaceNow(contract: CreationContract, { work, options, begun }: Lost): Promise<Made> {
  const { bench, lease, destination } = work;
  const { id: replaces, parent } = lease.entry;
  const replacement = begun
    ? await bench.journal.lease(begun.id)
    : await admitPart(bench, destination, { ...contract.again(bench, lease.entry), parent, replaces });
  try {
    // Another process ended it while this one waited for its lease.
    if (cameToNothing(replacement.entry)) return await finishCreation(contract, work, options);
    const { attempts, state } = replacement.entry;
    const isOver = isSettled(state) || state === "undelivered";
    if (!isOver && attempts === 0) await reserveBeforeRevocation(bench, replacement, destination);
    await revokeBefore(contract, work).catch(async (error: unknown) => {
      await releaseReserved(bench, replacement.entry, destination);
      throw error;
    });
    // Without a key, what may have arrived is looked for alone: the replacement stands for the work before it is sent.
    const settlesFirst = replacement.entry.idempotency_key === null;
    if (settlesFirst || isOver) await settleReplaced(bench, lease, replacement.entry);
    if (state === "undelivered")
      throw undelivered(replacement.entry, "an earlier run could not deliver it.", bench.secrets);
    if (isOver) return await deliveredBefore(contract, bench, await lastReplacement(bench.journal, replacement.entry));
    // One of this run's own that was lost as well is enough; one that an earlier run had started is replaced like any other.
    const mayReplace = begun && options.mayReplace;
    const again = { ...options, key: undefined, mayReplace, destinationOf: () => Promise.resolve(destination) };
    const made = await finishCreation(contract, { bench, lease: replacement }, again);
    if (!settlesFirst) await settleReplaced(bench, lease, replacement.entry);
    return made;
  } catch (error) {
    const isStanding = replacement.entry.state === "undelivered" || replacement.entry.state === "secret_lost";
    if (isStanding && lease.entry.state !== "replaced") await settleReplaced(bench, lease, replacement.entry);
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

/**
 * A client or key that someone has ended since its secret was lost is not replaced: that was on purpose. A service that refuses to
 * show it says nothing about it; one that cannot be asked now is asked again later.
 * @throws Failure `unusable`, and the entry is settled; or of the read, and nothing was revoked
 */
async function assertNotRevoked(contract: CreationContract, { bench, lease }: CreationWork): Promise<void> {
  const { resource_id: id, detail } = lease.entry;
  if (id === null || detail.revoking === true) return;
  const status = await contract.statusOf(bench, id).catch(unlessHidden);
  const how = contract.endOf(status);
  if (how === undefined) return;
  await recordAfterwards(bench, lease, { state: "unusable", last_error: null });
  const what = `The ${contract.noun} ${id}, whose secret is lost, ${how}, and integ did not revoke it.`;
  throw new Failure("unusable", what, {
    ...detailsOf(lease.entry),
    meaning: "Nothing was sent, and nothing is created in its place. If you still need one, create another.",
  });
}

/** A replacement is sent only after what it replaces was seen revoked. */
async function revokeBefore(contract: CreationContract, { bench, lease }: CreationWork): Promise<void> {
  const { id: entry, resource_id } = lease.entry;
  const id = resource_id ?? "";
  const others = await bench.journal.select({ all: true, replaces: entry });
  if (others.some((other) => revokedFirst(other) === entry)) return;
  await contract.assertUnused?.(bench, lease.entry);
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await contract.revoke(bench, id, { grounds: { kind: "secret_lost", entry }, lease });
}

async function lastReplacement(journal: Journal, entry: Entry): Promise<Entry> {
  if (entry.replaced_by === null) return entry;
  const [by] = await journal.select({ all: true, ids: [entry.replaced_by] });
  return by ? lastReplacement(journal, by) : entry;
}

/**
 * Makes the destination of a replacement ready before what it replaces is revoked, unless the secret already exists.
 * @throws Failure of the destination; a replacement that was never sent is refused then, and nothing was revoked
 */
export async function reserveBeforeRevocation(
  bench: Workbench,
  replacement: EntryLease,
  destination: Destination,
): Promise<void> {
  if (await completeDelivery(bench, replacement)) return;
  try {
    await reserveDestination(bench, replacement, { destination });
  } catch (error) {
    await releaseReserved(bench, replacement.entry, destination);
    if (replacement.entry.attempts === 0) await recordAfterwards(bench, replacement, { state: "refused" });
    throw error;
  }
}

/** True of an entry that failed: nothing of it is in use. */
function cameToNothing({ state }: Entry): boolean {
  return state === "refused" || state === "abandoned" || state === "unusable";
}

/** The entry that was to replace this one and did not fail. */
async function begunReplacement(journal: Journal, lost: Entry): Promise<Entry | undefined> {
  const standIns = await journal.select({ all: true, replaces: lost.id });
  return standIns.find((entry) => !cameToNothing(entry));
}

/** Ends a replacement that was never sent. @param why as it ends a sentence */
export async function refuseReplacement(bench: Workbench, lease: EntryLease, why: string): Promise<void> {
  const { id } = lease.entry;
  await lease.record({ state: "refused", last_error: null });
  await releaseReserved(bench, lease.entry);
  bench.tell.note(`Nothing was sent for ${id}: ${why}.`);
}

function settleReplaced(bench: Workbench, lost: EntryLease, by: Entry): Promise<boolean> {
  return recordAfterwards(bench, lost, { state: "replaced", replaced_by: by.id, last_error: null });
}

// Two commands that request the same thing at the same moment create two. Neither waits for the other: a person who runs one
// twice may want two. Each says so at its end, since the second one may have started after the first one looked.

/** Reports who is working on the same request at this moment: each creates its own. */
function tellAlongside({ tell }: Workbench, { alongside = [] }: Admission): void {
  for (const { entry, holder } of alongside)
    tell.warn(
      `${holder.user} on ${holder.host} (process ${holder.pid}) has been creating the same one since ${holder.since} (journal entry ${entry}). This creates another one.`,
    );
}

/**
 * Says which other creations of the same request were under way since this one began, and how to revoke one.
 * @param since when this one began, by the clock that the journal's records have
 */
async function tellSimultaneous(bench: Workbench, own: Entry, since: string): Promise<void> {
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
