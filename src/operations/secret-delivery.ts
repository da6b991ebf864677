// How a one-time secret gets from the response to its destination, in the order that loses least: kept on this machine, proven
// if that was asked for, delivered, recorded as done, and only then the copy destroyed. After a crash: delivery-recovery.ts.
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
import { AtDestination, isAt, overwrite, type Overwriting, prepareOverwrite } from "./acts/overwrite.ts";
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
  type DeliveryBench,
  entryFailure,
  holding,
  otherPlaces,
  reasonOf,
  recordAfterwards,
  type Tell,
  withReason,
  withRequestId,
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
  /** Proves the secret before it is delivered: for one that replaces a credential in use. */
  readonly prove?: ((secret: string) => Promise<void>) | undefined;
}

export interface SecretWork extends SecretDelivery {
  readonly bench: Workbench;
}

export interface DeliveryOptions {
  /** Facts about the resource from the response, for the entry. */
  readonly learned: Partial<EntryProgress>;
  /** Of the response that brought the secret: shown with what becomes of it. */
  readonly requestId?: string | undefined;
  /** An earlier process kept the secret. */
  readonly isKept?: boolean;
}

export function kindOf({ operation }: Pick<Entry, "operation">): OneTimeSecret["kind"] {
  return operation.startsWith("access_key.") ? "access_key" : "oauth_client";
}

export function nounOf(entry: Pick<Entry, "operation">): "client" | "key" {
  return kindOf(entry) === "oauth_client" ? "client" : "key";
}

/**
 * Makes a destination ready. It is recorded before space is reserved there, and an abandoned destination is cleared before its record
 * is replaced, so that a crash leaves no unrecorded reserve.
 * @param options.isKept the secret is safe elsewhere: what an earlier process wrote at another destination is removed too
 */
export async function reserveDestination(
  bench: Overwriting,
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
  return placesOf(record).filter(({ kind }) => kind === "file");
}

/** @throws Failure `undelivered` (it is kept), or `secret_lost`: it may be whole in what was reserved, which stays */
export async function deliverSecret(
  delivery: SecretDelivery,
  secret: OneTimeSecret,
  { learned, requestId, isKept: keptBefore = false }: DeliveryOptions,
): Promise<void> {
  const { bench, lease, destination } = delivery;
  const isEscrowed = delivery.claimedBy === undefined && (await escrowMeanwhile(delivery, secret));
  const isKept = keptBefore || (needsCopy(delivery, secret) && (await keepMeanwhile(delivery, secret)));
  let evidence: AtDestination;
  try {
    await delivery.prove?.(secret.secret);
    evidence = await bench.clock.finishing(() => overwrite(bench, lease, destination, secret));
  } catch (error) {
    const refusal = isKept || isEscrowed ? undefined : await whyNotKept(bench, lease.entry.id, secret);
    const state = refusal === undefined ? "undelivered" : "secret_lost";
    await recordAfterwards(bench, lease, { ...learned, state });
    const { entry } = lease;
    if (refusal === undefined) throw withRequestId(undelivered(entry, error, bench.secrets), requestId);
    const message = `The secret could neither be delivered (${reasonOf(error)}) nor kept (${refusal}).`;
    const step = { nextCommand: nextStep(entry) ?? undefined };
    throw withRequestId(entryFailure(entry, "secret_lost", message, step), requestId);
  }
  await settleDelivered(delivery, learned, evidence);
}

/**
 * Standard output and a command cannot be looked at after a crash, a key has no receipt to ask for, in a team another machine
 * may replace the destination, and one of several that is missing needs the secret itself.
 */
function needsCopy({ bench, lease }: SecretDelivery, { kind }: OneTimeSecret): boolean {
  const { destination } = lease.entry;
  if (kind === "access_key" || bench.journal.isShared || destination === null) return true;
  return destination.kind === "several" || !describeDestination(destination).leavesTrace;
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

/** A copy may be whole although its last step failed. */
async function whyNotKept({ secrets }: DeliveryBench, entry: string, secret: OneTimeSecret) {
  try {
    await secrets.keep(entry, secret);
    return undefined;
  } catch (error) {
    const kept = await secrets.readKept(entry).catch(() => undefined);
    return kept?.secret === secret.secret ? undefined : reasonOf(error);
  }
}

/** Records a delivered secret, and destroys the copy. @param evidence without it the destinations are looked at */
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

/** A rotation says that it continues before its secret is claimed: a crash in between must not lead to a claim of nothing. */
async function resumeParent(bench: DeliveryBench, { parent }: Entry): Promise<void> {
  const rotation = parent === null ? undefined : await bench.journal.find(parent).catch(() => undefined);
  if (rotation?.state !== "undelivered") return;
  const lease = await bench.journal.tryLease(rotation.id);
  if (lease !== null)
    await holding(lease, () => recordAfterwards(bench, lease, { state: "pending", last_error: null }));
}

/** @throws Failure `outcome_unknown` if another process continued after the lease, and did not find the secret */
async function assertNotTakenOver({ journal }: DeliveryBench, { entry }: EntryLease): Promise<void> {
  const now = await journal.find(entry.id).catch(() => undefined);
  if (now === undefined || now.sequence <= entry.sequence || now.state === "done") return;
  throw entryFailure(entry, "outcome_unknown", `Another process took over ${entry.id}, which is ${now.state} now.`, {
    meaning: `The secret was delivered, and what it opens may be revoked: do not use it before you know.`,
    nextCommand: shell`integ journal show ${entry.id}`,
  });
}

/** @throws Failure `unusable` if the receipt of the entry showed something else than was asked for */
export function assertAsAsked(entry: Entry): void {
  const { detail, state, resource_id } = entry;
  if (detail.differs === undefined || state !== "unusable") return;
  const noun = nounOf(entry);
  const message = `The ${noun} ${resource_id ?? ""} differs from the request: ${detail.differs}.`;
  throw entryFailure(entry, "unusable", message, {
    meaning: `Nothing was revoked, and a secret that arrived was delivered. Do not use this ${noun} before you know why the service responded so.`,
    hint: `Report the request id to the service's operator, then revoke this ${noun} or keep it.`,
  });
}

/** Destroys the kept copy after the journal has recorded the delivery: a crash leaves a copy too many, never too few. */
export async function destroyCopy(
  { bench, lease }: { readonly bench: Destroying; readonly lease: EntryLease },
  evidence?: DestroyEvidence,
): Promise<void> {
  const { entry } = lease;
  try {
    if (!(isSettled(entry.state) || wasClaimed(entry)) || !bench.secrets.isKept(entry.id)) return;
    const shown = evidence ?? (await seenAtAll(bench, entry));
    if (shown !== undefined && (await destroy(bench, entry, shown))) return;
    const { id } = entry;
    bench.tell.warn(
      `The copy of the secret of ${id} stays on this machine: nothing shows now that the secret is at its destination. To take it out: integ journal claim ${id}. To destroy it: integ journal forget ${id}`,
    );
  } catch (error) {
    bench.tell.warn(withReason("The copy of the secret that was kept meanwhile could not be destroyed", error));
  }
}

type Destroying = Overwriting & { readonly tell: Pick<Tell, "warn"> };

/** Reads each destination now. @returns undefined if one of them lacks the secret or cannot be read */
export async function seenAtAll(bench: Overwriting, entry: Entry): Promise<AtDestination | undefined> {
  if (entry.destination === null) return undefined;
  const missing = new Failure("failed", "It is not there.");
  return AtDestination.after(entry.id, async () => {
    for (const place of placesOf(entry.destination)) if (!(await isAt(bench, entry, place))) throw missing;
  }).catch(onFailure(() => undefined));
}

/** The failure of work whose secret waits on this machine, or encrypted in a team's journal (exit 12). */
export function undelivered(
  entry: Entry,
  because: unknown,
  { isEscrowed }: Pick<SecretKeeping, "isEscrowed">,
): Failure {
  const kind = because instanceof Failure && because.kind === "conflict" ? "conflict" : "undelivered";
  const arrived =
    nounOf(entry) === "client" ? "The client was created, but its secret" : "The service sent the secret, but it";
  return entryFailure(entry, kind, withReason(`${arrived} could not be delivered`, because), {
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

/** The failure of a client or key that exists and whose secret is lost (exit 9). */
export function secretLost(
  entry: Entry,
  { requestId, here }: { readonly requestId?: string | undefined; readonly here?: string } = {},
): Failure {
  if (isGuess(entry)) return withRequestId(guessed(entry), requestId);
  const [message, meaning] = lostWords(entry, here === undefined ? [] : otherPlaces(entry, here));
  const step = { meaning, nextCommand: nextStep(entry) ?? undefined };
  return withRequestId(entryFailure(entry, "secret_lost", message, step), requestId);
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

/** Keeps a secret from a response that was cut or breaks the contract. @returns whose it seems to be, and why it is not kept */
export async function keepStray(
  { bench, lease }: Omit<SecretDelivery, "destination">,
  { secret, text }: Salvage,
): Promise<{ readonly id: string; readonly refusal?: string }> {
  const kind = kindOf(lease.entry);
  const firstId = /"id"\s*:\s*"([^"\\]{1,200})"/.exec(text)?.[1];
  const { id = "", clientId } =
    kind === "oauth_client" ? readableIds(text) : { id: lease.entry.resource_id ?? firstId };
  const receipt = kind === "oauth_client" ? text : JSON.stringify(id === "" ? { secret } : { id, secret });
  try {
    await bench.secrets.keep(lease.entry.id, { secret, kind, id, clientId, receipt });
    return { id };
  } catch (error) {
    bench.disk.markFailed(reasonOf(error));
    return { id, refusal: reasonOf(error) };
  }
}

/** Releases space after work that reserves it. A secret that could be kept nowhere may be whole there: that stays. */
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

/** Releases the space reserved for a secret. If the disk fails, reports the remaining space; `recover` releases it later. */
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
