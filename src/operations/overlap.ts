// The rotation that both contracts share: another credential is made and its secret delivered and proven, both work for a
// time, then the old one is revoked. One entry with the creation as its child; every step is on disk, so that any crash is
// finished later, and at every moment one of the two works.
import { Failure } from "../errors.ts";
import { type Entry, type EntryProgress, isSettled, type Operation } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import {
  describeDestination,
  type Destination,
  type DestinationRecord,
  missingPlaces,
  namesOf,
  type OneTimeSecret,
  WatchedDestination,
} from "../secrets/destination.ts";
import { assertProfileHasIt, type Proof, proofIn, type Successor } from "./revocation.ts";
import { rotatedTo } from "../journal/rotations.ts";
import { recordAfterwards, recoveryStep, serviceTime, type Workbench } from "./workbench.ts";
import { admitTo, type PlacedAdmission, wait } from "./sending.ts";
import { rereadSecret } from "./delivery-recovery.ts";
import { releaseReserved } from "./secret-delivery.ts";
import { type NextCommand, flags, shell } from "../next-step.ts";

/** An overlap up to this long is waited for; a longer one is finished by `journal recover` when it is due. */
const longestWaitMs = 15 * 60_000;

/** Whether the command itself waits until the overlap ends. */
export function isWaitedFor(overlapMs: number): boolean {
  return overlapMs <= longestWaitMs;
}

export interface RotationOptions {
  readonly destination: Destination;
  /** Asked before the old one is revoked although the new one was not proven. */
  readonly mayRevokeUnproven: (entry: Entry) => Promise<boolean>;
  /**
   * Given the receipt once the secret is delivered and a proof was tried, before any overlap is waited for.
   * @param dueAt when the old one is to be revoked, ISO 8601 UTC; undefined if no overlap runs
   */
  readonly delivered?: (receipt: string, dueAt: string | undefined) => Promise<void>;
  /** What becomes of an overlap that is not over: a short one is waited for (unless something else is said here). */
  readonly overlap?: "leave" | "end";
}

export interface RotationWork {
  readonly bench: Workbench;
  readonly lease: EntryLease;
  readonly options: RotationOptions;
}

/** What one resource's contract makes of the shared rotation. */
export interface RotationContract {
  readonly noun: "client" | "key";
  readonly creation: Operation;
  readonly oldId: string;
  /** Makes the new one, or finishes what an earlier process began of it, and delivers its secret. */
  deliverNew(destination: Destination): Promise<NewCredential>;
  /** What the rotation's entry keeps of the new one. */
  learned(newId: string): Partial<EntryProgress>;
  /** Whether the new one may take the old one's place at all. @throws Failure if not */
  checkNew?(child: Entry): Promise<void>;
  /** One proof. @returns false if the profile knows no way to make it. @throws Failure if it was refused or without a response */
  prove(child: Entry, secret: Pick<OneTimeSecret, "secret" | "clientId">): Promise<boolean>;
  /** Why nothing can be proven, as it ends a sentence. @param hasSecret the secret can still be read */
  whyUnproven(child: Entry, hasSecret: boolean): string;
  /** The status of one of the two now; nothing if the service does not say. */
  readonly statusOf: (id: string) => Promise<string | undefined>;
  /** The command that begins another rotation. */
  readonly again: NextCommand;
  revokeOld(by: Successor): Promise<unknown>;
  /** What an unfinished rotation says. */
  unfinished(error: Failure, how: { readonly state: Entry["state"]; readonly isDelivered: boolean }): Failure;
}

export interface NewCredential {
  /** Its creation, done. */
  readonly entry: Entry;
  /** As the service shows it now, if the secret came in an earlier process. */
  readonly receipt?: string;
}

export interface Rotated {
  readonly oldId: string;
  readonly newId: string;
  readonly oldRevoked: boolean;
  /** When the old one is to be revoked, if the overlap was left to run: the rotation is `waiting`. */
  readonly dueAt?: string;
  /** Id of the rotation's entry. */
  readonly entry: string;
  /** The new one's receipt with its secret; nothing if an earlier process had shown it. */
  readonly receipt: string | undefined;
}

/** Admits a rotation; one typed again, whose secret an earlier process delivered, is resumed. */
export function admitRotation(
  { journal }: { readonly journal: Pick<Journal, "admit" | "resume" | "select"> },
  intent: Intent,
  about: { readonly destination: Destination; readonly creation: Operation; readonly fresh?: boolean | undefined },
): Promise<PlacedAdmission> {
  const { destination, creation, fresh } = about;
  return admitTo({ journal }, intent, {
    destination,
    choice: { fresh },
    isThere: async ({ entry }) => (await currentChild(journal, entry, creation))?.state === "done",
  });
}

/** A flag that was typed, and what the rotation was started with. */
export interface Difference {
  readonly flag: string;
  readonly begun: string;
  readonly typed: string;
}

/** What two commands say of the overlap. */
export function overlapDifferences(
  { detail }: Entry,
  { overlapMs, keepOld = false }: { readonly overlapMs: number; readonly keepOld?: boolean },
): Difference[] {
  const begun = { overlapMs: detail.overlap_ms ?? 0, keepOld: detail.keep_old === true };
  return [
    { flag: flags.overlap, begun: `${begun.overlapMs / 1000}s`, typed: `${overlapMs / 1000}s` },
    { flag: flags.keepOld, begun: begun.keepOld ? "given" : "not given", typed: keepOld ? "given" : "not given" },
  ];
}

/**
 * Continues a rotation only as it was started: what was typed otherwise would be passed over in silence, and a narrower
 * scope or a shorter life be taken for granted.
 * @param about.place where the command wants the secret; nothing if that cannot take one
 * @throws Failure `usage`, naming both values; nothing was sent
 */
export async function refuseBegunOtherwise(
  { bench, lease, creation }: { readonly bench: Workbench; readonly lease: EntryLease; readonly creation: Operation },
  about: {
    readonly place: DestinationRecord | undefined;
    readonly differences: readonly Difference[];
    readonly wayOut: string;
  },
): Promise<void> {
  const { place, differences, wayOut } = about;
  const all = [...differences];
  const child = await currentChild(bench.journal, lease.entry, creation);
  // Until the secret is delivered it goes where it is wanted now; an output that was not asked for is not a wish.
  if (child?.state === "done" && child.destination !== null && place !== undefined && place.kind !== "stdout")
    all.push({
      flag: "the destination of the secret",
      begun: namesOf(child.destination),
      typed: namesOf(place),
    });
  const others = all.filter(({ begun, typed }) => begun !== typed);
  if (others.length === 0) return;
  const named = others.map(({ flag, begun, typed }) => `${flag} was ${begun}, and is ${typed} now`);
  throw new Failure(
    "usage",
    `The unfinished rotation ${lease.entry.id} was started with other options: ${named.join("; ")}.`,
    {
      meaning: `Nothing was sent. It continues as it was started; ${wayOut}.`,
      ...recoveryStep(lease.entry.id),
    },
  );
}

/**
 * The newest creation of a rotation that did not fail. One that replaces a lost one counts once the lost one is replaced: until
 * then the lost one leads to it, and if its secret was found, it is the one that counts.
 */
export async function currentChild(
  journal: Pick<Journal, "select">,
  rotation: Entry,
  creation: Operation,
): Promise<Entry | undefined> {
  const cameToNothing: ReadonlySet<Entry["state"]> = new Set(["refused", "abandoned", "replaced"]);
  const children = await journal.select({ all: true, parent: rotation.id, operation: creation });
  const counts = (id: string | null): boolean =>
    children.some((entry) => entry.id === id && (!isSettled(entry.state) || entry.state === "done"));
  return children.find((entry) => !cameToNothing.has(entry.state) && !counts(entry.replaces));
}

/** Resumes a rotation at the step that it had reached, and completes it. */
export async function finishRotation(work: RotationWork, contract: RotationContract): Promise<Rotated> {
  const { bench, lease, options } = work;
  const watched = new WatchedDestination(options.destination);
  const { oldId, noun } = contract;
  const isProvenBefore = proofIn(lease.entry.detail) !== undefined;
  let isDelivered = false;
  try {
    const created = await contract.deliverNew(watched);
    isDelivered = true;
    const newId = created.entry.resource_id ?? "";
    assertAnother(contract, newId);
    // A journal that cannot be written ends the rotation here: both work, and nothing more is sent.
    await lease.record(contract.learned(newId));
    const receipt = watched.secret?.receipt;
    const shown = created.receipt ?? receipt;
    const show = async (due?: string): Promise<void> =>
      shown === undefined ? undefined : await options.delivered?.(shown, due);
    const stage = await untilOverlap(work, contract, { child: created.entry, watched }).catch(
      async (error: unknown) => {
        await show();
        throw error;
      },
    );
    const dueAt = stage.kind === "overlap" ? stage.dueAt : undefined;
    await show(dueAt);
    const rotated = { oldId, newId, receipt, entry: lease.entry.id };
    if (dueAt !== undefined && !(await isOverAfterWait(work, { noun, dueAt })))
      return { ...rotated, oldRevoked: false, dueAt };
    if (stage.kind !== "nothing to revoke") {
      const by = await successorOf(work, contract, { newId, watched, isProvenBefore, child: created.entry });
      // From here on the old one may be revoked, whatever the response is.
      if (lease.entry.state === "waiting") await lease.record({ state: "pending" });
      await contract.revokeOld(by);
    }
    await recordAfterwards(bench, lease, { state: "done", last_error: null });
    // No one needs to recognise the delivered secret any more.
    await releaseReserved(bench, { ...created.entry, parent: null });
    return { ...rotated, oldRevoked: lease.entry.detail.keep_old !== true };
  } catch (error) {
    throw error instanceof Failure ? await unfinished(work, contract, { error, isDelivered }) : error;
  }
}

type Stage =
  | { readonly kind: "nothing to revoke" }
  | { readonly kind: "revoke" }
  | { readonly kind: "overlap"; readonly dueAt: string };

/** From the delivery to the overlap: the proof, and how both stand if the work is continued later. */
async function untilOverlap(
  work: RotationWork,
  contract: RotationContract,
  { child, watched }: { readonly child: Entry; readonly watched: WatchedDestination },
): Promise<Stage> {
  const { bench, lease, options } = work;
  if (lease.entry.detail.keep_old === true) return { kind: "nothing to revoke" };
  await prove(work, contract, { child, secret: watched.secret });
  const isLater = watched.secret === undefined;
  if (isLater && (await settledMeanwhile(work, contract, child.resource_id ?? "")))
    return { kind: "nothing to revoke" };
  const { overlap_until: dueAt = "" } = lease.entry.detail;
  const isDue = lease.entry.detail.overlap_ms === 0 || !(Date.parse(dueAt) > serviceTime(bench));
  if (options.overlap === "end" || isDue) return { kind: "revoke" };
  if (lease.entry.state !== "waiting") await lease.record({ state: "waiting", last_error: null });
  return { kind: "overlap", dueAt };
}

/** Waits for an overlap that is short, if it is to be waited for. @returns false if it is left to run */
async function isOverAfterWait(
  { bench, options }: RotationWork,
  { noun, dueAt }: { readonly noun: string; readonly dueAt: string },
): Promise<boolean> {
  const leftMs = Date.parse(dueAt) - serviceTime(bench);
  if (options.overlap === "leave" || !isWaitedFor(leftMs)) return false;
  await wait(bench, leftMs, `The old ${noun} is revoked when the overlap ends`);
  return true;
}

/** @throws Failure `unusable` if the response has the old one's id: to revoke that would revoke the only one */
function assertAnother({ noun, oldId }: RotationContract, newId: string): void {
  if (newId !== "" && newId !== oldId) return;
  const shown = newId === "" ? "without an id" : "with the id of the old one";
  throw new Failure(
    "unusable",
    `The service responded to the creation of a new ${noun} ${shown}: nothing was revoked.`,
    {
      meaning: `The ${noun} ${oldId} stays as it is. A secret that arrived was delivered.`,
      hint: "Report the request id to the service's operator before you rotate again.",
    },
  );
}

/** Shows that the new one works, before the old one is revoked. */
async function prove(
  { bench, lease, options }: RotationWork,
  contract: RotationContract,
  { child, secret }: { readonly child: Entry; readonly secret: OneTimeSecret | undefined },
): Promise<void> {
  if (lease.entry.state === "waiting") return;
  await contract.checkNew?.(child);
  if (proofIn(lease.entry.detail) !== undefined) return;
  const mark = async (how: Proof): Promise<void> => {
    // The overlap begins now, after all of this, by the service's clock, which no response may have shown yet.
    if (lease.entry.detail.overlap_ms && bench.account.service.clockOffset() === undefined)
      await contract.statusOf(child.resource_id ?? "");
    await lease.record(proven(bench, lease.entry, how));
  };
  // An earlier process may have left it readable.
  const text = secret?.secret ?? (await rereadSecret(bench.secrets, child));
  const known = secret ?? (text === undefined ? undefined : { secret: text });
  if (known !== undefined && (await contract.prove(child, known))) return mark("token exchange");
  if (await options.mayRevokeUnproven(lease.entry)) return mark("by the person");
  throw new Failure(
    "pending",
    `The new ${contract.noun} ${child.resource_id ?? ""} ${contract.whyUnproven(child, known !== undefined)}.`,
    {
      meaning: `The old ${contract.noun} is not revoked. If the new one works for you, continue with ${flags.yes}.`,
      ...recoveryStep(lease.entry.id, [flags.yes]),
    },
  );
}

/** What the journal keeps of a proof: how it was made, and until when both are to work. */
export function proven(bench: Workbench, { detail }: Entry, how: Proof): Pick<EntryProgress, "detail"> {
  const until = new Date(serviceTime(bench) + (detail.overlap_ms ?? 0)).toISOString();
  return { detail: { ...detail, proven: how, overlap_until: until } };
}

/**
 * An overlap is continued hours later, and someone may have acted meanwhile.
 * @returns true if the old one was revoked by hand: nothing is left to do
 * @throws Failure `unusable` if the new one does not work any more; nothing is revoked
 */
async function settledMeanwhile(work: RotationWork, contract: RotationContract, newId: string): Promise<boolean> {
  const { overlap_ms: overlapMs = 0 } = work.lease.entry.detail;
  if (overlapMs === 0) return false;
  await assertWorks(work, contract, newId);
  return (await contract.statusOf(contract.oldId)) === "revoked";
}

/**
 * What is known of the new one when the old one is to be revoked. A proof speaks of its own moment: since then someone may have
 * revoked the new one, or the service disabled it, and the old one is the only one that works. A service that does not
 * say does not prevent it.
 * @throws Failure `unusable` if the new one does not work any more; nothing is revoked
 */
async function successorOf(
  work: RotationWork,
  contract: RotationContract,
  about: {
    readonly newId: string;
    readonly watched: WatchedDestination;
    /** By an earlier process: the secret may be one that it kept. */
    readonly isProvenBefore: boolean;
    readonly child: Entry;
  },
): Promise<Successor> {
  assertProfileHasIt(work, { oldId: contract.oldId, noun: contract.noun, ...about });
  const { detail } = work.lease.entry;
  const proof = proofIn(detail);
  const { newId, watched, isProvenBefore, child } = about;
  const missing = missingPlaces(child.destination).map((place) => describeDestination(place).name);
  const isJustMade = watched.secret !== undefined && !isProvenBefore && (detail.overlap_ms ?? 0) === 0;
  if (isJustMade) return { id: newId, proof, seen: "just made", missing };
  await assertWorks(work, contract, newId);
  return { id: newId, proof, seen: "looked at", missing };
}

/** @throws Failure `unusable` if the service says that the new one does not work */
async function assertWorks(
  { bench }: RotationWork,
  { noun, oldId, again, statusOf }: RotationContract,
  newId: string,
): Promise<void> {
  const status = await statusOf(newId);
  if (status === undefined || status === "active") return;
  const how = status === "absent" ? `is not among the ${noun}s any more` : `is ${status}`;
  const after = await rotatedTo(bench.journal, newId);
  // What a later rotation put in its place works: another new one would be one too many.
  const [meaning, nextCommand] = after
    ? [
        `It was rotated, and ${after} followed. If nothing uses ${oldId} any more, revoke it.`,
        noun === "client" ? shell`integ oauth-clients revoke ${oldId}` : shell`integ keys revoke ${oldId}`,
      ]
    : [`Another rotation makes another new ${noun}.`, again];
  throw new Failure("unusable", `The new ${noun} ${newId} ${how}: the old one is not revoked.`, {
    meaning: `This rotation ends here, and the old ${noun} ${oldId} stays as it is. ${meaning}`,
    nextCommand,
  });
}

/** A journal that cannot be read says nothing new: the outcome of the work does not change. */
async function stateOfChild({ journal }: Workbench, rotation: Entry, creation: Operation): Promise<Entry["state"]> {
  try {
    return (await currentChild(journal, rotation, creation))?.state ?? "refused";
  } catch (error) {
    if (error instanceof Failure) return rotation.state;
    throw error;
  }
}

/** The rotation stands as its child does; what is not settled is resumed by `journal recover`. */
async function unfinished(
  { bench, lease }: RotationWork,
  contract: RotationContract,
  { error, isDelivered }: { readonly error: Failure; readonly isDelivered: boolean },
): Promise<Failure> {
  const childState = await stateOfChild(bench, lease.entry, contract.creation);
  const isDone = isDelivered || childState === "done";
  const asItStands = lease.entry.state === "waiting" ? "waiting" : "pending";
  const state = isDelivered && error.kind === "unusable" ? "unusable" : isDone ? asItStands : childState;
  await recordAfterwards(bench, lease, { state, last_error: { kind: error.kind, message: error.message } });
  return contract.unfinished(error, { state, isDelivered: isDone });
}
