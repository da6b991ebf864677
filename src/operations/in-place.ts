// Rotates an access key in place (§4.4). The old secret may stop working when the request arrives, so after a lost response
// integ rotates the key again only with consent.
import { rotatedKeyDifferences } from "../api/access-keys.ts";
import { isCredentialRefused } from "../api/call/attempt.ts";
import { segment } from "../api/call/request.ts";
import { Failure, withReason } from "../errors.ts";
import { type Entry, mayHaveArrived, otherPlaces, rotatedBy } from "../journal/entry.ts";
import type { Admission, EntryLease, Intent } from "../journal/journal.ts";
import { laterRotation, activeEarlierRotation, settledRotations } from "../journal/rotations.ts";
import { assertTrusted } from "./acts/overwrite.ts";
import { assertNoneInFlight } from "./sending.ts";
import {
  destroyCopy,
  type SecretWork,
  secretLost,
  releaseReserved,
  withRelease,
  continueDelivery,
  type SecretDelivery,
} from "./secret-delivery.ts";
import {
  entryFailure,
  withLease,
  accountFields,
  outcomeUnknown,
  recordOrWarn,
  recoveryStep,
  type Workbench,
} from "./workbench.ts";
import { next } from "./next.ts";
import { assertPrecedence, uselessSecretWords, type RotationOptions } from "./rotation.ts";
import { proveSecret, sendForSecret, type SendOptions, takeSecret } from "./key.ts";
import { unfinishedReason } from "./creation.ts";
import { flags, shortFlags } from "../next-step.ts";

export interface KeyRotationResult {
  readonly entry: Entry;
  /** Includes the new secret; absent if an earlier process received it. */
  readonly receipt?: string;
}

const unknownMeaning =
  "The new secret did not arrive, and the old secret may have stopped working. integ did not replace the old secret.";
const repeatMeaning = "The command below rotates the key again: its current secret may stop working.";

/** @returns ids of the key's finished rotations. Read them before you ask a person, whose answer covers no later rotation. */
export function earlierRotations({ journal, account }: Workbench, id: string): Promise<ReadonlySet<string>> {
  return settledRotations(journal, {
    ...accountFields(account),
    operation: "access_key.rotate",
    detail: { key_id: id },
  });
}

interface InPlaceOptions extends Pick<RotationOptions, "destination" | "fresh"> {
  readonly settledBefore?: ReadonlySet<string>;
}

export async function rotateAccessKey(
  bench: Workbench,
  { id, updateProfile }: { readonly id: string; readonly updateProfile: boolean },
  { destination, fresh, ...options }: InPlaceOptions,
): Promise<KeyRotationResult> {
  // Without a machine id, another machine of a team would treat the recorded path as its own.
  bench.secrets.machine.make();
  const intent: Intent = {
    ...accountFields(bench.account),
    operation: "access_key.rotate",
    method: "POST",
    path: `/api/v1/access-keys/${segment(id, "key id")}/rotate`,
    request_text: "",
    fingerprint: JSON.stringify(["in_place", id]),
    idempotent: false,
    destination: { ...(await destination.check()) },
    detail: { mode: "in_place", key_id: id, update_profile: updateProfile, exchange: bench.account.keyExchange },
  };
  const settledBefore = options.settledBefore ?? (await earlierRotations(bench, id));
  const { kind, lease } = await admitInPlace(bench, intent, fresh);
  return withLease(lease, async () => {
    if (kind === "new") await assertPrecedence(bench, lease, { wasActive: false, settledBefore, fresh });
    if (kind === "resumed" && mayHaveArrived(lease.entry))
      throw entryFailure(lease.entry, "outcome_unknown", "An earlier rotation of this key has an unknown outcome.", {
        meaning: `Nothing was sent now. ${unknownMeaning} ${repeatMeaning}`,
        ...recoveryStep(lease.entry.id, [flags.replaceLostSecret]),
      });
    if (kind === "resumed")
      bench.tell.note(`Resuming the unfinished rotation ${lease.entry.id}: ${unfinishedReason(lease.entry)}.`);
    return rotateNow({ bench, lease, destination });
  });
}

async function admitInPlace(bench: Workbench, intent: Intent, fresh: boolean | undefined): Promise<Admission> {
  for (;;) {
    const admission = await bench.journal.admit(intent, { fresh });
    const { kind, lease } = admission;
    const later = kind === "new" ? undefined : await laterRotation(bench.journal, lease.entry, bench.secrets);
    if (later === undefined) return admission;
    await withLease(lease, () => endSuperseded(bench, lease, later));
  }
}

/** Ends a rotation that `later` makes out of date. The kept secret is destroyed only if `later` has succeeded. */
export async function endSuperseded(bench: Workbench, lease: EntryLease, later: Entry): Promise<void> {
  const { id } = lease.entry;
  await assertTrusted(bench, [later]);
  await lease.record({ state: "replaced", replaced_by: later.id, last_error: null });
  await destroyCopy(bench, lease.entry, { rotatedAgain: later });
  await releaseReserved(bench, lease.entry);
  bench.tell.note(`Nothing was sent for ${id}: ${later.id} rotated the key ${rotatedBy(later)} after it.`);
}

async function rotateNow(work: SecretWork, stateBefore?: SendOptions["stateBefore"]): Promise<KeyRotationResult> {
  const { bench, lease } = work;
  const id = lease.entry.detail.key_id ?? "";
  const other = await activeEarlierRotation(bench.journal, lease.entry);
  if (other !== undefined)
    throw entryFailure(lease.entry, "conflict", `Another process rotates the key ${id} at this moment (${other.id}).`, {
      unsent: true,
      meaning: `Nothing was sent: ${uselessSecretWords}.`,
      ...recoveryStep(lease.entry.id),
    });
  await lease.record({ resource_id: id });
  return withRelease(work, async () => {
    const about = { what: "rotate the access key", change: "rotate key", unknownMeaning } as const;
    const answer = await sendForSecret(work, { ...about, id, stateBefore });
    const { value } = answer;
    const key = { ...value.key, id: value.key.id ?? id };
    const differs = rotatedKeyDifferences(key);
    const prove = ownProof(bench, lease.entry, { shownId: key.id, differs });
    const shown = { ...answer, value: { ...value, key } };
    try {
      const { receipt } = await takeSecret({ ...work, prove }, shown, { differs });
      return { entry: lease.entry, receipt };
    } finally {
      // @assumed §4.4 does not show the response to a rotation: the key may get another id with its new secret
      if (key.id !== id)
        bench.tell.warn(
          `The response to the rotation of ${id} shows the key ${key.id}: the new secret is that key's. Whether ${id} still works is not known. To see both: integ keys list`,
        );
    }
  });
}

/**
 * Proves a new secret before it becomes the profile's. An unproven secret becomes the profile's too, because the service
 * returned it for this key. The secret stays kept for `claim` if the service refuses it, if the key cannot be used, or if
 * the secret is unproven and the key has another id.
 */
function ownProof(
  bench: Workbench,
  entry: Entry,
  { shownId, differs }: { readonly shownId?: string; readonly differs?: string | undefined } = {},
): SecretDelivery["prove"] {
  const { update_profile, key_id } = entry.detail;
  if (update_profile !== true) return undefined;
  const isOther = shownId !== undefined && shownId !== key_id;
  const otherUnproven = `The service responded with the key ${shownId}, and its secret could not be proven`;
  return async ({ secret }) => {
    if (differs !== undefined)
      throw new Failure("unusable", `The service responded with a key that cannot be used: ${differs}.`);
    try {
      if (await proveSecret(bench, entry, secret)) return;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { kind, message, details } = error;
      if (kind === "auth") throw new Failure(kind, withReason("The new secret was not accepted", error), details);
      if (isOther) throw new Failure(kind, withReason(otherUnproven, error), details);
      return bench.tell.warn(`The new secret could not be proven (${message}) It was stored in the profile anyway.`);
    }
    if (isOther) throw new Failure("unusable", `${otherUnproven}.`);
    bench.tell.warn("The new secret was not proven: the profile has no way to exchange it for a token.");
  };
}

export async function recoverKeyRotation(
  bench: Workbench,
  lease: EntryLease,
  { destination, mayReplace, claimedBy }: Pick<RotationOptions, "destination" | "mayReplace" | "claimedBy">,
): Promise<KeyRotationResult> {
  assertNoneInFlight(lease);
  const work = { bench, lease, destination, claimedBy };
  if (await continueDelivery({ ...work, prove: ownProof(bench, lease.entry) })) return { entry: lease.entry };
  if (next(lease.entry) === "send") return rotateNow(work);
  const isLost = lease.entry.state === "secret_lost";
  if (!(await mayReplace?.(lease.entry)))
    throw isLost ? secretLost(lease.entry, { here: bench.secrets }) : await unknownOutcomeFailure(bench, lease);
  await destination.check();
  bench.tell.note(`Rotating ${lease.entry.resource_id ?? ""} again: its current secret may stop working.`);
  return rotateNow(work, isLost ? "secret_lost" : "unknown");
}

/** If the key is the profile's own, a request shows whether the service still accepts the profile's secret. */
async function unknownOutcomeFailure(bench: Workbench, lease: EntryLease): Promise<Failure> {
  const { entry } = lease;
  const others = otherPlaces(entry, bench.secrets);
  const places = `It was requested in ${others.join(", ")} too, and a new secret may be kept there`;
  const elsewhere = others.length === 0 ? "" : ` ${places}: ${flags.yes} alone does not rotate it again.`;
  const unknown = (meaning: string): Failure => {
    const because = new Failure("outcome_unknown", "It is not known whether the key was rotated.");
    const step = recoveryStep(entry.id, [flags.replaceLostSecret]);
    return outcomeUnknown(entry, because, { meaning: `${meaning}${elsewhere}`, ...step });
  };
  if (bench.account.keyId !== entry.resource_id) return unknown(`${unknownMeaning} ${repeatMeaning}`);
  const answer = await bench.account.service.accessKeys.list();
  if (answer.kind === "answered")
    return unknown(
      "The profile's secret was accepted just now. It is not known whether the rotation created a new one. Rotate the key again to be sure.",
    );
  if (!isCredentialRefused(answer)) return unknown(`${unknownMeaning} ${repeatMeaning}`);
  if (others.length > 0) return unknown("The service refused the profile's own secret.");
  await recordOrWarn(bench, lease, { state: "secret_lost", last_error: null });
  const message = `The service refused the profile's own secret: if the rotation of ${entry.resource_id} is the cause, its new secret is lost.`;
  return entryFailure(entry, "secret_lost", message, {
    meaning: "This profile is locked out. Use another profile that may administer keys to give it a new secret.",
    hint: `Rotate the key with ${flags.secretProfile} ${entry.profile}, as a profile that may administer keys (${shortFlags.profile}).`,
  });
}
