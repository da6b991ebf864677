// Creates a client or key, or resumes an interrupted creation. client.ts and key.ts contain the differences.
import { Failure, onFailure, withReason, saysNothingWasDone } from "../errors.ts";
import {
  type Entry,
  isGuess,
  isDeferred,
  isSameRequest,
  isSettled,
  mayHaveArrived,
  nextStep,
} from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import { flags } from "../next-step.ts";
import { type Destination, isPartlyDelivered, type OneTimeSecret, placesOf } from "../secrets/destination.ts";
import { assertStepAllowed, assertTrusted } from "./acts/overwrite.ts";
import { next } from "./next.ts";
import {
  assertMatchesRequest,
  completeDelivery,
  reserveDestination,
  releaseReserved,
  type SecretDelivery,
  type SecretWork,
  secretLost,
  type ContinuedDelivery,
  undelivered,
} from "./secret-delivery.ts";
import { type Credential, unlessHidden } from "./revocation.ts";
import { admitWork, assertNoneInFlight } from "./sending.ts";
import { entryFailure, withLease, isoTime, recordOrWarn, recoveryIn, type Workbench } from "./workbench.ts";

export interface CreationOptions {
  readonly destinationOf: (entry: Entry) => Destination | Promise<Destination>;
  readonly mayReplace?: ((entry: Entry) => Promise<boolean>) | undefined;
  readonly namedRevocation?: string | undefined;
  /** Ms to wait for a pending client or for a key to appear in the list. The default is 0. */
  readonly waitMs?: number;
  /** The idempotency key that the user typed: integ then sends the request even if the entry is finished. */
  readonly key?: string | undefined;
  readonly claimedBy?: SecretDelivery["claimedBy"];
}

export interface CreationWork extends SecretWork, CreationOptions {}

export interface Outcome {
  /** `delivered_before`: an earlier process received the secret. `nothing_made`: the entry ended without a usable client or key. */
  readonly kind: "delivered" | "delivered_before" | "secret_lost" | "nothing_made";
  readonly entry: Entry;
  /** Includes the secret if this process received it from the service. */
  readonly receipt?: string | undefined;
  readonly secret?: OneTimeSecret;
  readonly requestId?: string | undefined;
}

export interface CreationContract extends Credential {
  /** Resumes an earlier delivery. @returns undefined if there is none. @throws Failure `undelivered` if a person must claim it */
  continueDelivery(work: CreationWork): Promise<ContinuedDelivery | undefined>;
  send(work: CreationWork): Promise<Outcome>;
  /** Set only for keys. @returns undefined if the found key's secret is lost. @throws Failure `outcome_unknown` if unsure */
  searchKey?(work: CreationWork): Promise<Outcome | undefined>;
  /** @throws Failure if the key has been used: then someone has its secret */
  assertUnused?(bench: Workbench, lost: Entry): Promise<void>;
  /** @returns false if the profile cannot prove secrets. @throws Failure if the proof fails */
  prove(
    bench: Workbench,
    rotation: Entry,
    child: Entry,
    secret: Pick<OneTimeSecret, "secret" | "clientId">,
  ): Promise<boolean>;
  replacementIntent(bench: Workbench, lost: Entry): Intent;
  readReceipt?(bench: Workbench, entry: Entry): Promise<string>;
}

export interface CreateOptions extends Omit<CreationOptions, "destinationOf"> {
  readonly destination: Destination;
  /** `--new`: do not resume an unfinished creation of the same request. */
  readonly fresh?: boolean | undefined;
}

export async function create(
  contract: CreationContract,
  bench: Workbench,
  intent: Intent,
  options: CreateOptions,
): Promise<Outcome> {
  const { destination, fresh, key } = options;
  const since = isoTime(bench.clock.now());
  const isDelivered = async (resumed: EntryLease): Promise<boolean> =>
    (await completeDelivery(bench, resumed)) || isPartlyDelivered(resumed.entry);
  const { kind, lease, alongside = [] } = await admitWork(bench, intent, { destination, fresh, key, isDelivered });
  return withLease(lease, async () => {
    for (const { entry, holder } of alongside)
      bench.tell.warn(
        `${holder.user} on ${holder.host} (process ${holder.pid}) has been creating the same one since ${holder.since} (journal entry ${entry}). This command creates another.`,
      );
    if (kind === "resumed")
      bench.tell.note(`Resuming the unfinished creation ${lease.entry.id}${resumptionWords(lease.entry)}`);
    const made = await finishCreation(contract, { ...options, bench, lease, destinationOf: () => destination });
    // A team's journal is searched from this entry on. After an old, resumed entry, later creations are not simultaneous.
    if (kind === "new" || !bench.journal.isShared) await warnOfSimultaneous(bench, lease.entry, since);
    return made;
  });
}

function resumptionWords(entry: Entry): string {
  if (entry.idempotency_key !== null) return `, under its own key (${flags.new} starts another).`;
  if (!mayHaveArrived(entry)) return `: ${unfinishedReason(entry)}.`;
  const message = "The same key was requested before, and it is not known whether it was created.";
  throw entryFailure(entry, "outcome_unknown", message, {
    meaning: `Nothing was sent now. Recover that creation first; ${flags.new} creates another key anyway.`,
    nextCommand: nextStep(entry) ?? undefined,
  });
}

export function unfinishedReason(entry: Entry): string {
  return isDeferred(entry) ? "the service refused it as too early" : "it was never sent";
}

export async function finishCreation(
  contract: CreationContract,
  options: Omit<CreationWork, "destination">,
): Promise<Outcome> {
  const { bench, lease } = options;
  const wasSent = lease.entry.attempts > 0;
  const replacements = wasSent ? await bench.journal.select({ all: true, replaces: lease.entry.id }) : [];
  await assertTrusted(bench, replacements);
  const started = replacements.find((entry) => !hasFailed(entry));
  const work = { ...options, destination: await options.destinationOf(started ?? lease.entry) };
  let end: Outcome | undefined;
  const wasLost = lease.entry.state === "secret_lost";
  if (options.key === undefined) {
    assertMatchesRequest(lease.entry);
    if (lease.entry.idempotency_key === null) assertNoneInFlight(lease);
    const isUnsent = started?.attempts === 0 && lease.entry.detail.revoking !== true;
    const found =
      wasSent && (started === undefined || isUnsent) ? await resumeDelivery(contract, work, started) : undefined;
    if (found !== undefined) return { kind: "delivered_before", entry: lease.entry, ...found };
  } else end = await contract.send(work);
  for (; end === undefined || end.kind === "secret_lost"; ) {
    const step = end === undefined ? next(lease.entry) : "replace";
    // Another process ended the entry during the wait for its lease.
    if (step === "end" && lease.entry.state !== "done") return { kind: "nothing_made", entry: lease.entry };
    if (step === "end") return earlierDelivery(contract, bench, lease.entry);
    if (step === "replace") return replaceLost(contract, { work, end, started, wasLost });
    end = step === "look" ? await contract.searchKey?.(work) : await contract.send(work);
  }
  return end;
}

/** If the secret is found, also ends the unsent replacement that an earlier run started. */
async function resumeDelivery(contract: CreationContract, work: CreationWork, started: Entry | undefined) {
  const { bench, lease } = work;
  try {
    return await contract.continueDelivery(work);
  } finally {
    if (started !== undefined && lease.entry.state !== "secret_lost") {
      const why = `the secret of ${lease.entry.id} was found`;
      await withLease(await bench.journal.lease(started.id), (unneeded) => refuseReplacement(bench, unneeded, why));
    }
  }
}

async function earlierDelivery(contract: CreationContract, bench: Workbench, entry: Entry): Promise<Outcome> {
  return { kind: "delivered_before", entry, receipt: await contract.readReceipt?.(bench, entry) };
}

interface LostSecret {
  readonly work: CreationWork;
  readonly end: Outcome | undefined;
  readonly started: Entry | undefined;
  /** An earlier process recorded the loss; someone may have revoked the client or key since. */
  readonly wasLost: boolean;
}

/** A replacement that an earlier run started needs no new consent. */
async function replaceLost(contract: CreationContract, lost: LostSecret): Promise<Outcome> {
  const { work, end, started, wasLost } = lost;
  const { bench, lease } = work;
  if (started === undefined) {
    if (wasLost || contract.noun === "key") await assertNotRevoked(contract, work);
    const isNamed = work.namedRevocation !== undefined && work.namedRevocation === lease.entry.resource_id;
    if (isNamed && isGuess(lease.entry))
      await lease.record({ detail: { ...lease.entry.detail, orphan_certain: true } });
    if (isGuess(lease.entry) || !(isNamed || (await work.mayReplace?.(lease.entry))))
      throw secretLost(lease.entry, { requestId: end?.requestId, here: bench.secrets });
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

async function replaceNow(contract: CreationContract, { work, started }: LostSecret): Promise<Outcome> {
  const { bench, lease, destination } = work;
  const { id: replaces, parent } = lease.entry;
  const replacement = started
    ? await bench.journal.lease(started.id)
    : await admitStep(bench, destination, { ...contract.replacementIntent(bench, lease.entry), parent, replaces });
  const settle = (): Promise<boolean> =>
    recordOrWarn(bench, lease, { state: "replaced", replaced_by: replacement.entry.id, last_error: null });
  try {
    // Another process ended the replacement during the wait for its lease.
    if (hasFailed(replacement.entry)) return await finishCreation(contract, work);
    const { attempts, state } = replacement.entry;
    const isOver = isSettled(state) || state === "undelivered";
    try {
      if (!isOver && attempts === 0 && !(await completeDelivery(bench, replacement)))
        await reserveDestination(bench, replacement, { destination }).catch(async (error: unknown) => {
          await recordOrWarn(bench, replacement, { state: "refused" });
          throw error;
        });
      await revokeBefore(contract, work);
    } catch (error) {
      await releaseReserved(bench, replacement.entry, destination);
      throw error;
    }
    // Recovery finds a key by its name, so only one creation of that name may be unfinished.
    const settlesFirst = replacement.entry.idempotency_key === null;
    if (settlesFirst || isOver) await settle();
    if (state === "undelivered")
      throw undelivered(replacement.entry, "an earlier run could not deliver it.", bench.secrets);
    if (isOver) return await earlierDelivery(contract, bench, await lastReplacement(bench.journal, replacement.entry));
    // If this run started the replacement and its secret is lost too, the run ends instead of replacing it again.
    const mayReplace = started && work.mayReplace;
    const again = { ...work, lease: replacement, key: undefined, mayReplace, destinationOf: () => destination };
    const made = await finishCreation(contract, again);
    if (!settlesFirst) await settle();
    return made;
  } catch (error) {
    const isCreated = replacement.entry.state === "undelivered" || replacement.entry.state === "secret_lost";
    if (isCreated && lease.entry.state !== "replaced") await settle();
    throw error;
  } finally {
    await replacement.release();
  }
}

export async function admitStep(bench: Workbench, destination: Destination, intent: Intent): Promise<EntryLease> {
  const place = { ...(await destination.check()) };
  await assertStepAllowed(bench, intent, placesOf(place));
  return (await bench.journal.admit({ ...intent, destination: place }, { fresh: true })).lease;
}

/** @throws Failure `unusable` if the client or key no longer works, and integ did not revoke it */
async function assertNotRevoked(contract: CreationContract, { bench, lease }: CreationWork): Promise<void> {
  const { resource_id: id, detail } = lease.entry;
  if (id === null || detail.revoking === true) return;
  const status = await contract.statusOf(bench, id).catch(unlessHidden);
  const how = contract.endOf(status);
  if (how === undefined) return;
  await recordOrWarn(bench, lease, { state: "unusable", last_error: null });
  const what = `The ${contract.noun} ${id}, whose secret is lost, ${how}, and integ did not revoke it.`;
  throw entryFailure(lease.entry, "unusable", what, {
    meaning: "Nothing was sent, and integ creates no replacement. If you still need one, create it.",
  });
}

/** Revokes the client or key whose secret is lost. If a replacement was sent, an earlier run has already revoked it. */
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

const hasFailed = ({ state }: Entry): boolean => state === "refused" || state === "abandoned" || state === "unusable";

export async function refuseReplacement(bench: Workbench, lease: EntryLease, why: string): Promise<void> {
  const { id } = lease.entry;
  await lease.record({ state: "refused", last_error: null });
  await releaseReserved(bench, lease.entry);
  bench.tell.note(`Nothing was sent for ${id}: ${why}.`);
}

async function warnOfSimultaneous(bench: Workbench, own: Entry, since: string): Promise<void> {
  // Only one process continues a policy item.
  if (own.policy !== undefined) return;
  const { journal } = bench;
  // The machines' clocks may differ, so a team's journal is searched by id.
  const range = journal.isShared ? { after: own.id } : { since };
  const recent = await journal.select({ all: true, ...range }).catch(onFailure(() => []));
  const others = recent.filter(
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
  // Both processes must suggest revoking the same client or key, or a person could revoke both.
  const newest = [own, ...others].reduce((latest, entry) => (entry.id > latest.id ? entry : latest));
  const next = newest.resource_id === null ? `journal show ${newest.id}` : `${noun} revoke ${newest.resource_id}`;
  bench.tell.warn(`The same ${what} was created at the same moment: ${names}. If you need only one: integ ${next}`);
}
