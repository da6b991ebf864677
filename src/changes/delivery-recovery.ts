// The way back to a secret after a crash: found where it was to go, kept for `journal claim`, or lost (§2.3, §2.4, §4.2).
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination, SingleRecord } from "../secrets/destination.ts";
import { learnedOfKept } from "./former-ids.ts";
import {
  assertAsAsked,
  deliverSecret,
  kindOf,
  reserveDestination,
  type SecretDelivery,
  settledState,
  settleDelivered,
  undelivered,
} from "./secret-delivery.ts";
import { recordAfterwards, releaseReserved, type SecretKeeping, type Workbench } from "./workbench.ts";

/**
 * Finishes a delivery that a crash interrupted, at the destination that the entry remembers.
 * @returns true if the secret is there now
 * @throws Failure if that destination cannot be checked: the secret may be there
 */
export async function completeDelivery(
  bench: { readonly secrets: Pick<SecretKeeping, "completeDelivery"> },
  lease: EntryLease,
  entry: Entry = lease.entry,
): Promise<boolean> {
  const record = entry.destination;
  if (record?.kind !== "several") return record !== null && completeAt(bench, entry, record);
  const places = [];
  for (const place of record.places) {
    const isThere = place.state === "delivered" || (await completeAt(bench, entry, place.at));
    places.push(isThere ? ({ ...place, state: "delivered" } as const) : place);
  }
  if (places.some((place, index) => place !== record.places[index] && record.places[index]?.state !== "delivered"))
    await lease.record({ destination: { ...record, places } });
  return places.every(({ state }) => state === "delivered");
}

async function completeAt(
  bench: Parameters<typeof completeDelivery>[0],
  entry: Entry,
  record: SingleRecord,
): Promise<boolean> {
  const { operation, resource_id, detail } = entry;
  if (kindOf(entry) === "oauth_client")
    return bench.secrets.completeDelivery(record, { clientId: detail.client_id ?? undefined });
  // A rotation in place keeps the key's id, so that the id in a profile proves nothing.
  if (record.kind === "profile" && (operation !== "access_key.create" || !resource_id)) return false;
  return bench.secrets.completeDelivery(record, { id: resource_id ?? undefined });
}

/**
 * Settles a client's creation that an earlier run called lost or undelivered, if its secret is found, before anything is
 * revoked or asked for: first at its destination, then among what is kept here. An entry that does not name its client yet
 * is left to its creation.
 * @returns true if it was at its destination: the entry is done now
 * @throws Failure `undelivered` if it is kept for `claim`
 */
export async function settleIfFound(bench: Workbench, lease: EntryLease): Promise<boolean> {
  const { id, state, resource_id } = lease.entry;
  if (resource_id === null) assertNotElsewhere(bench, lease.entry);
  if ((state !== "undelivered" && state !== "secret_lost") || resource_id === null) return false;
  if (await completeDelivery(bench, lease)) {
    await lease.record({ state: settledState(lease.entry.detail), last_error: null });
    await bench.secrets.destroyKept(id, { keepsProof: lease.entry.parent !== null });
    assertAsAsked(lease.entry);
    return true;
  }
  // A copy goes only after `done` is recorded: one that is missing went with its folder, and no one can claim it.
  assertNotElsewhere(bench, lease.entry);
  const found = bench.secrets.isKept(id) ? "undelivered" : "secret_lost";
  if (state !== found) await lease.record({ state: found });
  if (found === "undelivered") throw undelivered(lease.entry, "an earlier run could not deliver it.");
  return false;
}

/** @throws Failure `undelivered` if the secret is kept by another machine or in another folder: not here is not lost */
function assertNotElsewhere({ secrets }: Workbench, entry: Entry): void {
  const { kept_at } = entry.detail;
  if (entry.state !== "undelivered" || kept_at === undefined || kept_at === secrets.place) return;
  if (secrets.isKept(entry.id)) return;
  const { kind, message, details } = undelivered(entry, `it is kept in ${kept_at}, and this is ${secrets.place}.`);
  throw new Failure(kind, message, {
    ...details,
    meaning: `Nothing was sent. Claim it there; if that folder no longer exists: integ journal forget ${entry.id}`,
  });
}

/**
 * Resumes the delivery of a key's secret that an earlier process left.
 * @returns true if the secret is at its destination now; false if none is kept and none had arrived
 * @throws Failure `undelivered` if it can only be claimed by hand
 */
export async function resumeDelivery(
  delivery: SecretDelivery,
  prove?: (secret: string) => Promise<void>,
): Promise<boolean> {
  const { bench, lease, destination } = delivery;
  // As above: a copy that is missing cannot be claimed. What had arrived anyway is found at its destination.
  assertNotElsewhere(bench, lease.entry);
  if (lease.entry.state === "undelivered" && !bench.secrets.isKept(lease.entry.id))
    await lease.record({ state: "secret_lost" });
  // Only a profile is still there to take its own credential without being asked.
  if (lease.entry.state === "undelivered" && lease.entry.destination?.kind !== "profile")
    throw undelivered(lease.entry, "it is kept until you claim it.");
  try {
    return await finishKeyDelivery(delivery, prove);
  } finally {
    await releaseReserved(bench, lease.entry, destination);
  }
}

/**
 * Makes the destination of a replacement ready before what it replaces is revoked, unless the secret already exists.
 * @throws Failure of the destination; a replacement that was never sent is refused then, and nothing was revoked
 */
export async function reserveBeforeRevocation(
  bench: Workbench,
  replacement: EntryLease,
  destination: Destination,
): Promise<void> {
  if (await completeDelivery(bench, replacement)) return;
  try {
    await reserveDestination(bench, replacement, { destination });
  } catch (error) {
    await releaseReserved(bench, replacement.entry, destination);
    if (replacement.entry.attempts === 0) await recordAfterwards(bench, replacement, { state: "refused" });
    throw error;
  }
}

/** As `resumeDelivery`, of an entry that is not `undelivered`. */
export async function finishKeyDelivery(
  delivery: SecretDelivery,
  prove?: (secret: string) => Promise<void>,
): Promise<boolean> {
  const { bench, lease, destination } = delivery;
  const isKept = bench.secrets.isKept(lease.entry.id);
  if (await completeDelivery(bench, lease)) {
    // The copy knows whose secret it is, if the crash came before the journal did.
    const kept = isKept ? await bench.secrets.readKept(lease.entry.id).catch(() => undefined) : undefined;
    await settleDelivered(delivery, await learnedOfKept(bench, lease.entry, kept?.id ?? ""), isKept);
    return true;
  }
  if (!isKept) return false;
  const secret = await bench.secrets.readKept(lease.entry.id);
  const learned = await learnedOfKept(bench, lease.entry, secret.id);
  if (destination.isStdout) {
    await recordAfterwards(bench, lease, { ...learned, state: "undelivered" });
    throw undelivered(lease.entry, "an earlier run ended before it could confirm the delivery.");
  }
  const record = await reserveDestination(bench, lease, { destination, isKept: true });
  await lease.record({ destination: { ...record } });
  await deliverSecret(delivery, secret, { prove, learned, isKept: true });
  return true;
}
