// The rotation of an access key by replacement: a new key like the old one, its secret delivered and proven by an exchange,
// an overlap, then the old one revoked (overlap.ts). Here: what the key's contract makes of it. The API's own rotation:
// rotate.ts.
import type { AccessKeyRequest } from "../../api/access-keys.ts";
import type { Service } from "../../api/connect.ts";
import { Failure } from "../../errors.ts";
import { type Entry, isSettled, nextStep } from "../../journal/entry.ts";
import type { EntryLease, Intent } from "../../journal/journal.ts";
import {
  admitRotation,
  currentChild,
  finishRotation,
  type NewCredential,
  proven,
  type Rotated,
  type RotationContract,
  type RotationOptions,
  type Difference,
  overlapDifferences,
  refuseBegunOtherwise,
} from "../overlap.ts";
import { type Successor, statusBeforeRevocation, untilKeyRevoked } from "../revocation.ts";
import {
  detailsOf,
  madeFor,
  recordAfterwards,
  recoveryStep,
  refuseSecond,
  saysNothingWasDone,
  type Workbench,
  withReason,
} from "../workbench.ts";
import { rotationAhead, settledRotations } from "../../journal/rotations.ts";
import { admitKeyCreation, type KeyCreation, proveSecret, sendKeyCreation } from "./create.ts";
import { type KeyRecoveryOptions, recoverKeyCreation } from "./recover.ts";
import { shell, flags } from "../../next-step.ts";

export interface KeyReplacementRequest {
  /** Resource id of the key to be replaced. */
  readonly oldId: string;
  /** Who created the old key, if it is bound to that user: a key bound to someone else is not the same. */
  readonly boundTo?: string;
  readonly creation: KeyCreation;
  /** How long both keys stay usable after the new one is proven, milliseconds. */
  readonly overlapMs: number;
  readonly updateProfile: boolean;
}

export interface KeyReplacementOptions extends RotationOptions, Omit<KeyRecoveryOptions, "prove"> {
  /** `--new`: leave an unfinished replacement of the same key alone. */
  readonly fresh?: boolean;
  /** The service as the profile is after its credential was replaced. */
  readonly reconnect?: () => Promise<Service>;
}

/** Begins a replacement, or resumes the unfinished one of the same key. */
export async function replaceAccessKey(
  bench: Workbench,
  request: KeyReplacementRequest,
  options: KeyReplacementOptions,
): Promise<Rotated> {
  const intent = keyReplacementIntent(bench, request);
  const { destination, fresh } = options;
  const about = { destination, fresh, creation: "access_key.create" } as const;
  const settledBefore = await settledRotations(bench.journal, intent);
  const { kind, lease, place } = await admitRotation(bench, intent, about);
  try {
    if (kind === "resumed") {
      bench.tell.note(`Resuming the unfinished replacement ${lease.entry.id}.`);
      await refuseBegunOtherwise(
        { bench, lease, creation: "access_key.create" },
        { place, differences: differencesOf(lease.entry, request), wayOut: `${flags.new} starts another` },
      );
    } else {
      const ahead = { clock: bench.clock, wasActive: true, settledBefore, fresh };
      const first = await rotationAhead(bench.journal, lease.entry, ahead);
      if (first !== undefined) throw await refuseSecond(bench, lease, { noun: "key", first });
    }
    return await finishKeyReplacement(bench, lease, options);
  } finally {
    await lease.release();
  }
}

/** The intent of a replacement as the journal admits it. */
export function keyReplacementIntent(bench: Workbench, request: KeyReplacementRequest): Intent {
  const { oldId, boundTo = null, creation, overlapMs, updateProfile } = request;
  return {
    ...madeFor(bench.account),
    operation: "access_key.rotate",
    method: "POST",
    path: "/api/v1/access-keys",
    request_text: JSON.stringify({ id: oldId, ...creation.request }),
    fingerprint: JSON.stringify(["replacement", oldId]),
    idempotent: false,
    detail: {
      mode: "replacement",
      old_key: oldId,
      bound_to: boundTo,
      overlap_ms: overlapMs,
      marked: creation.marked,
      expiry: creation.expiry ?? null,
      update_profile: updateProfile,
      exchange: bench.account.keyExchange,
    },
  };
}

/** What the replacement was started with, beside what is typed now. */
function differencesOf(entry: Entry, { creation, overlapMs, updateProfile }: KeyReplacementRequest): Difference[] {
  const begun = JSON.parse(entry.request_text) as AccessKeyRequest;
  const now = creation.request;
  const { expiry, marked, update_profile } = entry.detail;
  const list = (scopes: readonly string[] = []): string => [...new Set(scopes)].sort().join(" ");
  const life = (fingerprint: string | null | undefined, request: AccessKeyRequest): string =>
    fingerprint ?? request.expiresAt ?? "never";
  return [
    ...overlapDifferences(entry, { overlapMs }),
    { flag: flags.name, begun: begun.name, typed: now.name },
    { flag: flags.type, begun: begun.keyType ?? "user_bound", typed: now.keyType ?? "user_bound" },
    { flag: flags.scope, begun: list(begun.scopes), typed: list(now.scopes) },
    // An entry of an earlier version does not say how its expiry was asked for.
    ...(expiry === undefined
      ? []
      : [{ flag: "the expiry", begun: life(expiry, begun), typed: life(creation.expiry, now) }]),
    { flag: flags.nameMarker, begun: String(marked === true), typed: String(creation.marked) },
    { flag: flags.updateProfile, begun: String(update_profile === true), typed: String(updateProfile) },
  ];
}

/** Resumes a replacement at the step that it had reached, and completes it. */
export function finishKeyReplacement(
  bench: Workbench,
  lease: EntryLease,
  options: KeyReplacementOptions,
): Promise<Rotated> {
  const oldId = lease.entry.detail.old_key ?? "";
  const contract: RotationContract = {
    noun: "key",
    creation: "access_key.create",
    oldId,
    deliverNew: (destination) => deliverNewKey(bench, lease, { ...options, destination }),
    learned: (newId) => ({ resource_id: newId, detail: { ...lease.entry.detail, new_key: newId } }),
    checkNew: (child) => checkIdentity(lease.entry, child, options.mayRevokeUnproven),
    prove: (_child, { secret }) => proveSecret(bench, lease.entry, secret),
    whyUnproven: (_child, hasSecret) =>
      hasSecret
        ? lease.entry.detail.exchange?.kind === "command"
          ? "cannot be proven: the profile no longer has the command that exchanges a secret for a token"
          : "cannot be proven: the profile has a bearer token and no way to exchange a secret for one"
        : "cannot be proven: its secret was delivered before a crash",
    statusOf: (newId) => statusBeforeRevocation(bench, { id: newId, service: bench.account.service }),
    again: shell`integ keys rotate ${oldId} ${flags.byReplacement}`,
    revokeOld: (by) => revokeOldKey(bench, lease, { oldId, by, reconnect: options.reconnect }),
    unfinished: (error, how) => unfinishedReplacement(lease.entry, error, how),
  };
  return finishRotation({ bench, lease, options }, contract);
}

async function revokeOldKey(
  bench: Workbench,
  lease: EntryLease,
  { oldId, by, reconnect }: { oldId: string; by: Successor; reconnect: KeyReplacementOptions["reconnect"] },
): Promise<void> {
  await untilKeyRevoked(bench, oldId, {
    grounds: { kind: "replaced", by },
    lease,
    mayHaveArrived: lease.entry.detail.revoking === true,
    service: lease.entry.detail.update_profile === true ? await reconnect?.() : undefined,
    mark: async () => {
      // From the first request on the old key may be revoked, whatever the responses are.
      if (lease.entry.detail.revoking === true) return;
      await lease.record({ state: "pending", detail: { ...lease.entry.detail, revoking: true } });
    },
  });
}

function unfinishedReplacement(
  entry: Entry,
  error: Failure,
  { state, isDelivered }: { readonly state: Entry["state"]; readonly isDelivered: boolean },
): Failure {
  const { hint, nextCommand, meaning } = error.details;
  const isUnnamed = hint === undefined && nextCommand === undefined && !isSettled(state);
  const details = {
    ...detailsOf(entry, error.details),
    meaning: state === "pending" ? (meaning ?? "The old key was not revoked.") : meaning,
    nextCommand: isUnnamed ? (nextStep(entry) ?? undefined) : nextCommand,
  };
  if (!isDelivered || !saysNothingWasDone(error)) return new Failure(error.kind, error.message, details);
  const message = withReason("The new key's secret is delivered; the old key is not revoked yet", error);
  return new Failure("pending", message, { ...details, meaning: "Neither key was revoked.", cause: error });
}

async function deliverNewKey(
  bench: Workbench,
  lease: EntryLease,
  options: KeyReplacementOptions,
): Promise<NewCredential> {
  const prove = lease.entry.detail.update_profile === true ? strictProof(bench, lease) : undefined;
  const found = await currentChild(bench.journal, lease.entry, "access_key.create");
  if (found?.state === "done") return { entry: found };
  if (found) {
    const child = await bench.journal.lease(found.id);
    try {
      const end = await recoverKeyCreation(bench, child, { ...options, prove });
      if (end.kind === "delivered") return { entry: end.entry };
    } finally {
      await child.release();
    }
  }
  const destination = { ...(await options.destination.check()) };
  const child = await admitKeyCreation(bench, creationIn(lease.entry), {
    fresh: true,
    begun: lease.entry,
    parent: lease.entry.id,
    destination,
  });
  try {
    return { entry: (await sendKeyCreation({ bench, lease: child, destination: options.destination }, prove)).entry };
  } finally {
    await child.release();
  }
}

function creationIn(entry: Entry): KeyCreation {
  const { id: _, ...request } = JSON.parse(entry.request_text) as AccessKeyRequest & { id: string };
  return { request, marked: entry.detail.marked === true };
}

/** Before the profile gives up the credential that works, the new one has to work. */
function strictProof(bench: Workbench, lease: EntryLease): (secret: string) => Promise<void> {
  return async (secret) => {
    if (!(await proveSecret(bench, lease.entry, secret)))
      throw new Failure(
        "auth",
        "The profile has no way to exchange the new secret for a token, so it cannot be proven.",
      );
    // The secret is on its way to its destination: a journal that fails now must not stop it there.
    await recordAfterwards(bench, lease, proven(bench, lease.entry, "token exchange"));
  };
}

/** A user-bound key is tied to its creator (§2.4): for another person's key that is not a replacement. */
async function checkIdentity(entry: Entry, child: Entry, mayRevoke: (entry: Entry) => Promise<boolean>): Promise<void> {
  const { bound_to: before } = entry.detail;
  const { created_by: now } = child.detail;
  if (typeof before !== "string" || typeof now !== "string" || before === now) return;
  if (await mayRevoke(entry)) return;
  throw new Failure("pending", `The new key is bound to the user ${now}, the old one to ${before}.`, {
    meaning: `The new key works, and the old one was not revoked. If this is intended, continue with ${flags.yes}.`,
    ...recoveryStep(entry.id, [flags.yes]),
  });
}
