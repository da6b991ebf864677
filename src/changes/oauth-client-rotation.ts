// Owns: the rotation of an OAuth client without downtime: another like it, its secret delivered and proven, an overlap,
// then the old one revoked. One entry with the creation as its child; every step is on disk, so any crash is finished
// later, and at every moment one of the two works.
// Must not know: flags, terminals, files.
import { Failure } from "../errors.ts";
import { isSettled, nextStep, type Entry } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { CreationEnd, CreationOptions } from "./creation-course.ts";
import { creationIntent, driveCreation } from "./oauth-client-creation.ts";
import { noSlot, notActive, refuseSecond, rotationsSettled } from "./oauth-client-rotation-refusal.ts";
import { foundAfterAll } from "./creation-secret.ts";
import { begunReplacement, receiptOf, replaceLostSecret, secretLost } from "./oauth-client-replacement.ts";
import { untilRevoked } from "./oauth-client-revocation.ts";
import { prove, stillWorks } from "./oauth-client-proof.ts";
import { overlap, tellBegun } from "./overlap.ts";
import { admitWithPlace } from "./secret-place.ts";
import { isOfThisMoment, WatchedDestination } from "./watched-destination.ts";
import {
  detailsOf,
  isInterruption,
  madeFor,
  recordAfterwards,
  saysNothingWasDone,
  type Workbench,
} from "./workbench.ts";

export interface RotationRequest {
  /** Resource id of the client to be replaced. */
  readonly id: string;
  /** How long both clients stay usable after the new one is proven, milliseconds. */
  readonly overlapMs: number;
  readonly keepOld: boolean;
}

export interface RotationOptions extends CreationOptions {
  /** Asked where the new client's own secret was lost; no means that nothing is revoked. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
  /** Asked before the old client goes though the new one could not be proven after a crash. */
  readonly mayRevokeUnproven: (entry: Entry) => Promise<boolean>;
  /** Told the receipt once the secret is delivered, whatever the proof and the overlap come to. */
  readonly delivered?: (receipt: string) => Promise<void>;
}

export interface Rotated {
  readonly oldId: string;
  readonly oldRevoked: boolean;
}

/** The old client as far as a rotation needs it. */
export interface OldClient {
  readonly id: string;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly status: string;
}

/** Begins a rotation, or goes on with the unfinished one of the same client. */
export async function rotateOAuthClient(
  bench: Workbench,
  { old, request }: { old: OldClient; request: RotationRequest },
  options: RotationOptions,
): Promise<Rotated> {
  const settledBefore = await rotationsSettled(bench, old.id);
  const intent: Intent = {
    ...madeFor(bench.account),
    operation: "oauth_client.rotate",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: JSON.stringify({ id: old.id, service_account_id: old.service_account_id, scopes: old.scopes }),
    twin: JSON.stringify([old.id]),
    idempotent: false,
    detail: { old_client: old.id, overlap_ms: request.overlapMs, keep_old: request.keepOld },
  };
  const admission = await admitWithPlace(bench, intent, {
    destination: options.destination,
    isHome: async (entry) => (await currentChild(bench.journal, entry))?.state === "done",
  });
  try {
    if (admission.kind === "resumed") {
      bench.tell.note(`Going on with the unfinished rotation ${admission.drive.entry.id}.`);
      tellBegun(bench, admission.drive.entry, request);
    } else {
      await refuseSecond(bench, admission.drive, { oldId: old.id, settledBefore });
      if (old.status !== "active") throw await notActive(bench, admission.drive, old);
    }
    return await driveRotation(bench, admission.drive, options);
  } finally {
    await admission.drive.release();
  }
}

/** Picks a rotation up where it stands and brings it to its end. */
export async function driveRotation(bench: Workbench, drive: EntryLease, options: RotationOptions): Promise<Rotated> {
  const watched = new WatchedDestination(options.destination);
  let isHome = false;
  try {
    const { child, receipt } = await bringChildHome(bench, drive, { ...options, destination: watched });
    isHome = true;
    // A journal that cannot be written ends the rotation here: both clients work, and nothing more is sent.
    await drive.record({ resource_id: child.resource_id });
    await options.delivered?.(receipt);
    await prove(bench, drive, { child, secret: watched.secret, mayRevokeUnproven: options.mayRevokeUnproven });
    const oldId = String(drive.entry.detail.old_client);
    if (drive.entry.detail.keep_old === true) {
      await recordAfterwards(bench, drive, { state: "done", last_error: null });
      return { oldId, oldRevoked: false };
    }
    await overlap(bench, drive, "client");
    if (!isOfThisMoment(drive.entry, watched)) await stillWorks(bench, child, oldId);
    await untilRevoked(bench, oldId);
    await recordAfterwards(bench, drive, { state: "done", last_error: null });
    return { oldId, oldRevoked: true };
  } catch (error) {
    throw await unfinished(bench, drive, { error, isHome });
  }
}

/** The rotation stands as its child does; what is not settled is picked up by `journal recover`. */
async function unfinished(
  bench: Workbench,
  drive: EntryLease,
  { error, isHome }: { error: unknown; isHome: boolean },
): Promise<unknown> {
  if (!(error instanceof Failure)) return error;
  const childState = (await currentChild(bench.journal, drive.entry))?.state ?? "refused";
  const isDone = isHome || childState === "done" || childState === "replaced";
  const isOver = isHome && error.kind === "unusable";
  const state: Entry["state"] = isOver ? "unusable" : isDone ? "pending" : childState;
  await recordAfterwards(bench, drive, { state, last_error: { kind: error.kind, message: error.message } });
  const isOwnStep = error.details.hint?.startsWith(`integ journal recover ${drive.entry.id}`);
  const step = isSettled(state) || isOwnStep ? error.details.hint : (nextStep(drive.entry) ?? error.details.hint);
  const meaning = error.details.meaning ?? (isInterruption(error) && isDone ? "Both clients work." : undefined);
  const details = detailsOf(drive.entry, { ...error.details, meaning, hint: step });
  if (!isDone || !saysNothingWasDone(error)) return new Failure(error.kind, error.message, details);
  return new Failure(
    "pending",
    `The new client's secret is delivered; the old client is not revoked yet: ${error.message}`,
    {
      ...details,
      meaning: "Both clients work.",
      cause: error,
    },
  );
}

/**
 * The newest creation of this rotation that has not come to nothing. One that stands in for a lost one counts once the
 * lost one is settled: until then the lost one leads to it.
 */
async function currentChild(journal: Journal, rotation: Entry): Promise<Entry | undefined> {
  const cameToNothing = new Set<Entry["state"]>(["refused", "abandoned", "replaced"]);
  const children = (await journal.entries()).filter(
    (entry) => entry.parent === rotation.id && entry.operation === "oauth_client.create",
  );
  const isOpen = (id: string | null): boolean => children.some((entry) => entry.id === id && !isSettled(entry.state));
  return children.find((entry) => !cameToNothing.has(entry.state) && !isOpen(entry.replaces));
}

async function bringChildHome(
  bench: Workbench,
  drive: EntryLease,
  options: RotationOptions,
): Promise<{ child: Entry; receipt: string }> {
  const found = await currentChild(bench.journal, drive.entry);
  if (found?.state === "done") return { child: found, receipt: await receiptOf(bench, found) };
  const child = found ? await bench.journal.drive(found.id) : await admitChild(bench, drive.entry, options);
  try {
    const isBegun = (await begunReplacement(bench.journal, child.entry)) !== undefined;
    if (!isBegun && (await foundAfterAll(bench, child)))
      return { child: child.entry, receipt: await receiptOf(bench, child.entry) };
    const lost: CreationEnd = { kind: "secret_lost", entry: child.entry, receipt: "" };
    const first =
      child.entry.state === "secret_lost" ? lost : await driveCreation(bench, child, { ...options, key: undefined });
    const end = first.kind === "secret_lost" ? await replaced(bench, child, options) : first;
    return { child: end.entry, receipt: end.receipt };
  } catch (error) {
    throw await inRotation(bench, drive.entry, error);
  } finally {
    await child.release();
  }
}

/** What a failed creation means for the rotation that it belongs to: the old client is untouched. */
async function inRotation(bench: Workbench, rotation: Entry, error: unknown): Promise<unknown> {
  if (!(error instanceof Failure)) return error;
  if (error.kind === "conflict") return noSlot(bench, rotation, error);
  if (error.kind !== "undelivered") return error;
  const meaning = `${error.details.meaning ?? ""} The old client still works.`.trim();
  return new Failure(error.kind, error.message, { ...error.details, meaning });
}

async function admitChild(bench: Workbench, rotation: Entry, { destination }: RotationOptions): Promise<EntryLease> {
  const { service_account_id, scopes } = JSON.parse(rotation.request_text) as {
    service_account_id: string;
    scopes: string[];
  };
  const intent = creationIntent(bench, { service_account_id, scopes });
  const remembered = { ...(await destination.check()) };
  const { drive } = await bench.journal.admit(
    { ...intent, parent: rotation.id, destination: remembered },
    { fresh: true },
  );
  return drive;
}

async function replaced(bench: Workbench, child: EntryLease, options: RotationOptions): Promise<CreationEnd> {
  const begun = await begunReplacement(bench.journal, child.entry);
  if (begun === undefined && !(await options.mayReplace(child.entry))) throw secretLost(child.entry);
  const end = await replaceLostSecret(bench, child, options);
  if (end.kind !== "secret_lost") return end;
  // One of this run's own that was lost as well is enough; one that an earlier run had begun is replaced like any other.
  if (begun === undefined) throw secretLost(end.entry, end.requestId);
  const next = await bench.journal.drive(end.entry.id);
  try {
    return await replaced(bench, next, options);
  } finally {
    await next.release();
  }
}
