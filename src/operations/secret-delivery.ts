// Delivers a one-time secret (§2.3, §2.4): keeps a copy if a crash could lose the secret, delivers the secret, records the
// delivery, and destroys the copy.
import type { AccessKeyRequest } from "../api/access-keys.ts";
import type { Salvage } from "../api/call/attempt.ts";
import { readableIds } from "../api/oauth-client-creation.ts";
import { Failure, onFailure, reasonOf, withReason, withRequestId } from "../errors.ts";
import {
  type Entry,
  type EntryProgress,
  isGuess,
  isSettled,
  hasNoId,
  kindOf,
  mayBeCreatedElsewhere,
  nextStep,
  nounOf,
  rotatedBy,
  wasClaimed,
  attemptedPlaces,
  otherPlaces,
} from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { uncertainKeyFailure } from "./acts/revoke.ts";
import { type DestroyEvidence, destroy } from "./acts/destroy.ts";
import { AtDestination, isAt, overwrite, type Overwriting, prepareOverwrite } from "./acts/overwrite.ts";
import {
  describeDestination,
  type Destination,
  type DestinationRecord,
  isPartlyDelivered,
  isSamePlace,
  missingPlaces,
  type OneTimeSecret,
  placesOf,
  type SingleRecord,
} from "../secrets/destination.ts";
import {
  type DeliveryBench,
  entryFailure,
  withLease,
  outcomeUnknown,
  recordOrWarn,
  type Tell,
  type Workbench,
} from "./workbench.ts";
import type { SecretKeeping } from "../secrets/kept.ts";
import { withEntryIds } from "../secrets/secret-format.ts";
import { needsForce, type NextStep, shell, flags } from "../next-step.ts";

export interface SecretDelivery {
  readonly bench: DeliveryBench;
  readonly lease: EntryLease;
  readonly destination: Destination;
  readonly claimedBy?: "person" | "policy" | undefined;
  /** Proves the secret before its delivery. @throws Failure if the secret must not be delivered */
  readonly prove?: ((secret: OneTimeSecret) => Promise<void>) | undefined;
}

export interface SecretWork extends SecretDelivery {
  readonly bench: Workbench;
}

export interface DeliveryOptions {
  readonly learned: Partial<EntryProgress>;
  readonly requestId?: string | undefined;
  readonly isKept?: boolean;
}

/**
 * Records a new file before it reserves space there, and removes the reserve of an abandoned file before the record changes, so
 * that a crash leaves no unrecorded reserve.
 * @param options.isKept true if the secret is safe elsewhere: an abandoned reserve is then removed even if it has the secret
 */
export async function reserveDestination(
  bench: Overwriting,
  lease: EntryLease,
  { destination, isKept = false }: { readonly destination: Destination; readonly isKept?: boolean },
): Promise<DestinationRecord> {
  const before = lease.entry.destination;
  const wanted = await destination.check({ before, isKept });
  const [oldFiles, newFiles] = [filesOf(before), filesOf(wanted)];
  const abandoned = oldFiles.filter((file) => !newFiles.some((other) => isSamePlace(file, other)));
  for (const file of abandoned) await bench.secrets.removeReserve(file, lease.entry.id, { isKept });
  const isMoved = abandoned.length > 0 || newFiles.some((file) => !oldFiles.some((other) => isSamePlace(file, other)));
  if (isMoved) await lease.record({ destination: { ...wanted } });
  try {
    return await prepareOverwrite(bench, lease, destination, { before, isKept });
  } catch (error) {
    if (isMoved && before !== null && newFiles.length === 0) await lease.record({ destination: before });
    throw error;
  }
}

/** Only files have a reserve that must be removed. */
function filesOf(record: DestinationRecord | null): readonly SingleRecord[] {
  return placesOf(record).filter(({ kind }) => kind === "file");
}

/** @throws Failure `undelivered` or `conflict` if the secret is kept, else `secret_lost`; other kinds after a delivery */
export async function deliverSecret(
  delivery: SecretDelivery,
  secret: OneTimeSecret,
  { learned: received, requestId, isKept: keptBefore = false }: DeliveryOptions,
): Promise<void> {
  const { bench, lease, destination } = delivery;
  const isEscrowed = delivery.claimedBy === undefined && (await tryEscrow(delivery, secret));
  const isKept = keptBefore || (needsCopy(delivery, secret) && (await tryKeep(delivery, secret)));
  const learned = (): Partial<EntryProgress> => {
    const { proven } = lease.entry.detail;
    return received.detail === undefined ? received : { ...received, detail: { ...received.detail, proven } };
  };
  let evidence: AtDestination;
  try {
    await delivery.prove?.(secret);
    evidence = await bench.clock.finishing(() => overwrite(bench, lease, destination, secret));
  } catch (error) {
    const refusal = isKept || isEscrowed ? undefined : await keepFailureReason(bench, lease.entry.id, secret);
    const state = refusal === undefined ? "undelivered" : "secret_lost";
    await recordOrWarn(bench, lease, { ...learned(), state });
    const { entry } = lease;
    if (refusal === undefined) throw withRequestId(undelivered(entry, error, bench.secrets), requestId);
    const message = `The secret could neither be delivered (${reasonOf(error)}) nor kept (${refusal}).`;
    const step = { nextCommand: nextStep(entry) ?? undefined };
    throw withRequestId(entryFailure(entry, "secret_lost", message, step), requestId);
  }
  await settleDelivered(delivery, learned(), evidence);
}

/**
 * Only a client whose one destination is a file or profile needs no copy: after a crash, integ checks the destination and
 * requests the receipt again. In a team, the next process may be on another machine.
 */
function needsCopy({ bench, lease }: SecretDelivery, { kind }: OneTimeSecret): boolean {
  const { destination } = lease.entry;
  if (kind === "access_key" || bench.journal.isShared || destination === null) return true;
  return destination.kind === "several" || !describeDestination(destination).leavesTrace;
}

/** A failure is only a warning, because this machine has the secret. */
async function tryEscrow({ bench, lease }: SecretDelivery, secret: OneTimeSecret): Promise<boolean> {
  try {
    return await bench.secrets.escrow(lease.entry.id, secret);
  } catch (error) {
    bench.tell.warn(withReason("The secret could not be encrypted into the team's journal", error));
    return false;
  }
}

async function tryKeep({ bench, lease }: SecretDelivery, secret: OneTimeSecret): Promise<boolean> {
  try {
    await bench.secrets.keep(lease.entry.id, secret);
    return true;
  } catch (error) {
    bench.disk.markFailed(reasonOf(error));
    bench.tell.warn(withReason("No copy of the secret could be kept before its delivery", error));
    return false;
  }
}

/** Keeps the secret. @returns why that failed; undefined if the copy is complete, even if unsynced */
async function keepFailureReason({ secrets }: DeliveryBench, entry: string, secret: OneTimeSecret) {
  try {
    await secrets.keep(entry, secret);
    return undefined;
  } catch (error) {
    const kept = await secrets.readKept(entry).catch(() => undefined);
    return kept?.secret === secret.secret ? undefined : reasonOf(error);
  }
}

export async function settleDelivered(
  { bench, lease, claimedBy }: Omit<SecretDelivery, "destination">,
  learned: Partial<EntryProgress>,
  evidence?: AtDestination,
): Promise<void> {
  const isClaimed = claimedBy === "person";
  if (isClaimed) await resumeParent(bench, lease.entry);
  const { detail = lease.entry.detail } = learned;
  const settled = detail.differs === undefined ? "done" : "unusable";
  const state = hasNoId({ ...lease.entry, ...learned }) ? "unknown" : settled;
  const claimed = isClaimed ? { detail: { ...detail, secret_claimed: true } } : {};
  // On a full disk, the record needs the space that was reserved for an unneeded copy.
  if (evidence !== undefined) await releaseReserved(bench, lease.entry);
  const isRecorded = await recordOrWarn(bench, lease, { ...learned, ...claimed, state, last_error: null });
  if (isRecorded) await destroyCopy(bench, lease.entry, isClaimed ? { typed: "claim" } : evidence);
  else await assertNotTakenOver(bench, lease);
  if (!isClaimed) assertMatchesRequest(lease.entry);
}

/** Called before the claim is recorded: after a crash, the rotation must not wait for another claim. */
async function resumeParent(bench: DeliveryBench, { parent }: Entry): Promise<void> {
  const rotation = parent === null ? undefined : await bench.journal.find(parent).catch(() => undefined);
  if (rotation?.state !== "undelivered") return;
  const lease = await bench.journal.tryLease(rotation.id);
  if (lease !== null) await withLease(lease, () => recordOrWarn(bench, lease, { state: "pending", last_error: null }));
}

/** @throws Failure `outcome_unknown` if another process took over the entry and did not record the delivery */
async function assertNotTakenOver({ journal }: DeliveryBench, { entry }: EntryLease): Promise<void> {
  const now = await journal.find(entry.id).catch(() => undefined);
  if (now === undefined || now.sequence <= entry.sequence || now.state === "done") return;
  throw entryFailure(entry, "outcome_unknown", `Another process took over ${entry.id}, which is ${now.state} now.`, {
    meaning: `The secret was delivered, but its client or key may be revoked: do not use the secret before you know.`,
    nextCommand: shell`integ journal show ${entry.id}`,
  });
}

export function assertMatchesRequest(entry: Entry): void {
  const { detail, state, resource_id } = entry;
  if (detail.differs === undefined || state !== "unusable") return;
  const noun = nounOf(entry);
  const message = `The ${noun} ${resource_id ?? ""} differs from the request: ${detail.differs}.`;
  throw entryFailure(entry, "unusable", message, {
    meaning: `Nothing was revoked, and a secret that arrived was delivered. Do not use this ${noun} before you know why the service responded so.`,
    hint: `Report the request id to the service's operator, then revoke this ${noun} or keep it.`,
  });
}

/** Called after the entry's end or claim is recorded: a crash leaves an unneeded copy rather than none. */
export async function destroyCopy(bench: DestroyBench, entry: Entry, evidence?: DestroyEvidence): Promise<void> {
  const { id } = entry;
  try {
    if (!(isSettled(entry.state) || wasClaimed(entry)) || !bench.secrets.isKept(entry.id)) return;
    const shown = evidence ?? (await deliveryEvidence(bench, entry));
    if (shown !== undefined && (await destroy(bench, entry, shown))) return;
    bench.tell.warn(
      `The copy of the secret of ${id} stays on this machine: nothing shows now that the secret is at its destination. To take it out: integ journal claim ${id}. To destroy it: integ journal forget ${id}`,
    );
  } catch (error) {
    bench.tell.warn(withReason("The copy of the secret that was kept meanwhile could not be destroyed", error));
  }
}

type DestroyBench = Overwriting & { readonly tell: Pick<Tell, "warn"> };

export async function deliveryEvidence(bench: Overwriting, entry: Entry): Promise<AtDestination | undefined> {
  if (entry.destination === null) return undefined;
  const missing = new Failure("failed", "It is not there.");
  return AtDestination.after(entry.id, async () => {
    for (const place of placesOf(entry.destination)) if (!(await isAt(bench, entry, place))) throw missing;
  }).catch(onFailure(() => undefined));
}

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
    ...claimStep(entry, because),
  });
}

/** Names no destination: a typed `--secret-profile` consents to replace any credential that the profile has now. */
function claimStep({ id, destination }: Entry, because: unknown): NextStep {
  const commands = missingPlaces(destination).filter(({ kind }) => kind === "command");
  if (commands.length === 0) {
    const hint = because instanceof Failure && needsForce(because.details) ? because.details.hint : undefined;
    return { nextCommand: shell`integ journal claim ${id}`, hint };
  }
  const what = commands.length === 1 ? flags.secretCommand : `${flags.secretCommand} ${commands.length} times`;
  return { hint: `Claim the entry ${id} and pass ${what} again: commands are not stored.` };
}

export function secretLost(
  entry: Entry,
  { requestId, here }: { readonly requestId?: string | undefined; readonly here?: DeliveryBench["secrets"] } = {},
): Failure {
  if (isGuess(entry)) return withRequestId(uncertainKeyFailure(entry), requestId);
  const { id, operation, resource_id } = entry;
  const noun = nounOf(entry);
  const others = here === undefined ? [] : otherPlaces(entry, here);
  const wayOut =
    operation === "access_key.rotate" ? "rotate the key again." : `revoke this ${noun} and create another.`;
  let message = `The ${noun} ${resource_id ?? ""} exists, and its one-time secret is lost.`;
  let meaning = `The API never shows a secret twice. To fix it: ${wayOut}`;
  if (mayBeCreatedElsewhere(entry)) {
    message = `The client ${resource_id ?? ""} exists, and its secret is not here.`;
    meaning = `Its idempotency key was given by hand: if it was created elsewhere with the same key, its secret may be in use. ${flags.yes} alone does not revoke it.`;
  } else if (others.length > 0) {
    message = `Its secret is not here. It was requested in ${others.join(", ")} too, and may be kept there.`;
    meaning = `${flags.yes} alone does not revoke it. Look there first: integ journal claim ${id}`;
  }
  const step = { meaning, nextCommand: nextStep(entry) ?? undefined };
  return withRequestId(entryFailure(entry, "secret_lost", message, step), requestId);
}

export function learnedOfKey(entry: Entry, id: string, detail: Entry["detail"] = {}): Partial<EntryProgress> {
  return { resource_id: id || entry.resource_id, detail: { ...entry.detail, ...detail, in_flight: false } };
}

/** A broken response may have the only copy of the secret. @returns the likely id or "", and why keeping the secret failed */
export async function keepSalvaged(
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

/** After a Failure `secret_lost` the reserved space stays, because it may have the secret. */
export async function withRelease<T>(delivery: SecretDelivery, work: () => Promise<T>): Promise<T> {
  const { bench, lease, destination } = delivery;
  let mayHaveSecret = false;
  try {
    return await work();
  } catch (error) {
    mayHaveSecret = error instanceof Failure && error.kind === "secret_lost";
    throw error;
  } finally {
    if (!mayHaveSecret) await releaseReserved(bench, lease.entry, destination);
  }
}

/** A failure is only a warning, because the space can be released later. */
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

/** Completes interrupted writes. @returns true if every recorded destination has the secret */
export async function completeDelivery(bench: Overwriting, lease: EntryLease): Promise<boolean> {
  const { destination } = lease.entry;
  if (destination === null) return false;
  if (destination.kind !== "several") return isAt(bench, lease.entry, destination);
  const places = [];
  for (const place of destination.places) {
    const isThere = place.state === "delivered" || (await isAt(bench, lease.entry, place.at));
    places.push(isThere ? ({ ...place, state: "delivered" } as const) : place);
  }
  if (places.some(({ state }, index) => state !== destination.places[index]?.state))
    await lease.record({ destination: { ...destination, places } });
  return places.every(({ state }) => state === "delivered");
}

/** `secret` is set only if this process delivered it. */
export interface ContinuedDelivery {
  readonly secret?: OneTimeSecret;
}

interface DeliveryToContinue extends SecretDelivery {
  readonly learned?: Partial<EntryProgress>;
}

/** @returns undefined if the secret is neither delivered nor kept. @throws Failure `undelivered` if a person must claim it */
export async function continueDelivery(work: DeliveryToContinue): Promise<ContinuedDelivery | undefined> {
  const { bench, lease, destination } = work;
  const { id, state } = lease.entry;
  const learnedFrom = async (kept?: OneTimeSecret): Promise<Partial<EntryProgress>> =>
    work.learned ?? (await learnedOfKept(bench, lease.entry, kept?.id ?? ""));
  // After a crash, only the copy may have the id of the client or key. A damaged copy has none.
  const learnedFromCopy = async () =>
    learnedFrom(bench.secrets.isKept(id) ? await bench.secrets.readKept(id).catch(() => undefined) : undefined);
  try {
    if (
      isForPlace(work) &&
      (await completeDelivery(bench, lease).catch((error: unknown) => failUnknown(work, error)))
    ) {
      await settleDelivered(work, await learnedFromCopy());
      return {};
    }
    // If an undelivered secret is not kept here, another state folder may keep it.
    assertNotKeptElsewhere(bench, lease.entry);
    await keepDelivered(bench, lease);
    if (!bench.secrets.isKept(id)) {
      if (state === "undelivered") await lease.record({ state: "secret_lost" });
      return undefined;
    }
    const why = claimReason(work);
    if (why !== undefined) {
      if (state !== "undelivered" || work.learned !== undefined)
        await recordOrWarn(bench, lease, { ...(await learnedFromCopy()), state: "undelivered" });
      throw undelivered(lease.entry, why, bench.secrets);
    }
    const kept = await bench.secrets.readKept(id);
    const learned = await learnedFrom(kept);
    const record = await reserveDestination(bench, lease, { destination, isKept: true }).catch((error: unknown) => {
      throw work.claimedBy === "policy" ? undelivered(lease.entry, error, bench.secrets) : error;
    });
    await lease.record({ destination: { ...record } });
    const secret = withEntryIds(kept, { ...lease.entry, ...learned });
    await deliverSecret(work, secret, { learned, isKept: true });
    return { secret };
  } finally {
    await releaseReserved(bench, lease.entry, destination);
  }
}

/** False if a person claims the secret for another destination than the entry's only one. */
function isForPlace({ lease: { entry }, destination: { record }, claimedBy }: SecretDelivery): boolean {
  const before = entry.destination;
  if (claimedBy !== "person" || before === null || before.kind === "several") return true;
  return record.kind !== "several" && isSamePlace(before, record);
}

/** A receipt shows that the client exists, and the destination, which cannot be checked, may have its secret. */
async function failUnknown({ bench, lease, learned }: DeliveryToContinue, error: unknown): Promise<never> {
  if (!(error instanceof Failure) || learned === undefined) throw error;
  await recordOrWarn(bench, lease, { ...learned, state: "unknown" });
  throw outcomeUnknown(lease.entry, error);
}

/** @returns the end of a sentence: why a kept secret needs a claim; undefined if it needs none */
function claimReason({ lease: { entry }, destination, claimedBy, learned }: DeliveryToContinue): string | undefined {
  if (claimedBy !== undefined) return undefined;
  const { state, destination: at } = entry;
  const isLeft = learned === undefined && (state === "undelivered" || state === "secret_lost");
  if (kindOf(entry) === "oauth_client") {
    const continues = !isLeft && (at?.kind === "several" || at?.kind === "store");
    return continues ? undefined : "an earlier run could not deliver it.";
  }
  if (state === "undelivered") return at?.kind === "profile" ? undefined : "it is kept until you claim it.";
  return destination.isStdout ? "an earlier run ended before it could confirm the delivery." : undefined;
}

export function assertNotKeptElsewhere({ secrets }: Pick<DeliveryBench, "secrets">, entry: Entry): void {
  const { kept_at, attempted_at = [] } = entry.detail;
  if (entry.state !== "undelivered" || kept_at === undefined || secrets.isKept(entry.id)) return;
  const replaced = attemptedPlaces(secrets, entry.detail).find((one) => !attempted_at.includes(one));
  const at = kept_at === secrets.place ? replaced : kept_at;
  if (at === undefined) return;
  const { kind, message, details } = undelivered(entry, `it is kept in ${at}, and this is ${secrets.place}.`, secrets);
  throw new Failure(kind, message, {
    ...details,
    meaning: `Nothing was sent. If that folder no longer exists: integ journal forget ${entry.id}`,
    nextCommand: undefined,
    hint: `Run integ journal claim ${entry.id} there.`,
  });
}

/** A kept secret makes an unknown outcome `undelivered`, even if no receipt shows its client. */
export async function undeliveredIfKept({ bench, lease }: SecretDelivery, failure: Failure): Promise<Failure> {
  if (failure.kind !== "outcome_unknown") return failure;
  try {
    if (!bench.secrets.isKept(lease.entry.id)) return failure;
  } catch {
    return failure; // Recovery checks again.
  }
  await recordOrWarn(bench, lease, { state: "undelivered" });
  const { hint, nextCommand, meaning } = undelivered(lease.entry, failure, bench.secrets).details;
  const message = `The secret arrived and is kept, but the command could not continue: ${failure.message}`;
  return new Failure("undelivered", message, { ...failure.details, meaning, hint, nextCommand, recovers: undefined });
}

/** If only some destinations have the secret, keeps a copy of it. @returns true if all have the secret, or it was claimed */
export async function findSecret(bench: DeliveryBench, lease: EntryLease): Promise<boolean> {
  if (wasClaimed(lease.entry) || (await completeDelivery(bench, lease))) return true;
  await keepDelivered(bench, lease);
  return false;
}

async function keepDelivered({ secrets }: DeliveryBench, { entry }: EntryLease): Promise<void> {
  const { id, resource_id, detail } = entry;
  if (!isPartlyDelivered(entry) || secrets.isKept(id)) return;
  const secret = await rereadSecret(secrets, entry);
  if (secret === undefined) return;
  const known = { id: resource_id ?? "", clientId: detail.client_id ?? undefined };
  await secrets.keep(id, { secret, kind: kindOf(entry), ...known, receipt: "" });
}

export async function rereadSecret(secrets: SecretKeeping, { destination }: Entry): Promise<string | undefined> {
  for (const place of placesOf(destination)) {
    const secret = await secrets.reread(place);
    if (secret !== undefined) return secret;
  }
  return undefined;
}

/** @returns ids that a new credential cannot have: of the replaced credentials, and of the key that sent the request */
export async function formerIds({ journal }: DeliveryBench, creation: Entry): Promise<readonly string[]> {
  const { parent, replaces, detail } = creation;
  const ids = [parent, replaces].filter((id) => id !== null);
  const others = ids.length === 0 ? [] : await journal.select({ all: true, ids });
  const known = others.flatMap((one) => [rotatedBy(one), one.id === replaces ? one.resource_id : undefined]);
  return [detail.asking_key, ...known].filter((id) => typeof id === "string");
}

/** A key's kept secret may have facts that the journal lacks. A client is identified only by its receipt. */
export async function learnedOfKept(bench: DeliveryBench, entry: Entry, id: string): Promise<Partial<EntryProgress>> {
  if (kindOf(entry) === "oauth_client") return {};
  if (entry.operation !== "access_key.create") return learnedOfKey(entry, id);
  const { keyDifferences } = await import("../api/access-keys.ts");
  const request = JSON.parse(entry.request_text) as AccessKeyRequest;
  // The parent rotation may record a key id that the entry lacks.
  const [rotation] = await bench.journal.select({ all: true, ids: [entry.parent ?? ""], trusted: true });
  const seen = (id || entry.resource_id || rotation?.resource_id) ?? undefined;
  const differs = keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs;
  return learnedOfKey(entry, seen ?? "", { differs });
}
