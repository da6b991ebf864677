// The rotation of a client or key by replacement: another one is made, delivered and proven, both work for a time, then the old
// one is revoked. At every moment one of the two works. The steps of each contract: client-rotation.ts, key-rotation.ts.
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
  missingPlaces,
  namesOf,
  type OneTimeSecret,
  placesOf,
} from "../secrets/destination.ts";
import { type AskedCreation, admitPart, type CreationContract, finishCreation, type Made } from "./creation.ts";
import { next, type Proof, proofIn, refusedProof, type Step } from "./next.ts";
import { assertTrusted, isSameHere, seenAt } from "./acts/overwrite.ts";
import { revokes, type Successor } from "./acts/revoke.ts";
import { assertAsAsked, releaseReserved, rereadSecret, type SecretDelivery } from "./secret-delivery.ts";
import { admitTo, wait } from "./sending.ts";
import {
  entryFailure,
  holding,
  isoTime,
  recordAfterwards,
  recoveryAfter,
  recoveryStep,
  serviceTime,
  type Workbench,
} from "./workbench.ts";

/** An overlap up to this long is waited for; a longer one is finished by `journal recover` when it is due. */
const longestWaitMs = 15 * 60_000;

/** True if the command itself waits until the overlap ends. */
export function isWaitedFor(overlapMs: number): boolean {
  return overlapMs <= longestWaitMs;
}

export interface RotationOptions extends Omit<AskedCreation, "key"> {
  /** Asks whether to revoke the old credential although the new one is not proven. */
  readonly mayRevokeUnproven?: (entry: Entry) => Promise<boolean>;
  /** What to do during an overlap: leave it or end it. By default, wait for a short one. */
  readonly overlap?: "leave" | "end";
  /** The service as the profile is after its credential was replaced. */
  readonly reconnect?: () => Promise<Service>;
}

/** A rotation in progress, with the steps that its contract defines. */
export interface Rotation {
  readonly bench: Workbench;
  readonly lease: EntryLease;
  readonly options: RotationOptions;
  readonly creation: CreationContract;
  readonly oldId: string;
  /** The intent to create the new client or key, without its destination. */
  intent(): Intent;
  /** Proves the new secret before its delivery; set if the secret replaces the profile's own credential. */
  readonly proveFirst?: SecretDelivery["prove"];
  /** @throws Failure if the new client or key must not replace the old one */
  checkNew?(child: Entry): Promise<void>;
  /** @returns false if the profile knows no way to prove it. @throws Failure if it was refused or without a response */
  prove(child: Entry, secret: Pick<OneTimeSecret, "secret" | "clientId">): Promise<boolean>;
  /** When the old one was last used; nothing if the service does not say. */
  lastUse?(): Promise<string | null | undefined>;
  /** Why nothing can be proven, as it ends a sentence. @param hasSecret the secret can still be read */
  whyUnproven(hasSecret: boolean): string;
  /** The setting that a proof needs, if the profile lacks it. */
  readonly lacking?: string | undefined;
}

export interface Rotated {
  readonly oldId: string;
  readonly newId: string;
  readonly oldRevoked: boolean;
  /** When the old one is to be revoked, if the overlap was left to run. */
  readonly dueAt?: string;
  /** Id of the rotation's entry. */
  readonly entry: string;
  /** The receipt of the new client or key with its secret; undefined if an earlier process printed it. */
  readonly receipt: string | undefined;
}

/** A requested rotation. */
export interface AskedRotation {
  readonly intent: Intent;
  readonly rotation: (bench: Workbench, lease: EntryLease, options: RotationOptions) => Rotation;
  readonly differences: (entry: Entry) => readonly Difference[];
  /** How another one is started instead, in words. */
  readonly wayOut: (entry: Entry) => string;
  /** Why nothing of the old one can be passed on, if it was not seen active before. */
  readonly refuseOld?: ((lease: EntryLease) => Promise<Failure>) | undefined;
}

/** Begins a rotation, or resumes the unfinished one of the same client or key. */
export async function rotate(bench: Workbench, asked: AskedRotation, options: RotationOptions): Promise<Rotated> {
  const { intent, refuseOld } = asked;
  const { destination, fresh } = options;
  const settledBefore = await settledRotations(bench.journal, intent);
  const isThere = async ({ entry }: EntryLease) => (await currentChild(bench.journal, entry))?.state === "done";
  const { kind, lease, place } = await admitTo(bench, intent, { destination, fresh, isThere });
  return holding(lease, async () => {
    if (kind === "resumed") {
      const what = intent.operation === "access_key.rotate" ? "replacement" : "rotation";
      bench.tell.note(`Resuming the unfinished ${what} ${lease.entry.id}.`);
      await refuseBegunOtherwise(bench, lease.entry, { ...asked, place });
    } else {
      await assertFirstOfTwo(bench, lease, { wasActive: refuseOld === undefined, settledBefore, fresh });
      if (refuseOld !== undefined) throw await refuseOld(lease);
    }
    return finishRotation(asked.rotation(bench, lease, options));
  });
}

export const oneUseless = "two rotations would make the secret of one of them useless";

/** @throws Failure `conflict` if another rotation was admitted first: that one continues, and nothing was sent */
export async function assertFirstOfTwo(
  bench: Workbench,
  lease: EntryLease,
  about: Omit<Concurrency, "clock">,
): Promise<void> {
  const { entry } = lease;
  const first = await precedingRotation(bench.journal, entry, { ...about, clock: bench.clock });
  if (first === undefined) return;
  await recordAfterwards(bench, lease, { state: "refused" });
  const noun = nounOf(entry);
  const old = `the ${noun} ${rotatedBy(entry)}`;
  const isOver = isSettled(first.state);
  let message = `Another process ${isOver ? `has just rotated ${old}` : `rotates ${old} at this moment`}.`;
  let why = `one rotation creates one new ${noun}, and the other process delivers its secret.`;
  if (about.fresh !== true && !isOver && isInPlace(entry) && !isInPlace(first)) {
    message = `The key ${rotatedBy(entry)} is being replaced: the rotation ${first.id} is unfinished.`;
    why = `the replacement revokes this key at its end. ${flags.new} rotates it anyway.`;
  } else if (isInPlace(entry) || isInPlace(first)) why = `${oneUseless}.`;
  throw entryFailure(lease.entry, "conflict", message, {
    meaning: `Nothing was sent: ${why}`,
    nextCommand: shell`integ journal show ${first.id}`,
  });
}

/** A flag whose value now differs from the value that the rotation was started with. */
export interface Difference {
  readonly flag: string;
  readonly begun: string;
  readonly typed: string;
}

/** How long the old one is kept, milliseconds: `overlapMs`, or less if it was not used for `unusedMs`. */
export interface Overlap {
  readonly overlapMs: number;
  readonly unusedMs?: number | undefined;
}

const unusedIn = (ms: number | undefined): string => (ms === undefined ? "not given" : `${ms / 1000}s`);

export function overlapDifferences(
  { detail }: Entry,
  { overlapMs, unusedMs, keepOld = false }: Overlap & { readonly keepOld?: boolean },
): Difference[] {
  const given = (isGiven: boolean): string => (isGiven ? "given" : "not given");
  return [
    { flag: flags.overlap, begun: `${(detail.overlap_ms ?? 0) / 1000}s`, typed: `${overlapMs / 1000}s` },
    { flag: flags.overlapUnused, begun: unusedIn(detail.overlap_unused_ms), typed: unusedIn(unusedMs) },
    { flag: flags.keepOld, begun: given(detail.keep_old === true), typed: given(keepOld) },
  ];
}

/** Continues a rotation only as it was started. @param about.place nothing if the destination cannot take a secret */
export async function refuseBegunOtherwise(
  bench: Workbench,
  entry: Entry,
  about: Pick<AskedRotation, "differences" | "wayOut"> & { readonly place: DestinationRecord | undefined },
): Promise<void> {
  const { differences, wayOut, place } = about;
  const all = [...differences(entry)];
  const child = await currentChild(bench.journal, entry);
  // Until the secret is delivered it goes where it is wanted now. The default, stdout, does not conflict with another place.
  if (child?.state === "done" && child.destination !== null && place !== undefined && place.kind !== "stdout")
    all.push({ flag: "the destination of the secret", begun: namesOf(child.destination), typed: namesOf(place) });
  const others = all.filter(({ begun, typed }) => begun !== typed);
  if (others.length === 0) return;
  const named = others.map(({ flag, begun, typed }) => `${flag} was ${begun}, and is ${typed} now`);
  const message = `The unfinished rotation ${entry.id} was started with other options: ${named.join("; ")}.`;
  throw new Failure("usage", message, {
    meaning: `Nothing was sent. It continues as it was started; ${wayOut(entry)}.`,
    ...recoveryStep(entry.id),
  });
}

/** Resumes a rotation at the step that it had reached, and completes it. */
export async function finishRotation(rotation: Rotation): Promise<Rotated> {
  const { bench, lease, oldId } = rotation;
  const made = await makeNewOne(rotation).catch((error: unknown) => unfinished(rotation, error));
  const id = idOf(made);
  try {
    assertAnother(rotation, id);
    // A journal that cannot be written ends the rotation here: both work, and nothing more is sent.
    const { resource_id: before, detail } = lease.entry;
    const isAnother = before !== null && before !== id;
    // The proof, the consent to end the overlap, and the looks at destinations concerned the earlier successor.
    const unproven = isAnother ? { proven: undefined, overlap_until: undefined, gone: undefined } : {};
    await lease.record({ resource_id: id, detail: { ...detail, ...unproven } });
    const overlap = isAnother ? "leave" : rotation.options.overlap;
    const dueAt = await untilOver({ ...rotation, options: { ...rotation.options, overlap } }, made);
    const rotated = { oldId, newId: id, receipt: made.secret?.receipt, entry: lease.entry.id };
    if (dueAt !== undefined) return { ...rotated, oldRevoked: false, dueAt };
    await recordAfterwards(bench, lease, { state: "done", last_error: null });
    await releaseReserved(bench, made.entry);
    return { ...rotated, oldRevoked: lease.entry.detail.keep_old !== true };
  } catch (error) {
    return await unfinished(rotation, error, made);
  }
}

const idOf = ({ entry: { resource_id } }: Made): string => resource_id ?? "";

/** From the delivery of the new secret to the revocation of the old credential. @returns its time if an overlap is left to run */
async function untilOver(rotation: Rotation, made: Made): Promise<string | undefined> {
  const { bench, lease, creation, oldId, options } = rotation;
  const show = async (due?: string): Promise<void> =>
    made.receipt === undefined ? undefined : bench.tell.made?.(made.receipt, due);
  const isOldRevoked = await untilProven(rotation, made).catch(async (error: unknown) => {
    await show();
    throw error;
  });
  // Right after the proof nothing was unused for long enough.
  const looks = made.secret === undefined && !isOldRevoked && lease.entry.detail.overlap_unused_ms !== undefined;
  const lastUsedAt = looks ? await rotation.lastUse?.() : undefined;
  const step = stepAfterProof(rotation, isOldRevoked, lastUsedAt);
  const dueAt = step === "wait" ? lease.entry.detail.overlap_until : undefined;
  await show(dueAt);
  if (step === "end") return undefined;
  if (dueAt !== undefined) {
    if (lease.entry.state !== "waiting") await lease.record({ state: "waiting", last_error: null });
    const leftMs = Date.parse(dueAt) - serviceTime(bench);
    if (options.overlap === "leave" || !isWaitedFor(leftMs)) return dueAt;
    await wait(bench, leftMs, `The old ${creation.noun} is revoked when the overlap ends`);
  }
  const service = lease.entry.detail.update_profile === true ? await options.reconnect?.() : undefined;
  // The old credential may be revoked already: the profile's new one asks then.
  const account = { ...bench.account, service: service ?? bench.account.service };
  const asking = { ...rotation, bench: { ...bench, account } };
  let times = 0;
  const look = (): Promise<Successor> =>
    successorOf(asking, times++ === 0 ? made : { ...made, kind: "delivered_before" });
  await creation.revoke(bench, oldId, { grounds: { kind: "replaced", look }, lease, service }).catch(async (error) => {
    // A person who knew that no one needs it has revoked the old one.
    if (!lease.entry.detail.gone?.length || (await creation.statusOf(asking.bench, oldId)) !== "revoked") throw error;
  });
  return undefined;
}

function stepAfterProof({ bench, lease, options }: Rotation, isOldRevoked = false, lastUsedAt?: string | null): Step {
  const { detail } = lease.entry;
  const isOver = !detail.overlap_ms || overlapEnd(detail, lastUsedAt) <= serviceTime(bench);
  const isDue = options.overlap === "end" || isOver;
  return next(lease.entry, { child: { state: "done" }, isDue, isOldRevoked });
}

/** The proof of the new one, if anything is left to do. @returns whether someone has revoked the old one meanwhile */
async function untilProven(rotation: Rotation, made: Made): Promise<boolean> {
  const { bench, lease, creation, oldId } = rotation;
  const { state, detail } = lease.entry;
  const isOldRevoked = async (): Promise<boolean> => (await creation.statusOf(bench, oldId)) === "revoked";
  if (state !== "waiting" && detail.keep_old !== true) await rotation.checkNew?.(made.entry);
  const step = stepAfterProof(rotation);
  if (step === "end") return false;
  if (step === "prove the new one") {
    if (detail.proven === refusedProof && (await isOldRevoked())) return true;
    await prove(rotation, made);
  }
  // An overlap is continued hours later, and someone may have acted meanwhile.
  if (made.secret !== undefined || !detail.overlap_ms) return false;
  await workingOne(rotation, made.entry);
  return isOldRevoked();
}

/** Makes the new one, or finishes what an earlier process began of it, and delivers its secret. */
async function makeNewOne(rotation: Rotation): Promise<Made> {
  const { bench, lease, creation, options, proveFirst: prove } = rotation;
  const { destination } = options;
  const { noun } = creation;
  for (;;) {
    const found = await currentChild(bench.journal, lease.entry);
    if (found !== undefined) await assertTrusted(bench, [found.id]);
    if (found?.state === "done")
      return { kind: "delivered_before", entry: found, receipt: await creation.receiptNow?.(bench, found) };
    if (found?.state === "unusable") {
      assertAsAsked(found);
      // What was called unusable once is not used (§4.2), whatever the service shows later.
      const message = `The service called the new ${noun} ${found.resource_id} unusable: the old ${noun} is not revoked.`;
      const meaning = `This rotation ends here, and the old ${noun} stays as it is.`;
      throw entryFailure(found, "unusable", message, { meaning });
    }
    const child = found
      ? await bench.journal.lease(found.id)
      : await admitPart(bench, destination, { ...rotation.intent(), parent: lease.entry.id });
    try {
      const work = { ...options, bench, lease: child, prove, destinationOf: () => destination };
      const made = await finishCreation(creation, work);
      const { entry, receipt } = made;
      if (made.kind !== "nothing_made")
        return { ...made, receipt: receipt ?? (await creation.receiptNow?.(bench, entry)) };
    } catch (error) {
      if (!(error instanceof Failure) || (error.kind !== "undelivered" && error.kind !== "conflict")) throw error;
      const meaning = `${error.details.meaning ?? ""} The old ${noun} was not revoked.`.trim();
      throw new Failure(error.kind, error.message, { ...error.details, meaning });
    } finally {
      await child.release();
    }
  }
}

/** @throws Failure `unusable` if the response has the id of the old credential: its revocation would leave none */
function assertAnother({ creation: { noun }, oldId }: Rotation, newId: string): void {
  if (newId !== "" && newId !== oldId) return;
  const shown = newId === "" ? "without an id" : "with the id of the old one";
  const message = `The service responded to the creation of a new ${noun} ${shown}: nothing was revoked.`;
  throw new Failure("unusable", message, {
    meaning: `The ${noun} ${oldId} stays as it is. A secret that arrived was delivered.`,
    hint: "Report the request id to the service's operator before you rotate again.",
  });
}

/** Shows that the new one works, before the old one is revoked. No consent goes past a proof that was refused. */
async function prove(rotation: Rotation, made: Made): Promise<void> {
  const { bench, lease, options, creation } = rotation;
  const { entry: child, secret } = made;
  const { noun } = creation;
  const id = idOf(made);
  // The overlap began with the first proof.
  const isProven = proofIn(lease.entry.detail) !== undefined;
  const mark = async (how: Proof): Promise<void> => {
    // The overlap begins now, after all of this, by the service's clock, which no response may have shown yet.
    if (lease.entry.detail.overlap_ms && bench.account.service.clockOffset() === undefined)
      await creation.statusOf(bench, id);
    await lease.record(proven(bench, lease.entry, how));
  };
  // An earlier process may have left it readable.
  const text = secret?.secret ?? (await rereadSecret(bench.secrets, child));
  const known = secret ?? (text === undefined ? undefined : { secret: text });
  const tried = known === undefined ? false : await rotation.prove(child, known).catch(onFailure((failure) => failure));
  if (isProven && typeof tried === "boolean") return;
  if (tried === true) return mark("token exchange");
  if (tried !== false) {
    // No one answered: the new one exists and was delivered, so that something is left to do.
    if (tried.kind !== "auth") {
      const kind = isInterruption(tried) ? tried.kind : "pending";
      const meaning = `The old ${noun} was not revoked; the new one's secret was delivered.`;
      const message = withReason(`The new ${noun} ${id} could not be proven`, tried);
      throw new Failure(kind, message, { ...tried.details, meaning });
    }
    await recordAfterwards(bench, lease, { detail: { ...lease.entry.detail, proven: refusedProof } });
  }
  if (lease.entry.detail.proven === refusedProof) throw refused(rotation, id, tried === false ? undefined : tried);
  if (await options.mayRevokeUnproven?.(lease.entry)) return mark("by the person");
  const { lacking = "" } = rotation;
  // What was only printed cannot be tried later.
  const isReadable = lacking !== "" && (await rereadSecret(bench.secrets, child)) !== undefined;
  const then = isReadable
    ? `it: ${lacking}, then integ journal recover ${lease.entry.id}`
    : `later rotations: ${lacking}`;
  throw new Failure("pending", `The new ${noun} ${id} ${rotation.whyUnproven(known !== undefined)}.`, {
    meaning: `The old ${noun} is not revoked. ${lacking && `To prove ${then}. `}If the new one works for you, continue with ${flags.acceptUnproven}.`,
    ...recoveryStep(lease.entry.id, [flags.acceptUnproven]),
  });
}

/** A refused proof, now or before. */
function refused({ creation, oldId }: Rotation, id: string, error: Failure | undefined): Failure {
  const { noun } = creation;
  const message = `The secret of the new ${noun} ${id} was refused when it was tried`;
  return new Failure("pending", error === undefined ? `${message}.` : withReason(message, error), {
    cause: error,
    problem: error?.details.problem,
    meaning: `The old ${noun} ${oldId} is not revoked, even with ${flags.acceptUnproven}. If the new ${noun} works for all programs, revoke the old ${noun} yourself: ${revokes(noun, oldId)}`,
  });
}

export function proven(bench: Workbench, { detail }: Entry, how: Proof): Pick<Entry, "detail"> {
  const until = detail.overlap_until ?? isoTime(serviceTime(bench) + (detail.overlap_ms ?? 0));
  return { detail: { ...detail, proven: how, overlap_until: until } };
}

/** A proof speaks of its own moment: since then someone may have revoked the new one, or the service disabled it. */
async function successorOf(rotation: Rotation, made: Made): Promise<Successor> {
  assertProfileHasIt(rotation, made.entry);
  const { detail } = rotation.lease.entry;
  // A token exchange shows that the new one is active; a person's consent does not.
  const isFresh = made.kind === "delivered" && !detail.overlap_ms && proofIn(detail) === "token exchange";
  const child = isFresh ? made.entry : await workingOne(rotation, made.entry);
  const current = child === made.entry ? made : { ...made, entry: child, secret: undefined };
  if (!isFresh && proofIn(detail) !== undefined) await prove(rotation, current);
  const missing = missingPlaces(child.destination).map((place) => describeDestination(place).name);
  return { id: idOf(current), proof: proofIn(detail), missing, gone: await goneFrom(rotation, child, isFresh) };
}

/** @throws Failure `pending` if the secret went elsewhere than to the profile whose credential it replaces */
export function assertProfileHasIt({ bench, lease, oldId, creation }: Rotation, child: Entry): void {
  const { account } = bench;
  const { noun } = creation;
  const newId = child.resource_id ?? "";
  const { id, profile, destination } = lease.entry;
  const hasIt = [newId, child.detail.client_id].includes(account.keyId ?? account.principal);
  if (hasIt || !isForProfile(destination, profile) || isForProfile(child.destination, profile)) return;
  const how =
    noun === "key" ? [flags.apiKeyStdin, flags.apiKeyId, newId] : [flags.clientId, "<id>", flags.clientSecretStdin];
  const where = child.destination ? namesOf(child.destination) : "standard output";
  const message = `Profile ${profile} does not have the new secret, which went to ${where}.`;
  throw new Failure("pending", message, {
    meaning: `The old ${noun} ${oldId} is not revoked: profile ${profile} would be locked out.`,
    hint: `Give the profile the new secret (${shell`integ profiles edit ${profile} ${how}`}), then run: ${shell`integ journal recover ${id}`}`,
  });
}

/** Looks again at each destination of the new secret. @returns the destinations that no longer have it */
async function goneFrom(
  { bench, lease, creation }: Rotation,
  child: Entry,
  isFresh: boolean,
): Promise<readonly string[]> {
  const names = { there: [] as string[], gone: [] as string[], unverified: [] as string[] };
  const { detail } = lease.entry;
  const isActive = async (id: string): Promise<boolean> => (await creation.statusOf(bench, id)) === "active";
  for (const place of placesOf(child.destination)) {
    const { name } = describeDestination(place);
    const seen = await seenAt(bench, child, place, isActive);
    // Another machine saw that its own place has lost the secret: this is true until it looks again.
    names[seen === "unverified" && detail.gone?.includes(name) === true ? "gone" : seen].push(name);
  }
  if (names.gone.join() !== (detail.gone ?? []).join()) await lease.record({ detail: { ...detail, gone: names.gone } });
  // This process saw a fresh delivery accepted.
  if (names.unverified.length > 0 && !isFresh)
    bench.tell.note(
      `Unverified: the secret of the new ${creation.noun} ${child.resource_id} was delivered to ${names.unverified.join(", ")}, and that cannot be looked at again.`,
    );
  return names.gone;
}

/** @returns the new one, or the one that replaced it everywhere. @throws Failure `unusable` if the service says that it does not work */
async function workingOne(rotation: Rotation, child: Entry): Promise<Entry> {
  const { bench, oldId, creation } = rotation;
  const { noun } = creation;
  const newId = child.resource_id ?? "";
  const status = await creation.statusOf(bench, newId);
  if (status === undefined || status === "active") return child;
  const how = status === "absent" ? `is not among the ${noun}s any more` : `is ${status}`;
  const later = status === "revoked" ? await rotationFrom(bench.journal, newId) : undefined;
  const next = later && (await currentChild(bench.journal, later));
  if (later && next && replacesEverywhere(next, child)) {
    await assertTrusted(bench, [later.id, next.id]);
    return workingOne(rotation, next);
  }
  const after = later?.resource_id;
  // A later rotation created a working successor: another one would be one too many.
  const meaning = after ? `It was rotated, and ${after} followed.` : `Another rotation makes another new ${noun}.`;
  const again =
    noun === "key"
      ? shell`integ keys rotate ${oldId} ${flags.byReplacement}`
      : shell`integ oauth-clients rotate ${oldId}`;
  throw new Failure("unusable", `The new ${noun} ${newId} ${how}: the old one is not revoked.`, {
    meaning: `This rotation ends here, and the old ${noun} ${oldId} stays as it is. ${meaning}`,
    ...(after
      ? { hint: `Revoke the old ${noun} yourself if no program uses it any more: ${revokes(noun, oldId)}` as const }
      : { nextCommand: again }),
  });
}

/** True if the later secret went to each place of the earlier one, so that programs that read those places have it. */
function replacesEverywhere(later: Entry, earlier: Entry): boolean {
  const places = placesOf(later.destination);
  return placesOf(earlier.destination).every(
    (place) => place.kind !== "stdout" && places.some((one) => isSameHere(one, place)),
  );
}

/** Ends a rotation with the state of its creation. @param made the new credential, if its secret was delivered */
async function unfinished({ bench, lease, creation }: Rotation, error: unknown, made?: Made): Promise<never> {
  if (!(error instanceof Failure)) throw error;
  const { noun } = creation;
  // A journal that cannot be read says nothing new: the outcome of the work does not change.
  const childState = await currentChild(bench.journal, lease.entry).then(
    (child) => child?.state ?? "refused",
    onFailure(() => lease.entry.state),
  );
  const isDelivered = made !== undefined || childState === "done";
  const asItStands = lease.entry.state === "waiting" ? "waiting" : "pending";
  const isEnded = made !== undefined && error.kind === "unusable";
  const state = isEnded ? "unusable" : isDelivered ? asItStands : childState;
  await recordAfterwards(bench, lease, { state, last_error: { kind: error.kind, message: error.message } });
  const { entry } = lease;
  const { hint, nextCommand, recovers } = error.details;
  // The advice of the failed step comes first, as does a key that a person has to look for in the list.
  const isNamed = recovers === entry.id || (noun === "key" && (hint ?? nextCommand) !== undefined);
  const isResumed = !isSettled(state) && !isNamed;
  // A credential that is missing or refused comes first: the recovery alone would end the same way again.
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
