// The rotation of an OAuth client without downtime: another like it, its secret delivered and proven by a token exchange,
// an overlap, then the old one revoked (overlap.ts). Here: what the client's contract makes of it, and why one is refused.
import { Failure } from "../../errors.ts";
import { detailOf, type Entry, isSettled, nextStep } from "../../journal/entry.ts";
import type { EntryLease, Intent } from "../../journal/journal.ts";
import {
  admitRotation,
  currentChild,
  finishRotation,
  type NewCredential,
  type Rotated,
  type RotationContract,
  type RotationOptions,
  overlapDifferences,
  refuseBegunOtherwise,
} from "../overlap.ts";
import {
  detailsOf,
  isInterruption,
  madeFor,
  recordAfterwards,
  recoveryAfter,
  refuseSecond,
  saysNothingWasDone,
  type Workbench,
  withReason,
} from "../workbench.ts";
import { rotationAhead, rotationsOf, settledRotations } from "../../journal/rotations.ts";
import { readUntilAnswered } from "../sending.ts";
import { creationIntent } from "./create.ts";
import { clientReceipt, finishOrReplace } from "./replace.ts";
import { untilClientRevoked } from "../revocation.ts";
import { assertAsAsked } from "../secret-delivery.ts";
import { shell, flags } from "../../next-step.ts";

export interface ClientRotationOptions extends RotationOptions {
  /** How long a pending creation is waited for, milliseconds; 0 inspects once. */
  readonly waitMs: number;
  /** Asked if the new client's own secret was lost; no means that nothing is revoked. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
}

export interface ClientRotationRequest {
  /** How long both clients stay usable after the new one is proven, milliseconds. */
  readonly overlapMs: number;
  readonly keepOld: boolean;
}

/** The old client as far as a rotation needs it. */
export interface OldClient {
  readonly id: string;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly status: string;
}

/** Begins a rotation, or resumes the unfinished one of the same client. */
export async function rotateOAuthClient(
  bench: Workbench,
  { old, request }: { readonly old: OldClient; readonly request: ClientRotationRequest },
  options: ClientRotationOptions,
): Promise<Rotated> {
  const intent = clientRotationIntent(bench, { old, request });
  const settledBefore = await settledRotations(bench.journal, intent);
  const { destination } = options;
  const { kind, lease, place } = await admitRotation(bench, intent, { destination, creation: "oauth_client.create" });
  try {
    if (kind === "resumed") {
      bench.tell.note(`Resuming the unfinished rotation ${lease.entry.id}.`);
      await refuseBegunOtherwise(
        { bench, lease, creation: "oauth_client.create" },
        {
          place,
          differences: overlapDifferences(lease.entry, request),
          wayOut: `integ journal forget ${lease.entry.id} gives it up`,
        },
      );
    } else {
      const about = { clock: bench.clock, wasActive: old.status === "active", settledBefore };
      const first = await rotationAhead(bench.journal, lease.entry, about);
      if (first !== undefined) throw await refuseSecond(bench, lease, { noun: "client", first });
      if (old.status !== "active") throw await notActive(bench, lease, old);
    }
    return await finishClientRotation(bench, lease, options);
  } finally {
    await lease.release();
  }
}

/** The intent of a rotation as the journal admits it. @param about.old with the scopes that the new client is to have */
export function clientRotationIntent(
  bench: Workbench,
  { old, request }: { readonly old: OldClient; readonly request: ClientRotationRequest },
): Intent {
  return {
    ...madeFor(bench.account),
    operation: "oauth_client.rotate",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: JSON.stringify({ id: old.id, service_account_id: old.service_account_id, scopes: old.scopes }),
    fingerprint: JSON.stringify([old.id]),
    idempotent: false,
    detail: {
      old_client: old.id,
      overlap_ms: request.overlapMs,
      keep_old: request.keepOld,
      proof: bench.account.proof,
    },
  };
}

/** Resumes a rotation at the step that it had reached, and completes it. */
export function finishClientRotation(
  bench: Workbench,
  lease: EntryLease,
  options: ClientRotationOptions,
): Promise<Rotated> {
  const { proveClient, service } = bench.account;
  const { old_client: oldId, proof } = detailOf(lease.entry, "oauth_client.rotate");
  // An entry of an earlier version does not say: then the account is asked, and what it cannot do does not mean "none is due".
  const due = proof === undefined ? bench.account.proof : proof;
  const contract: RotationContract = {
    noun: "client",
    creation: "oauth_client.create",
    oldId,
    deliverNew: (destination) => deliverNewClient(bench, lease, { ...options, destination }),
    learned: (newId) => ({ resource_id: newId }),
    prove: async (child, { secret, clientId = child.detail.client_id ?? "" }) => {
      if (due === null) return false;
      await proveClient({ clientId, secret }, due).catch((error: unknown) => {
        throw notProven(child, error);
      });
      return true;
    },
    whyUnproven: (_child, hasSecret) =>
      due === null
        ? "cannot be proven: the profile that started the rotation has no token endpoint"
        : hasSecret
          ? "could not be proven"
          : "could not be proven: its secret was delivered before a crash",
    statusOf: async (newId) =>
      (await readUntilAnswered(bench, () => service.oauthClients.get(newId), { what: "get the OAuth client" })).status,
    again: shell`integ oauth-clients rotate ${oldId}`,
    revokeOld: (by) => untilClientRevoked(bench, oldId, { grounds: { kind: "replaced", by }, lease }),
    unfinished: (error, how) => unfinishedClientRotation(lease.entry, error, how),
  };
  return finishRotation({ bench, lease, options }, contract);
}

function notProven(child: Entry, error: unknown): unknown {
  if (!(error instanceof Failure)) return error;
  const kind = isInterruption(error) ? error.kind : "pending";
  return new Failure(kind, withReason(`The new client ${child.resource_id} could not be proven`, error), {
    ...error.details,
    meaning: "The old client was not revoked; the new one's secret was delivered.",
  });
}

function unfinishedClientRotation(
  entry: Entry,
  error: Failure,
  { state, isDelivered }: { readonly state: Entry["state"]; readonly isDelivered: boolean },
): Failure {
  const { hint, nextCommand, recovers } = error.details;
  // What a step of it says of itself leads to the step; the rotation is resumed by its own id.
  const isOwnStep = recovers === entry.id;
  const own = isSettled(state) || isOwnStep ? null : nextStep(entry);
  // A credential that is missing or refused comes first: the recovery alone would end the same way again.
  const next =
    error.kind === "auth" ? recoveryAfter(error, entry.id) : { hint: undefined, nextCommand: own ?? undefined };
  const step = own === null ? { hint, nextCommand } : next;
  const meaning =
    error.details.meaning ?? (isInterruption(error) && isDelivered ? "Neither client was revoked." : undefined);
  const details = detailsOf(entry, { ...error.details, meaning, ...step });
  if (!isDelivered || !saysNothingWasDone(error)) return new Failure(error.kind, error.message, details);
  return new Failure(
    "pending",
    withReason("The new client's secret is delivered; the old client is not revoked yet", error),
    { ...details, meaning: "Neither client was revoked.", cause: error },
  );
}

async function deliverNewClient(
  bench: Workbench,
  rotation: EntryLease,
  { destination, waitMs, mayReplace }: ClientRotationOptions,
): Promise<NewCredential> {
  const found = await currentChild(bench.journal, rotation.entry, "oauth_client.create");
  if (found?.state === "done") return { entry: found, receipt: await clientReceipt(bench, found) };
  if (found?.state === "unusable") throw newUnusable(found);
  const child = found
    ? await bench.journal.lease(found.id)
    : await admitNewClient(bench, rotation.entry, { ...(await destination.check()) });
  try {
    const options = { destinationOf: () => Promise.resolve(destination), waitMs, mayReplace };
    const { entry, receipt } = await finishOrReplace(bench, child, options);
    return { entry, receipt: receipt ?? (await clientReceipt(bench, entry)) };
  } catch (error) {
    throw error instanceof Failure ? inRotation(error) : error;
  } finally {
    await child.release();
  }
}

/** What was called unusable once is not used (§4.2), whatever the service shows later: the old client stays. */
function newUnusable(child: Entry): Failure {
  assertAsAsked(child);
  const { resource_id: id } = child;
  return new Failure("unusable", `The service called the new client ${id} unusable: the old client is not revoked.`, {
    ...detailsOf(child),
    meaning: "This rotation ends here, and the old client stays as it is.",
  });
}

async function admitNewClient(
  bench: Workbench,
  rotation: Entry,
  destination: Entry["destination"],
): Promise<EntryLease> {
  const { service_account_id, scopes } = oldRequest(rotation);
  const intent = creationIntent(bench, { service_account_id, scopes }, rotation);
  const { lease } = await bench.journal.admit({ ...intent, parent: rotation.id, destination }, { fresh: true });
  return lease;
}

/** What a failed creation means for the rotation that it belongs to: the old client is not revoked. */
function inRotation(error: Failure): Failure {
  if (error.kind !== "undelivered" && error.kind !== "conflict") return error;
  const meaning = `${error.details.meaning ?? ""} The old client was not revoked.`.trim();
  return new Failure(error.kind, error.message, { ...error.details, meaning });
}

function oldRequest(rotation: Entry): Pick<OldClient, "service_account_id" | "scopes"> {
  return JSON.parse(rotation.request_text) as OldClient;
}

/** A client that is revoked, disabled or expired: nothing of it can be passed on. */
async function notActive(bench: Workbench, lease: EntryLease, old: OldClient): Promise<Failure> {
  await recordAfterwards(bench, lease, { state: "refused" });
  const successor = (await rotationsOf(bench.journal, lease.entry)).find(
    ({ state, resource_id }) => state === "done" && resource_id !== null,
  )?.resource_id;
  if (successor)
    return new Failure(
      "unusable",
      `The client ${old.id} is ${old.status}: it was rotated, and ${successor} followed.`,
      {
        ...detailsOf(lease.entry),
        nextCommand: shell`integ oauth-clients rotate ${successor}`,
      },
    );
  return new Failure("unusable", `The client ${old.id} is ${old.status}: it cannot be rotated.`, {
    ...detailsOf(lease.entry),
    nextCommand: shell`integ oauth-clients create ${flags.serviceAccount} ${old.service_account_id} ${old.scopes.flatMap((scope) => [flags.scope, scope])}`,
  });
}
