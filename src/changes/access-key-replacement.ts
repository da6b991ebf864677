// Owns: the rotation of an access key by replacement: a new key like the old one, its secret delivered and proven by an
// exchange, an overlap, then the old one revoked. One entry with the creation as its child; every step is on disk, so any
// crash is finished later, and at every moment one of the two works.
// Must not know: flags, terminals, files. The API's own rotation: access-key-rotation.ts.
import type { AccessKeyRequest } from "../api/access-keys.ts";
import type { Service } from "../api/connect.ts";
import { Failure } from "../errors.ts";
import { isSettled, nextStep, type Entry } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import { admitCreation, driveKeyCreation, type KeyCreation } from "./access-key-creation.ts";
import { checkIdentity, prove, stillWorks } from "./access-key-proof.ts";
import { type KeyRecoveryOptions, recoverKeyCreation } from "./access-key-recovery.ts";
import { untilKeyRevoked } from "./access-key-revocation.ts";
import { proveSecret } from "./access-key-secret.ts";
import { overlap, proven, tellBegun } from "./overlap.ts";
import { admitWithPlace } from "./secret-place.ts";
import { isOfThisMoment, WatchedDestination } from "./watched-destination.ts";
import { detailsOf, madeFor, recordAfterwards, type Workbench } from "./workbench.ts";

export interface KeyReplacementRequest {
  /** Resource id of the key to be replaced. */
  readonly oldId: string;
  /** Who created the old key, where it is bound to that user: a key bound to somebody else is not the same. */
  readonly boundTo?: string;
  readonly creation: KeyCreation;
  /** How long both keys stay usable after the new one is proven, milliseconds. */
  readonly overlapMs: number;
  readonly updateProfile: boolean;
}

export interface KeyReplacementOptions extends KeyRecoveryOptions {
  /** `--new`: leave an unfinished replacement of the same key alone. */
  readonly fresh?: boolean;
  /** Asked before the old key goes though the new one was not proven. */
  readonly mayRevokeUnproven: (entry: Entry) => Promise<boolean>;
  /** Told the receipt once the secret is delivered, whatever the proof and the overlap come to. */
  readonly delivered?: (receipt: string) => Promise<void>;
  /** The service as the profile is after its credential was replaced. */
  readonly reconnect?: () => Promise<Service>;
}

export interface KeyReplaced {
  /** The new key's receipt with its secret; nothing where an earlier process had shown it. */
  readonly receipt?: string;
  readonly oldId: string;
  readonly newId: string;
}

/** Begins a replacement, or goes on with the unfinished one of the same key. */
export async function replaceAccessKey(
  bench: Workbench,
  request: KeyReplacementRequest,
  options: KeyReplacementOptions,
): Promise<KeyReplaced> {
  const { oldId, boundTo = null, creation, overlapMs, updateProfile } = request;
  const intent: Intent = {
    ...madeFor(bench.account),
    operation: "access_key.rotate",
    method: "POST",
    path: "/api/v1/access-keys",
    request_text: JSON.stringify({ id: oldId, ...creation.request }),
    twin: JSON.stringify(["replacement", oldId]),
    idempotent: false,
    detail: {
      mode: "replacement",
      old_key: oldId,
      bound_to: boundTo,
      overlap_ms: overlapMs,
      marked: creation.marked,
      update_profile: updateProfile,
    },
  };
  const { kind, drive } = await admitWithPlace(bench, intent, {
    destination: options.destination,
    fresh: options.fresh,
    isHome: async (entry) => (await currentChild(bench.journal, entry))?.state === "done",
  });
  try {
    if (kind === "resumed") {
      bench.tell.note(`Going on with the unfinished replacement ${drive.entry.id}.`);
      tellBegun(bench, drive.entry, { overlapMs });
    }
    return await driveKeyReplacement(bench, drive, options);
  } finally {
    await drive.release();
  }
}

/** Picks a replacement up where it stands and brings it to its end. */
export async function driveKeyReplacement(
  bench: Workbench,
  drive: EntryLease,
  options: KeyReplacementOptions,
): Promise<KeyReplaced> {
  const watched = new WatchedDestination(options.destination);
  const oldId = String(drive.entry.detail.old_key);
  try {
    const child = await bringChildHome(bench, drive, { ...options, destination: watched });
    const newId = child.resource_id ?? "";
    // A journal that cannot be written ends the work here: both keys work, and nothing more is sent.
    await drive.record({ resource_id: newId, detail: { ...drive.entry.detail, new_key: newId } });
    if (watched.secret) await options.delivered?.(watched.secret.receipt);
    await checkIdentity(drive.entry, child, options.mayRevokeUnproven);
    await prove(bench, drive, { child, secret: watched.secret?.secret, mayRevoke: options.mayRevokeUnproven });
    await overlap(bench, drive, "key");
    if (!isOfThisMoment(drive.entry, watched)) await stillWorks(bench, newId, oldId);
    const service = drive.entry.detail.update_profile === true ? await options.reconnect?.() : undefined;
    await untilKeyRevoked(bench, oldId, {
      mayHaveArrived: drive.entry.detail.revoking === true,
      service,
      mark: () => marked(drive),
    });
    await recordAfterwards(bench, drive, { state: "done", last_error: null });
    return { receipt: watched.secret?.receipt, oldId, newId };
  } catch (error) {
    throw await unfinished(bench, drive, error);
  }
}

/** From the first request on the old key may be gone, whatever is answered later. */
async function marked(drive: EntryLease): Promise<void> {
  if (drive.entry.detail.revoking === true) return;
  await drive.record({ state: "pending", detail: { ...drive.entry.detail, revoking: true } });
}

/** The replacement stands as its child does; what is not settled is picked up by `journal recover`. */
async function unfinished(bench: Workbench, drive: EntryLease, error: unknown): Promise<unknown> {
  if (!(error instanceof Failure)) return error;
  const child = await currentChild(bench.journal, drive.entry);
  const state = stateAfter(error, child);
  await recordAfterwards(bench, drive, { state, last_error: { kind: error.kind, message: error.message } });
  const hint = isSettled(state) ? error.details.hint : (error.details.hint ?? nextStep(drive.entry) ?? undefined);
  const meaning = state === "pending" ? (error.details.meaning ?? "The old key still works.") : error.details.meaning;
  return new Failure(error.kind, error.message, { ...detailsOf(drive.entry, error.details), meaning, hint });
}

function stateAfter({ kind }: Failure, child: Entry | undefined): Entry["state"] {
  if (child === undefined) return "refused";
  if (child.state !== "done") return child.state;
  return kind === "unusable" ? "unusable" : "pending";
}

/** The newest creation of this replacement that has not come to nothing. */
async function currentChild(journal: Journal, replacement: Entry): Promise<Entry | undefined> {
  const cameToNothing = new Set<Entry["state"]>(["refused", "abandoned", "replaced"]);
  return (await journal.entries()).find(
    (entry) =>
      entry.parent === replacement.id && entry.operation === "access_key.create" && !cameToNothing.has(entry.state),
  );
}

async function bringChildHome(bench: Workbench, drive: EntryLease, options: KeyReplacementOptions): Promise<Entry> {
  const prove = drive.entry.detail.update_profile === true ? strictProof(bench, drive) : undefined;
  const found = await currentChild(bench.journal, drive.entry);
  if (found?.state === "done") return found;
  if (found) {
    const child = await bench.journal.drive(found.id);
    try {
      const end = await recoverKeyCreation(bench, child, { ...options, prove });
      if (end.kind === "home") return end.entry;
    } finally {
      await child.release();
    }
  }
  const destination = { ...(await options.destination.check()) };
  const about = { fresh: true, parent: drive.entry.id, destination };
  const child = await admitCreation(bench, creationOf(drive.entry), about);
  try {
    return (await driveKeyCreation(bench, child, { ...options, prove })).entry;
  } finally {
    await child.release();
  }
}

/** Before the profile gives up the credential that works, the new one has to. */
function strictProof(bench: Workbench, drive: EntryLease): (secret: string) => Promise<void> {
  return async (secret) => {
    if (!(await proveSecret(bench, secret)))
      throw new Failure(
        "auth",
        "The profile knows no way to exchange the new secret for a token, so it cannot be proven.",
      );
    // The secret is on its way to its place: a journal that fails now must not stop it there.
    await recordAfterwards(bench, drive, proven(bench, drive.entry, "token exchange"));
  };
}

function creationOf(entry: Entry): KeyCreation {
  const { id: _, ...request } = JSON.parse(entry.request_text) as AccessKeyRequest & { id: string };
  return { request, marked: entry.detail.marked === true };
}
