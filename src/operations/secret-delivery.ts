// How a one-time secret gets from the response to its destination, in the order that loses least: kept on this machine,
// proven if that was asked for, delivered, recorded as done, and only then the copy destroyed (delivery-recovery.ts has the
// way back to it after a crash).
import type { Salvage } from "../api/call/attempt.ts";
import { readableIds } from "../api/oauth-client-creation.ts";
import { Failure, onFailure } from "../errors.ts";
import {
  type Entry,
  type EntryProgress,
  isGuess,
  isSettled,
  isUnnamed,
  mayBeMadeElsewhere,
  nextStep,
  wasClaimed,
} from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { guessed } from "./acts/revoke.ts";
import { type DestroyEvidence, destroy } from "./acts/destroy.ts";
import { AtDestination, isAt, originOf, overwrite, type Overwriting, prepareOverwrite } from "./acts/overwrite.ts";
import {
  describeDestination,
  type Destination,
  type DestinationRecord,
  isSamePlace,
  missingPlaces,
  type OneTimeSecret,
  placesOf,
  type SingleRecord,
} from "../secrets/destination.ts";
import {
  detailsOf,
  holding,
  reasonOf,
  otherPlaces,
  recordAfterwards,
  withReason,
  withRequestId,
  type DeliveryBench,
  type Workbench,
} from "./workbench.ts";
import type { SecretKeeping } from "../secrets/kept.ts";
import { type NextStep, shell, flags } from "../next-step.ts";

/** A piece of work whose secret comes, and where it goes. */
export interface SecretDelivery {
  readonly bench: DeliveryBench;
  readonly lease: EntryLease;
  readonly destination: Destination;
  /** A secret that waits for a claim goes to the destination now: a person claims it, or the policy that it is for is applied. */
  readonly claimedBy?: "person" | "policy" | undefined;
}

export interface SecretWork extends SecretDelivery {
  readonly bench: Workbench;
}

export interface DeliveryOptions {
  /** Proves the secret before it is delivered: for one that replaces a credential in use. */
  readonly prove?: (secret: string) => Promise<void>;
  /** What the response said of the resource, for the entry. */
  readonly learned: Partial<EntryProgress>;
  /** Of the response that brought the secret: shown with what becomes of it. */
  readonly requestId?: string | undefined;
  /** An earlier process kept the secret. */
  readonly isKept?: boolean;
}

const undeliveredTexts: Readonly<Record<OneTimeSecret["kind"], string>> = {
  oauth_client: "The client was created, but its secret could not be delivered",
  access_key: "The service sent the secret, but it could not be delivered",
};

export function kindOf({ operation }: Pick<Entry, "operation">): OneTimeSecret["kind"] {
  return operation.startsWith("access_key.") ? "access_key" : "oauth_client";
}

export function nounOf(entry: Pick<Entry, "operation">): "client" | "key" {
  return kindOf(entry) === "oauth_client" ? "client" : "key";
}

/**
 * Makes a destination ready for the secret of an entry. The destination is in the journal before anything is reserved
 * there, and the one that is left is cleared before it is forgotten: a crash in between leaves nothing unknown.
 * @param options.isKept the secret itself is safe elsewhere: what an earlier process wrote at another destination is removed too
 * @returns the destination with what was reserved there, for the caller's next record
 */
export async function reserveDestination(
  bench: Overwriting & { readonly secrets: Pick<SecretKeeping, "removeReserve"> },
  lease: EntryLease,
  { destination, isKept = false }: { readonly destination: Destination; readonly isKept?: boolean },
): Promise<DestinationRecord> {
  const before = lease.entry.destination;
  const wanted = await destination.check({ before, isKept });
  const [left, come] = [filesOf(before), filesOf(wanted)];
  const given = left.filter((file) => !come.some((other) => isSamePlace(file, other)));
  for (const file of given) await bench.secrets.removeReserve(file, lease.entry.id, { isKept });
  const isMoved = given.length > 0 || come.some((file) => !left.some((other) => isSamePlace(file, other)));
  if (isMoved) await lease.record({ destination: { ...wanted } });
  try {
    return await prepareOverwrite(bench, lease, destination, { before, isKept });
  } catch (error) {
    // A destination that can take nothing is not remembered in place of the one that the work began with.
    if (isMoved && before !== null && come.length === 0) await lease.record({ destination: before });
    throw error;
  }
}

/** Only a file has a reserve that could be left behind. */
function filesOf(record: DestinationRecord | null): readonly SingleRecord[] {
  return record ? placesOf(record).filter(({ kind }) => kind === "file") : [];
}

/**
 * Delivers a secret in hand, before anything else is said or complained about.
 * @throws Failure `undelivered` (kept for `journal claim`), or `secret_lost` if nothing at all would take it: then what
 * was reserved for it must stay, since the secret may be whole in there
 */
export async function deliverSecret(
  delivery: SecretDelivery,
  secret: OneTimeSecret,
  { prove, learned, requestId, isKept: keptBefore = false }: DeliveryOptions,
): Promise<void> {
  const { bench, lease, destination } = delivery;
  const isEscrowed = delivery.claimedBy === undefined && (await escrowMeanwhile(delivery, secret));
  const isKept = keptBefore || (needsCopy(delivery, secret) && (await keepMeanwhile(delivery, secret)));
  let evidence: AtDestination;
  try {
    await prove?.(secret.secret);
    const record = async (at: DestinationRecord): Promise<void> => {
      await recordAfterwards(bench, lease, { destination: { ...at } });
    };
    const work = { destination, secret, origin: originOf(lease.entry), record };
    evidence = await bench.clock.finishing(() => overwrite(bench, lease, work));
  } catch (error) {
    throw withRequestId(
      await keepUndelivered(delivery, secret, { isSafe: isKept || isEscrowed, learned, error }),
      requestId,
    );
  }
  await settleDelivered(delivery, learned, evidence);
}

/**
 * A file and a profile can be looked at after a crash. Standard output and a command leave nothing to look at: a copy
 * left for `claim` keeps a client, whose secret someone may have, from being taken for lost. A key has no receipt to
 * ask for, so its secret is kept in every case; and in a team's journal another machine that takes the entry over puts
 * its own destination in the place of the one with the trace.
 */
function needsCopy({ bench, lease }: SecretDelivery, { kind }: OneTimeSecret): boolean {
  const { destination } = lease.entry;
  return kind === "access_key" || bench.journal.isShared || destination === null || !leavesTrace(destination);
}

/** Several destinations leave a trace each, and one that is missing needs the secret itself. */
function leavesTrace(destination: DestinationRecord): boolean {
  return destination.kind !== "several" && describeDestination(destination).leavesTrace;
}

/** If the team's journal cannot take a secret now, this machine delivers or keeps it. */
async function escrowMeanwhile({ bench, lease }: SecretDelivery, secret: OneTimeSecret): Promise<boolean> {
  try {
    return await bench.secrets.escrow(lease.entry.id, secret);
  } catch (error) {
    bench.tell.warn(withReason("The secret could not be encrypted into the team's journal", error));
    return false;
  }
}

async function keepMeanwhile({ bench, lease }: SecretDelivery, secret: OneTimeSecret): Promise<boolean> {
  try {
    await bench.secrets.keep(lease.entry.id, secret);
    return true;
  } catch (error) {
    bench.disk.markFailed(reasonOf(error));
    bench.tell.warn(withReason("No copy of the secret could be kept before its delivery", error));
    return false;
  }
}

/** The end of a delivery that failed. @param how.isSafe the secret is kept or encrypted already */
async function keepUndelivered(
  { bench, lease }: SecretDelivery,
  secret: OneTimeSecret,
  how: { readonly isSafe: boolean; readonly learned: Partial<EntryProgress>; readonly error: unknown },
): Promise<Failure> {
  const refusal = how.isSafe ? undefined : await whyNotKept(bench, lease.entry.id, secret);
  await recordAfterwards(bench, lease, {
    ...how.learned,
    state: refusal === undefined ? "undelivered" : "secret_lost",
  });
  if (refusal === undefined) return undelivered(lease.entry, how.error, bench.secrets);
  const message = `The secret could neither be delivered (${reasonOf(how.error)}) nor kept (${refusal}).`;
  return new Failure("secret_lost", message, {
    ...detailsOf(lease.entry),
    nextCommand: nextStep(lease.entry) ?? undefined,
  });
}

/** A copy may be whole although its last step failed. */
async function whyNotKept(
  { secrets }: DeliveryBench,
  entry: string,
  secret: OneTimeSecret,
): Promise<string | undefined> {
  try {
    await secrets.keep(entry, secret);
    return undefined;
  } catch (error) {
    const kept = await secrets.readKept(entry).catch(() => undefined);
    return kept?.secret === secret.secret ? undefined : reasonOf(error);
  }
}

/**
 * Records a secret that is at its destination as done, and destroys the copy. It is unknown if a receipt or the list has still
 * to name its client or key.
 * @param evidence without it the destinations are looked at
 * @throws Failure `unusable` if what it opens is not what was asked for: that is not done
 */
export async function settleDelivered(
  { bench, lease, claimedBy }: Omit<SecretDelivery, "destination">,
  learned: Partial<EntryProgress>,
  evidence?: AtDestination,
): Promise<void> {
  const isClaimed = claimedBy === "person";
  if (isClaimed) await resumeParent(bench, lease.entry);
  const { detail = lease.entry.detail } = learned;
  const settled = detail.differs === undefined ? "done" : "unusable";
  const state = isUnnamed({ ...lease.entry, ...learned }) ? "unknown" : settled;
  const claimed = isClaimed ? { detail: { ...detail, secret_claimed: true } } : {};
  const isRecorded = await recordAfterwards(bench, lease, { ...learned, ...claimed, state, last_error: null });
  if (isRecorded) await destroyCopy({ bench, lease }, isClaimed ? { typed: "claim" } : evidence);
  else await assertNotTakenOver(bench, lease);
  if (!isClaimed) assertAsAsked(lease.entry);
}

/**
 * A rotation continues only now that a person has claimed the new secret, and says so first: a crash in between leaves one that
 * recovery looks into, never one that leads to a claim of nothing. If another process has it, that one sees the delivery.
 */
async function resumeParent(bench: DeliveryBench, { parent }: Entry): Promise<void> {
  const rotation = parent === null ? undefined : await bench.journal.find(parent).catch(() => undefined);
  if (rotation?.state !== "undelivered") return;
  const lease = await bench.journal.tryLease(rotation.id);
  if (lease !== null)
    await holding(lease, () => recordAfterwards(bench, lease, { state: "pending", last_error: null }));
}

/**
 * A process that stood still for longer than its lease delivers what it had, and another one has continued the entry meanwhile.
 * @throws Failure `outcome_unknown` if that one did not find the secret: it may have revoked what the secret opens
 */
async function assertNotTakenOver({ journal }: DeliveryBench, { entry }: EntryLease): Promise<void> {
  const now = await journal.find(entry.id).catch(() => undefined);
  if (now === undefined || now.sequence <= entry.sequence || now.state === "done") return;
  throw new Failure("outcome_unknown", `Another process took over ${entry.id}, which is ${now.state} now.`, {
    ...detailsOf(entry),
    meaning: `The secret was delivered, and what it opens may be revoked: do not use it before you know.`,
    nextCommand: shell`integ journal show ${entry.id}`,
  });
}

/** @throws Failure `unusable` if the receipt of the entry showed something else than was asked for */
export function assertAsAsked(entry: Entry): void {
  const { detail, state, resource_id } = entry;
  if (detail.differs === undefined || state !== "unusable") return;
  const noun = nounOf(entry);
  throw new Failure("unusable", `The ${noun} ${resource_id ?? ""} differs from the request: ${detail.differs}.`, {
    ...detailsOf(entry),
    meaning: `Nothing was revoked, and a secret that arrived was delivered. Do not use this ${noun} before you know why the service responded so.`,
    hint: `Report the request id to the service's operator, then revoke this ${noun} or keep it.`,
  });
}

/**
 * Destroys the copy that is kept here, once the journal says that no one needs it: a crash leaves one too many, never
 * none. If the journal could not say so, the copy shows recovery that the secret is not lost.
 * @param evidence without it the destinations are looked at
 */
export async function destroyCopy(
  { bench, lease }: Pick<SecretDelivery, "lease"> & { readonly bench: Destroying },
  evidence?: DestroyEvidence,
): Promise<void> {
  const { entry } = lease;
  try {
    if (!(isSettled(entry.state) || wasClaimed(entry)) || !bench.secrets.isKept(entry.id)) return;
    const shown = evidence ?? (await seenAtAll(bench, lease));
    if (shown !== undefined && (await destroy(bench, entry, shown))) return;
    bench.tell.warn(copyStays(entry));
  } catch (error) {
    bench.tell.warn(withReason("The copy of the secret that was kept meanwhile could not be destroyed", error));
  }
}

type Destroying = Overwriting & {
  readonly secrets: Pick<SecretKeeping, "isKept" | "destroyKept">;
  readonly tell: Pick<Workbench["tell"], "warn">;
};

/** A copy stays although its entry is finished: nothing shows now that its secret is anywhere else. */
export function copyStays({ id }: Pick<Entry, "id">): string {
  return `The copy of the secret of ${id} stays on this machine: nothing shows now that the secret is at its destination. To take it out: integ journal claim ${id}. To destroy it: integ journal forget ${id}`;
}

/** Looks at each destination now. @returns nothing if one of them does not have the secret, or cannot show it */
export async function seenAtAll(
  bench: Overwriting,
  lease: Pick<EntryLease, "entry">,
): Promise<AtDestination | undefined> {
  const { destination } = lease.entry;
  if (destination === null) return undefined;
  const missing = new Failure("failed", "It is not there.");
  return AtDestination.after(lease.entry.id, async () => {
    for (const place of placesOf(destination)) if (!(await isAt(bench, lease, place))) throw missing;
  }).catch(onFailure(() => undefined));
}

/** The failure of work whose secret waits on this machine, or encrypted in a team's journal (exit 12). */
export function undelivered(
  entry: Entry,
  because: unknown,
  { isEscrowed }: Pick<SecretKeeping, "isEscrowed">,
): Failure {
  const isConflict = because instanceof Failure && because.kind === "conflict";
  return new Failure(isConflict ? "conflict" : "undelivered", withReason(undeliveredTexts[kindOf(entry)], because), {
    ...detailsOf(entry),
    meaning: isEscrowed(entry.id)
      ? "The secret is encrypted in the team's journal: any machine with an identity of its recipients can claim it."
      : "The secret is kept on this machine, readable by you alone, until you claim it.",
    ...claimStep(entry),
  });
}

/** The command that claims the secret: what the journal does not remember, and a profile that a key is for, is typed. */
function claimStep({ id, destination, operation }: Entry): NextStep {
  const isKeyForProfile = destination?.kind === "profile" && operation.startsWith("access_key.");
  if (isKeyForProfile)
    return { nextCommand: shell`integ journal claim ${id} ${flags.secretProfile} ${destination.name}` };
  const commands = missingPlaces(destination).filter(({ kind }) => kind === "command");
  if (commands.length === 0) return { nextCommand: shell`integ journal claim ${id}` };
  const what = commands.length === 1 ? flags.secretCommand : `${flags.secretCommand} ${commands.length} times`;
  return { hint: `Claim the entry ${id} and pass ${what} again: commands are not stored.` };
}

/**
 * The failure of a client or key that exists and whose secret is lost (exit 9).
 * @param requestId of the response that showed it without the secret, if that came just now
 */
export function secretLost(
  entry: Entry,
  { requestId, here }: { readonly requestId?: string | undefined; readonly here?: string } = {},
): Failure {
  if (isGuess(entry)) return withRequestId(guessed(entry), requestId);
  const [message, meaning] = lostWords(entry, here === undefined ? [] : otherPlaces(entry, here));
  const details = { ...detailsOf(entry), meaning, nextCommand: nextStep(entry) ?? undefined };
  return withRequestId(new Failure("secret_lost", message, details), requestId);
}

/** @param others where a process may have kept it before it ended */
function lostWords(entry: Entry, others: readonly string[]): readonly [message: string, meaning: string] {
  const { id, operation, resource_id } = entry;
  const noun = nounOf(entry);
  if (mayBeMadeElsewhere(entry))
    return [
      `The client ${resource_id ?? ""} exists, and its secret is not here.`,
      `Its idempotency key was given by hand: if it was created elsewhere with the same key, its secret may be in use. ${flags.yes} alone does not revoke it.`,
    ];
  if (others.length > 0)
    return [
      `Its secret is not here. It was requested in ${others.join(", ")} too, and may be kept there.`,
      `${flags.yes} alone does not revoke it. Look there first: integ journal claim ${id}`,
    ];
  const wayOut =
    operation === "access_key.rotate" ? "rotate the key again." : `revoke this ${noun} and create another.`;
  return [
    `The ${noun} ${resource_id ?? ""} exists, and its one-time secret is lost.`,
    `The API never shows a secret twice. To fix it: ${wayOut}`,
  ];
}

export function learnedOfKey(entry: Entry, id: string, detail: Entry["detail"] = {}): Partial<EntryProgress> {
  return { resource_id: id || entry.resource_id, detail: { ...entry.detail, ...detail, in_flight: false } };
}

/**
 * Keeps a secret from a response that was cut or breaks the contract, before anything else is done: the service gave it,
 * and never shows it again.
 * @returns the id that it seems to belong to, and why it could not be kept
 */
export async function keepStray(
  { bench, lease }: Omit<SecretDelivery, "destination">,
  { secret, text }: Salvage,
): Promise<{ readonly id: string; readonly refusal?: string }> {
  const kind = kindOf(lease.entry);
  const { id = "", clientId } =
    kind === "oauth_client" ? readableIds(text) : { id: lease.entry.resource_id ?? firstIdIn(text) };
  const receipt = kind === "oauth_client" ? text : JSON.stringify(id === "" ? { secret } : { id, secret });
  try {
    await bench.secrets.keep(lease.entry.id, { secret, kind, id, clientId, receipt });
    return { id };
  } catch (error) {
    bench.disk.markFailed(reasonOf(error));
    return { id, refusal: reasonOf(error) };
  }
}

function firstIdIn(text: string): string | undefined {
  return /"id"\s*:\s*"([^"\\]{1,200})"/.exec(text)?.[1];
}

/**
 * Does work that reserves space for a secret, and releases it afterwards. A secret that could be kept nowhere may be whole in what
 * was reserved: that stays, and recovery looks there.
 */
export async function releasing<T>(delivery: SecretDelivery, work: () => Promise<T>): Promise<T> {
  const { bench, lease, destination } = delivery;
  let mayBeThere = false;
  try {
    return await work();
  } catch (error) {
    mayBeThere = error instanceof Failure && error.kind === "secret_lost";
    throw error;
  } finally {
    if (!mayBeThere) await releaseReserved(bench, lease.entry, destination);
  }
}

/**
 * Releases what was reserved for a secret. This is cleanup: it does not change how the work ended, whatever the disk does;
 * what could not be released is reported, and `journal recover` releases it later.
 */
export async function releaseReserved(
  { secrets, disk, tell }: DeliveryBench,
  { id }: Pick<Entry, "id">,
  destination?: Destination,
): Promise<void> {
  const works = [async () => destination?.release(), async () => secrets.release(id)];
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      const why = reasonOf(error);
      disk.markFailed(why);
      tell.warn(`Space that was reserved for the secret could not be released: ${why}`);
    }
  }
}
