// Rotates a client or key by replacement: creates, delivers and proves a new one, keeps both during the overlap, then
// revokes the old one. client-rotation.ts and key-rotation.ts contain the differences.
import type { Service } from "../api/connect.ts";
import { Failure, onFailure, isInterruption, withReason, saysNothingWasDone } from "../errors.ts";
import { type Entry, isInPlace, isSettled, nextStep, nounOf, overlapEnd, rotatedBy } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import {
  type Concurrency,
  currentChild,
  rotationFrom,
  precedingRotation,
  settledRotations,
} from "../journal/rotations.ts";
import { flags, shell } from "../next-step.ts";
import {
  describeDestination,
  type DestinationRecord,
  isForProfile,
  isReadable,
  missingPlaces,
  namesOf,
  type OneTimeSecret,
  placesOf,
} from "../secrets/destination.ts";
import { type CreateOptions, admitStep, type CreationContract, finishCreation, type Outcome } from "./creation.ts";
import { next, type Proof, proofIn, refusedProof, type Step } from "./next.ts";
import { assertTrusted, isSameHere, secretShownBy, seenAt } from "./acts/overwrite.ts";
import { revokeStep, type Successor } from "./acts/revoke.ts";
import { assertMatchesRequest, releaseReserved, rereadSecret } from "./secret-delivery.ts";
import { admitWork, wait } from "./sending.ts";
import {
  type DeliveryBench,
  entryFailure,
  withLease,
  isoTime,
  recordOrWarn,
  recoveryAfter,
  recoveryStep,
  serviceTime,
  type Workbench,
} from "./workbench.ts";

/** The longest overlap in ms that a command waits for; a later run finishes longer ones. */
const longestWaitMs = 15 * 60_000;

export function isShortOverlap(overlapMs: number): boolean {
  return overlapMs <= longestWaitMs;
}

export interface RotationOptions extends Omit<CreateOptions, "key"> {
  /** `words` are predicates of the new credential. `isUsual` is true if only its proof is missing. */
  readonly mayRevokeUnproven?: (entry: Entry, words: string, isUsual: boolean) => Promise<boolean>;
  /** By default, integ waits for a short overlap. `leave` does not wait, and `end` ends the overlap now. */
  readonly overlap?: "leave" | "end";
  readonly reconnect?: () => Promise<Service>;
}

export interface Rotation {
  readonly bench: Workbench;
  readonly lease: EntryLease;
  readonly options: RotationOptions;
  readonly creation: CreationContract;
  readonly oldId: string;
  intent(): Intent;
  /** The secret replaces the profile's own credential, so it is delivered only if it works. */
  readonly updatesProfile?: boolean;
  differenceOf?(child: Entry): string | undefined;
  /** @returns when the old credential was last used; null if never; undefined if not shown */
  lastUse?(): Promise<string | null | undefined>;
  unprovenReason(hasSecret: boolean): string;
  readonly missingProofSetup?: string | undefined;
}

export interface RotationResult {
  readonly oldId: string;
  readonly newId: string;
  readonly oldRevoked: boolean;
  /** The end of the overlap (ISO 8601 UTC), if it outlasts this command. */
  readonly dueAt?: string;
  readonly entry: string;
  /** Includes the secret; undefined if an earlier process delivered it. */
  readonly receipt: string | undefined;
}

export interface RotationRequest {
  readonly intent: Intent;
  readonly rotation: (bench: Workbench, lease: EntryLease, options: RotationOptions) => Rotation;
  readonly differences: (entry: Entry) => readonly Difference[];
  /** The end of a sentence: what to do instead of continuing this rotation. */
  readonly alternative: (entry: Entry) => string;
  /** Set if the old credential is not active: ends the rotation with a failure. */
  readonly refuseOld?: ((lease: EntryLease) => Promise<Failure>) | undefined;
}

export async function rotate(
  bench: Workbench,
  request: RotationRequest,
  options: RotationOptions,
): Promise<RotationResult> {
  const { intent, refuseOld } = request;
  const { destination, fresh } = options;
  const settledBefore = await settledRotations(bench.journal, intent);
  const isDelivered = async ({ entry }: EntryLease) => (await currentChild(bench.journal, entry))?.state === "done";
  const { kind, lease, place } = await admitWork(bench, intent, { destination, fresh, isDelivered });
  return withLease(lease, async () => {
    if (kind === "resumed") {
      const what = intent.operation === "access_key.rotate" ? "replacement" : "rotation";
      bench.tell.note(`Resuming the unfinished ${what} ${lease.entry.id}.`);
      await assertSameOptions(bench, lease.entry, { ...request, place });
    } else {
      await assertPrecedence(bench, lease, { wasActive: refuseOld === undefined, settledBefore, fresh });
      if (refuseOld !== undefined) throw await refuseOld(lease);
    }
    return finishRotation(request.rotation(bench, lease, options));
  });
}

export const uselessSecretWords = "two rotations would make the secret of one of them useless";

export async function assertPrecedence(
  bench: Workbench,
  lease: EntryLease,
  about: Omit<Concurrency, "clock">,
): Promise<void> {
  const { entry } = lease;
  const first = await precedingRotation(bench.journal, entry, { ...about, clock: bench.clock });
  if (first === undefined) return;
  await recordOrWarn(bench, lease, { state: "refused" });
  const noun = nounOf(entry);
  const old = `the ${noun} ${rotatedBy(entry)}`;
  const isOver = isSettled(first.state);
  let message = `Another process ${isOver ? `has just rotated ${old}` : `rotates ${old} at this moment`}.`;
  let why = `one rotation creates one new ${noun}, and the other process delivers its secret.`;
  if (about.fresh !== true && !isOver && isInPlace(entry) && !isInPlace(first)) {
    message = `The key ${rotatedBy(entry)} is being replaced: the rotation ${first.id} is unfinished.`;
    why = `the replacement revokes this key at its end. ${flags.new} rotates it anyway.`;
  } else if (isInPlace(entry) || isInPlace(first)) why = `${uselessSecretWords}.`;
  throw entryFailure(lease.entry, "conflict", message, {
    meaning: `Nothing was sent: ${why}`,
    nextCommand: shell`integ journal show ${first.id}`,
  });
}

export interface Difference {
  readonly flag: string;
  readonly recorded: string;
  readonly typed: string;
}

/** The old credential is kept for `overlapMs`, or for less, once it has been unused for `unusedMs`. */
export interface Overlap {
  readonly overlapMs: number;
  readonly unusedMs?: number | undefined;
}

const unusedWords = (ms: number | undefined): string => (ms === undefined ? "not given" : `${ms / 1000}s`);

export function overlapDifferences(
  { detail }: Entry,
  { overlapMs, unusedMs, keepOld = false }: Overlap & { readonly keepOld?: boolean },
): Difference[] {
  const given = (isGiven: boolean): string => (isGiven ? "given" : "not given");
  return [
    { flag: flags.overlap, recorded: `${(detail.overlap_ms ?? 0) / 1000}s`, typed: `${overlapMs / 1000}s` },
    { flag: flags.overlapUnused, recorded: unusedWords(detail.overlap_unused_ms), typed: unusedWords(unusedMs) },
    { flag: flags.keepOld, recorded: given(detail.keep_old === true), typed: given(keepOld) },
  ];
}

/** @param about.place undefined if the destination refused the secret */
export async function assertSameOptions(
  bench: Workbench,
  entry: Entry,
  about: Pick<RotationRequest, "differences" | "alternative"> & { readonly place: DestinationRecord | undefined },
): Promise<void> {
  const { differences, alternative, place } = about;
  const all = [...differences(entry)];
  const child = await currentChild(bench.journal, entry);
  // Before the delivery, the destination may change. The default, stdout, does not conflict with an earlier destination.
  if (child?.state === "done" && child.destination !== null && place !== undefined && place.kind !== "stdout")
    all.push({ flag: "the destination of the secret", recorded: namesOf(child.destination), typed: namesOf(place) });
  const others = all.filter(({ recorded, typed }) => recorded !== typed);
  if (others.length === 0) return;
  const named = others.map(({ flag, recorded, typed }) => `${flag} was ${recorded}, and is ${typed} now`);
  const message = `The unfinished rotation ${entry.id} was started with other options: ${named.join("; ")}.`;
  throw new Failure("usage", message, {
    meaning: `Nothing was sent. It continues as it was started; ${alternative(entry)}.`,
    ...recoveryStep(entry.id),
  });
}

export async function finishRotation(rotation: Rotation): Promise<RotationResult> {
  const { bench, lease, oldId } = rotation;
  await assertTrusted(bench, await bench.journal.select({ all: true, parent: lease.entry.id }));
  const made = await createSuccessor(rotation).catch((error: unknown) => recordUnfinished(rotation, error));
  const id = idOf(made);
  try {
    assertNewId(rotation, id);
    const { resource_id: before, detail } = lease.entry;
    const isAnother = before !== null && before !== id;
    // Facts about the earlier successor do not hold for the new one.
    const unproven = isAnother ? { proven: undefined, overlap_until: undefined, gone: undefined } : {};
    // If this record fails, the rotation stops before it revokes the old credential.
    await lease.record({ resource_id: id, detail: { ...detail, ...unproven } });
    const overlap = isAnother ? "leave" : rotation.options.overlap;
    const dueAt = await finishOverlap({ ...rotation, options: { ...rotation.options, overlap } }, made);
    const rotated = { oldId, newId: id, receipt: made.secret?.receipt, entry: lease.entry.id };
    if (dueAt !== undefined) return { ...rotated, oldRevoked: false, dueAt };
    await recordOrWarn(bench, lease, { state: "done", last_error: null });
    await releaseReserved(bench, made.entry);
    return { ...rotated, oldRevoked: lease.entry.detail.keep_old !== true };
  } catch (error) {
    return await recordUnfinished(rotation, error, made);
  }
}

const idOf = ({ entry: { resource_id } }: Outcome): string => resource_id ?? "";

/** Proves the new credential, waits for a short overlap, and revokes the old one. @returns the due time of a longer overlap */
async function finishOverlap(rotation: Rotation, made: Outcome): Promise<string | undefined> {
  const { bench, lease, creation, oldId, options } = rotation;
  const show = async (due?: string): Promise<void> =>
    made.receipt === undefined ? undefined : bench.tell.showReceipt?.(made.receipt, due);
  const isOldRevoked = await ensureProven(rotation, made).catch(async (error: unknown) => {
    await show();
    throw error;
  });
  // In the run that delivers the new secret, the old credential cannot have been unused for long enough.
  const looks = made.secret === undefined && !isOldRevoked && lease.entry.detail.overlap_unused_ms !== undefined;
  const lastUsedAt = looks ? await rotation.lastUse?.() : undefined;
  const step = stepAfterProof(rotation, isOldRevoked, lastUsedAt);
  const dueAt = step === "wait" ? lease.entry.detail.overlap_until : undefined;
  await show(dueAt);
  if (step === "end") return undefined;
  if (dueAt !== undefined) {
    if (lease.entry.state !== "waiting") await lease.record({ state: "waiting", last_error: null });
    const leftMs = Date.parse(dueAt) - serviceTime(bench);
    if (options.overlap === "leave" || !isShortOverlap(leftMs)) return dueAt;
    await wait(bench, leftMs, `The old ${creation.noun} is revoked when the overlap ends`);
  }
  const service = lease.entry.detail.update_profile === true ? await options.reconnect?.() : undefined;
  // The profile's old credential may already be revoked, so `service` uses the new one.
  const account = { ...bench.account, service: service ?? bench.account.service };
  const renewed = { ...rotation, bench: { ...bench, account } };
  let times = 0;
  const look = (): Promise<Successor> =>
    successorOf(renewed, times++ === 0 ? made : { ...made, kind: "delivered_before" });
  await creation.revoke(bench, oldId, { grounds: { kind: "replaced", look }, lease, service }).catch(async (error) => {
    // If a destination lost the secret, integ advises a person to revoke the old credential. The rotation ends once it is revoked.
    if (!lease.entry.detail.gone?.length || (await creation.statusOf(renewed.bench, oldId)) !== "revoked") throw error;
  });
  return undefined;
}

function stepAfterProof({ bench, lease, options }: Rotation, isOldRevoked = false, lastUsedAt?: string | null): Step {
  const { detail } = lease.entry;
  const isOver = !detail.overlap_ms || overlapEnd(detail, lastUsedAt) <= serviceTime(bench);
  const isDue = options.overlap === "end" || isOver;
  return next(lease.entry, { child: { state: "done" }, isDue, isOldRevoked });
}

async function ensureProven(rotation: Rotation, made: Outcome): Promise<boolean> {
  const { bench, lease, creation, oldId } = rotation;
  const { detail } = lease.entry;
  const isOldRevoked = async (): Promise<boolean> => (await creation.statusOf(bench, oldId)) === "revoked";
  const step = stepAfterProof(rotation);
  if (step === "end") return false;
  if (step === "prove the new one") {
    if ([lease.entry, made.entry].some(wasRefused) && (await isOldRevoked())) return true;
    await prove(rotation, made);
  }
  // Someone may have revoked a credential during the overlap.
  if (made.secret !== undefined || !detail.overlap_ms) return false;
  await workingSuccessor(rotation, made.entry);
  return isOldRevoked();
}

async function createSuccessor(rotation: Rotation): Promise<Outcome> {
  const { bench, lease, creation, options } = rotation;
  const { destination } = options;
  const { noun } = creation;
  for (;;) {
    const found = await currentChild(bench.journal, lease.entry);
    if (found?.state === "done")
      return { kind: "delivered_before", entry: found, receipt: await creation.readReceipt?.(bench, found) };
    if (found?.state === "unusable") {
      assertMatchesRequest(found);
      // A credential that the service once called unusable is not used (§4.2), whatever its status is later.
      const message = `The service called the new ${noun} ${found.resource_id} unusable: the old ${noun} is not revoked.`;
      const meaning = `This rotation ends here, and the old ${noun} stays as it is.`;
      throw entryFailure(found, "unusable", message, { meaning });
    }
    const child = found
      ? await bench.journal.lease(found.id)
      : await admitStep(bench, destination, { ...rotation.intent(), parent: lease.entry.id });
    try {
      const prove = earlyProof(rotation, child);
      const work = { ...options, bench, lease: child, prove, destinationOf: () => destination };
      const made = await finishCreation(creation, work);
      const { entry, receipt } = made;
      if (made.kind !== "nothing_made")
        return { ...made, receipt: receipt ?? (await creation.readReceipt?.(bench, entry)) };
    } catch (error) {
      if (!(error instanceof Failure) || (error.kind !== "undelivered" && error.kind !== "conflict")) throw error;
      const meaning = `${error.details.meaning ?? ""} The old ${noun} was not revoked.`.trim();
      throw new Failure(error.kind, error.message, { ...error.details, meaning });
    } finally {
      await child.release();
    }
  }
}

/** The proof precedes the delivery if no later run could read the secret back, or if it becomes the profile's own credential. */
function earlyProof({ bench, lease, options, creation, updatesProfile = false }: Rotation, child: EntryLease) {
  const isLater = lease.entry.detail.keep_old === true || placesOf(options.destination.record).some(isReadable);
  if (isLater && !updatesProfile && child.entry.detail.proven === undefined) return undefined;
  return async (secret: OneTimeSecret): Promise<void> => {
    const tried = await tryFirst(bench, child, () => creation.prove(bench, lease.entry, child.entry, secret));
    if (!updatesProfile || tried === true) return;
    const message = "The profile has no way to exchange the new secret for a token, so it cannot be proven.";
    throw tried === false ? new Failure("auth", message) : tried;
  };
}

/** Records the outcome in place of an earlier one, because a key may be rotated between two deliveries. */
export async function tryFirst(bench: DeliveryBench, child: EntryLease, prove: () => Promise<boolean>) {
  const tried = await prove().catch(onFailure((failure) => failure));
  const refused = tried instanceof Failure && tried.kind === "auth" ? refusedProof : undefined;
  const proven = tried === true ? "token exchange" : refused;
  await recordOrWarn(bench, child, { detail: { ...child.entry.detail, proven } });
  return tried;
}

/** @throws Failure `unusable` if the new id is empty or equals the old one: a revocation would leave no credential */
function assertNewId({ creation: { noun }, oldId }: Rotation, newId: string): void {
  if (newId !== "" && newId !== oldId) return;
  const shown = newId === "" ? "without an id" : "with the id of the old one";
  const message = `The service responded to the creation of a new ${noun} ${shown}: nothing was revoked.`;
  throw new Failure("unusable", message, {
    meaning: `The ${noun} ${oldId} stays as it is. A secret that arrived was delivered.`,
    hint: "Report the request id to the service's operator before you rotate again.",
  });
}

/** Asks for consent only if no proof is possible, never after a refusal. A credential that is not shown is proven again. */
async function prove(rotation: Rotation, made: Outcome, isShown = true): Promise<void> {
  const { bench, lease, options, creation } = rotation;
  const { entry: child, secret } = made;
  const { noun } = creation;
  const id = idOf(made);
  const isProven = proofIn(lease.entry.detail) !== undefined;
  const isRefused = [lease.entry, child].some(wasRefused);
  if (!isProven && !isRefused && proofIn(child.detail) === "token exchange") return accept(rotation, child);
  // An earlier process may have delivered the secret to a destination that can be read back.
  const text =
    secret?.secret ??
    (await rereadSecret(bench.secrets, child)) ??
    (await secretShownBy(bench, child, options.destination));
  const known = secret ?? (text === undefined ? undefined : { secret: text });
  const tried =
    known && (await creation.prove(bench, lease.entry, child, known).catch(onFailure((failure) => failure)));
  if (isProven && (isShown ? !(tried instanceof Failure) : tried === true)) return;
  if (tried === true) return accept(rotation, child);
  // Only a refusal is final. After any other failure, the proof can be repeated.
  if (tried instanceof Failure && tried.kind !== "auth") {
    const kind = isInterruption(tried) ? tried.kind : "pending";
    const meaning = `The old ${noun} was not revoked; the new one's secret was delivered.`;
    const message = withReason(`The new ${noun} ${id} could not be proven`, tried);
    throw new Failure(kind, message, { ...tried.details, meaning });
  }
  if (tried) await recordOrWarn(bench, lease, { detail: { ...lease.entry.detail, proven: refusedProof } });
  if (tried || isRefused) throw proofRefused(rotation, id, tried || undefined);
  const { missingProofSetup = "" } = rotation;
  // A secret that cannot be read back cannot be proven later.
  const isReadable = missingProofSetup !== "" && (await rereadSecret(bench.secrets, child)) !== undefined;
  const then = isReadable
    ? `it: ${missingProofSetup}, then integ journal recover ${lease.entry.id}`
    : `later rotations: ${missingProofSetup}`;
  const doubts = [rotation.unprovenReason(known !== undefined), isShown ? [] : "is not shown by the service"];
  return accept(rotation, child, doubts.flat(), missingProofSetup && `To prove ${then}. `);
}

/** One consent is enough, because its question or message names every doubt. */
async function accept(rotation: Rotation, child: Entry, unproven: readonly string[] = [], advice = ""): Promise<void> {
  const { bench, lease, creation, options } = rotation;
  const { noun } = creation;
  const id = child.resource_id ?? "";
  const words = [...unproven, rotation.differenceOf?.(child) ?? []].flat().join(", and ");
  if (words !== "" && !(await options.mayRevokeUnproven?.(lease.entry, words, words === unproven[0])))
    throw new Failure("pending", `The new ${noun} ${id} ${words}.`, {
      meaning: `The old ${noun} is not revoked. ${advice}If the new one works for you, continue with ${flags.acceptUnproven}.`,
      ...recoveryStep(lease.entry.id, [flags.acceptUnproven]),
    });
  // The overlap starts now by the service's clock. Any response shows the offset of that clock.
  if (lease.entry.detail.overlap_ms && bench.account.service.clockOffset() === undefined)
    await creation.statusOf(bench, id);
  const { detail } = lease.entry;
  const overlap_until = detail.overlap_until ?? isoTime(serviceTime(bench) + (detail.overlap_ms ?? 0));
  const proven: Proof = unproven.length === 0 ? "token exchange" : "by the person";
  await lease.record({ detail: { ...detail, proven, overlap_until } });
}

const wasRefused = ({ detail }: Entry): boolean => detail.proven === refusedProof;

function proofRefused({ creation, oldId }: Rotation, id: string, error: Failure | undefined): Failure {
  const { noun } = creation;
  const message = `The secret of the new ${noun} ${id} was refused when it was tried`;
  return new Failure("pending", error === undefined ? `${message}.` : withReason(message, error), {
    cause: error,
    problem: error?.details.problem,
    meaning: `The old ${noun} ${oldId} is not revoked, even with ${flags.acceptUnproven}. If the new ${noun} works for all programs, revoke the old ${noun} yourself: ${revokeStep(noun, oldId)}`,
  });
}

/** Checks the new credential again, which may have been revoked or disabled since its proof. */
async function successorOf(rotation: Rotation, made: Outcome): Promise<Successor> {
  const { detail } = rotation.lease.entry;
  // A token exchange shows that the credential is active; a person's consent does not.
  const isFresh = made.kind === "delivered" && !detail.overlap_ms && proofIn(detail) === "token exchange";
  const { child, isShown } = await workingSuccessor(rotation, made.entry, isFresh);
  assertProfileHasSecret(rotation, child);
  const later = { kind: "delivered_before", entry: child, secret: undefined } as const;
  const current = child === made.entry ? made : { ...made, ...later };
  if (!isFresh && proofIn(detail)) await prove(rotation, current, isShown || current.kind === "delivered");
  const missing = missingPlaces(child.destination).map((place) => describeDestination(place).name);
  return { id: idOf(current), proof: proofIn(detail), missing, lostFrom: await lostPlaces(rotation, child, isFresh) };
}

export function assertProfileHasSecret({ bench, lease, oldId, creation }: Rotation, child: Entry): void {
  const { account } = bench;
  const { noun } = creation;
  const newId = child.resource_id ?? "";
  const { id, profile, destination } = lease.entry;
  const hasSecret = [newId, child.detail.client_id].includes(account.keyId ?? account.principal);
  if (hasSecret || !isForProfile(destination, profile) || isForProfile(child.destination, profile)) return;
  const how =
    noun === "key" ? [flags.apiKeyStdin, flags.apiKeyId, newId] : [flags.clientId, "<id>", flags.clientSecretStdin];
  const where = child.destination ? namesOf(child.destination) : "standard output";
  const message = `Profile ${profile} does not have the new secret, which went to ${where}.`;
  throw new Failure("pending", message, {
    meaning: `The old ${noun} ${oldId} is not revoked: profile ${profile} would be locked out.`,
    hint: `Give the profile the new secret (${shell`integ profiles edit ${profile} ${how}`}), then run: ${shell`integ journal recover ${id}`}`,
  });
}

async function lostPlaces(
  rotation: Rotation,
  child: Entry,
  isFresh: boolean,
  known = new Map<string, boolean>(),
): Promise<readonly string[]> {
  const { bench, lease, creation, options } = rotation;
  const { size } = known;
  const names = { there: [] as string[], missing: [] as string[], unverified: [] as string[] };
  const { detail } = lease.entry;
  const isActive = async (id: string): Promise<boolean> =>
    known.get(id) ?? known.set(id, (await creation.statusOf(bench, id)) === "active").get(id)!;
  for (const place of placesOf(child.destination)) {
    const { name } = describeDestination(place);
    const seen = await seenAt(bench, child, place, { isActive, destination: options.destination });
    // If this run cannot check the destination, an earlier run's finding that it lost the secret still counts.
    names[seen === "unverified" && detail.gone?.includes(name) === true ? "missing" : seen].push(name);
  }
  // The status request took time, so a place that was checked before may have changed.
  if (known.size > size) return lostPlaces(rotation, child, isFresh, known);
  const { missing } = names;
  if (missing.join() !== (detail.gone ?? []).join()) await lease.record({ detail: { ...detail, gone: missing } });
  if (names.unverified.length > 0 && !isFresh)
    bench.tell.note(
      `Unverified: the secret of the new ${creation.noun} ${child.resource_id} was delivered to ${names.unverified.join(", ")}, and that cannot be looked at again.`,
    );
  return missing;
}

/** @returns the entry of the new credential, or of a successor in all its places. @throws Failure `unusable` if none works */
async function workingSuccessor(rotation: Rotation, child: Entry, isFresh = false) {
  const { bench, oldId, creation } = rotation;
  const { noun } = creation;
  const newId = child.resource_id ?? "";
  const status = isFresh ? "active" : await creation.statusOf(bench, newId);
  if (status === undefined || status === "active") return { child, isShown: status !== undefined };
  const how = status === "absent" ? `is not among the ${noun}s any more` : `is ${status}`;
  const later = status === "revoked" ? await rotationFrom(bench.journal, newId) : undefined;
  const next = later && (await currentChild(bench.journal, later));
  if (later && next && proofIn(later.detail) !== undefined && replacesEverywhere(next, child)) {
    await assertTrusted(bench, [later, next]);
    return workingSuccessor(rotation, next);
  }
  const after = later?.resource_id;
  // If the new credential has a successor, another rotation would create one credential too many.
  const meaning = after ? `It was rotated, and ${after} followed.` : `Another rotation makes another new ${noun}.`;
  const again =
    noun === "key"
      ? shell`integ keys rotate ${oldId} ${flags.byReplacement}`
      : shell`integ oauth-clients rotate ${oldId}`;
  throw new Failure("unusable", `The new ${noun} ${newId} ${how}: the old one is not revoked.`, {
    meaning: `This rotation ends here, and the old ${noun} ${oldId} stays as it is. ${meaning}`,
    ...(after
      ? { hint: `Revoke the old ${noun} yourself if no program uses it any more: ${revokeStep(noun, oldId)}` as const }
      : { nextCommand: again }),
  });
}

function replacesEverywhere(later: Entry, earlier: Entry): boolean {
  const places = placesOf(later.destination);
  return placesOf(earlier.destination).every(
    (place) => place.kind !== "stdout" && places.some((one) => isSameHere(one, place)),
  );
}

/** Until the new secret is delivered, the rotation has its creation's state. @param made set if the new secret was delivered */
async function recordUnfinished({ bench, lease, creation }: Rotation, error: unknown, made?: Outcome): Promise<never> {
  if (!(error instanceof Failure)) throw error;
  const { noun } = creation;
  // An unreadable journal does not change the outcome.
  const childState = await currentChild(bench.journal, lease.entry).then(
    (child) => child?.state ?? "refused",
    onFailure(() => lease.entry.state),
  );
  const isDelivered = made !== undefined || childState === "done";
  const unfinishedState = lease.entry.state === "waiting" ? "waiting" : "pending";
  const isEnded = made !== undefined && error.kind === "unusable";
  const state = isEnded ? "unusable" : isDelivered ? unfinishedState : childState;
  await recordOrWarn(bench, lease, { state, last_error: { kind: error.kind, message: error.message } });
  const { entry } = lease;
  const { hint, nextCommand, recovers } = error.details;
  // The failed step's own advice has priority.
  const isNamed = recovers === entry.id || (noun === "key" && (hint ?? nextCommand) !== undefined);
  const isResumed = !isSettled(state) && !isNamed;
  // Recovery would fail again while a credential is missing or refused.
  const resumed =
    error.kind === "auth"
      ? recoveryAfter(error, entry.id)
      : { hint: undefined, nextCommand: nextStep(entry) ?? undefined };
  const neither = `Neither ${noun} was revoked.`;
  const left = noun === "key" && state === "pending" ? "The old key was not revoked." : undefined;
  const details = {
    ...error.details,
    meaning:
      made !== undefined && error.kind === "outcome_unknown"
        ? `The secret of the new ${noun} is delivered. Whether the old ${noun} still works is not known.`
        : (error.details.meaning ?? (isInterruption(error) && isDelivered ? neither : left)),
    ...(isResumed ? resumed : {}),
  };
  if (!isDelivered || !saysNothingWasDone(error)) throw entryFailure(entry, error.kind, error.message, details);
  const message = withReason(`The new ${noun}'s secret is delivered; the old ${noun} is not revoked yet`, error);
  throw entryFailure(entry, "pending", message, { ...details, meaning: neither, cause: error });
}
