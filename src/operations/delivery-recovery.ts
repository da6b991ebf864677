// Finding a secret after a crash: where it was to go, kept for `journal claim`, or lost (§2.3, §2.4, §4.2).
import { Failure } from "../errors.ts";
import { type Entry, type EntryProgress, rotatedBy, wasClaimed } from "../journal/entry.ts";
import type { AccessKeyRequest } from "../api/access-keys.ts";
import type { EntryLease } from "../journal/journal.ts";
import { isSamePlace, type OneTimeSecret, placesOf } from "../secrets/destination.ts";
import { isAt, type Overwriting } from "./acts/overwrite.ts";
import {
  deliverSecret,
  kindOf,
  learnedOfKey,
  releaseReserved,
  reserveDestination,
  type SecretDelivery,
  settleDelivered,
  undelivered,
} from "./secret-delivery.ts";
import { type DeliveryBench, outcomeUnknown, recordAfterwards } from "./workbench.ts";
import type { SecretKeeping } from "../secrets/kept.ts";

/** Whether the secret is at each destination that the entry remembers. @throws Failure if one cannot be checked */
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

/** A delivery that was taken up: the secret, if this process had it in hand. */
export interface TakenUp {
  readonly secret?: OneTimeSecret;
}

interface Resumed extends SecretDelivery {
  /** Facts about the client from a receipt that has just arrived. */
  readonly learned?: Partial<EntryProgress>;
}

/** Resumes the delivery of an earlier process. @returns nothing without its secret. @throws Failure if it is to be claimed */
export async function takeUp(work: Resumed): Promise<TakenUp | undefined> {
  const { bench, lease, destination } = work;
  const { id, state } = lease.entry;
  const learnedFrom = async (kept: OneTimeSecret | undefined): Promise<Partial<EntryProgress>> =>
    work.learned ?? (await learnedOfKept(bench, lease.entry, kept?.id ?? ""));
  // The copy knows whose secret it is, if the crash came before the journal did. A damaged one says nothing.
  const copy = async (): Promise<OneTimeSecret | undefined> =>
    bench.secrets.isKept(id) ? bench.secrets.readKept(id).catch(() => undefined) : undefined;
  try {
    if (isForPlace(work) && (await completeDelivery(bench, lease).catch((error: unknown) => mayBeThere(work, error)))) {
      await settleDelivered(work, await learnedFrom(await copy()));
      return {};
    }
    // A copy is removed only after `done` is recorded: one that is missing went with its folder, and it cannot be claimed.
    assertNotElsewhere(bench, lease.entry);
    await keepDelivered(bench, lease);
    if (!bench.secrets.isKept(id)) {
      if (state === "undelivered") await lease.record({ state: "secret_lost" });
      return undefined;
    }
    const why = whyClaimed(work);
    if (why !== undefined) {
      if (state !== "undelivered" || work.learned !== undefined)
        await recordAfterwards(bench, lease, { ...(await learnedFrom(await copy())), state: "undelivered" });
      throw undelivered(lease.entry, why, bench.secrets);
    }
    const kept = await bench.secrets.readKept(id);
    const learned = await learnedFrom(kept);
    const record = await reserveDestination(bench, lease, { destination, isKept: true }).catch((error: unknown) => {
      throw work.claimedBy === "policy" ? undelivered(lease.entry, error, bench.secrets) : error;
    });
    await lease.record({ destination: { ...record } });
    const secret = belonging(kept, { ...lease.entry, ...learned });
    await deliverSecret(work, secret, { learned, isKept: true });
    return { secret };
  } finally {
    await releaseReserved(bench, lease.entry, destination);
  }
}

/** A person who claims a secret for another place than it was to go to wants it there, whatever the first one has. */
function isForPlace({ lease: { entry }, destination: { record }, claimedBy }: SecretDelivery): boolean {
  const before = entry.destination;
  if (claimedBy !== "person" || before === null || before.kind === "several") return true;
  return record.kind !== "several" && isSamePlace(before, record);
}

/** A destination that cannot be checked may hold the secret of a client that was shown just now: it is not called lost. */
async function mayBeThere({ bench, lease, learned }: Resumed, error: unknown): Promise<never> {
  if (!(error instanceof Failure) || learned === undefined) throw error;
  await recordAfterwards(bench, lease, { ...learned, state: "unknown" });
  throw outcomeUnknown(lease.entry, error);
}

/** Why a kept secret waits for a claim, as a sentence ends. Once it was called undelivered, only a profile takes its own key. */
function whyClaimed({ lease: { entry }, destination, claimedBy, learned }: Resumed): string | undefined {
  if (claimedBy !== undefined) return undefined;
  const { state, destination: at } = entry;
  const isLeft = learned === undefined && (state === "undelivered" || state === "secret_lost");
  if (kindOf(entry) === "oauth_client") {
    const goesOn = !isLeft && (at?.kind === "several" || at?.kind === "store");
    return goesOn ? undefined : "an earlier run could not deliver it.";
  }
  if (state === "undelivered") return at?.kind === "profile" ? undefined : "it is kept until you claim it.";
  return destination.isStdout ? "an earlier run ended before it could confirm the delivery." : undefined;
}

/** @throws Failure `undelivered` if the secret is kept by another machine or in another folder: not here is not lost */
export function assertNotElsewhere({ secrets }: DeliveryBench, entry: Entry): void {
  const { kept_at } = entry.detail;
  if (entry.state !== "undelivered" || kept_at === undefined || kept_at === secrets.place || secrets.isKept(entry.id))
    return;
  throw keptElsewhere(entry, secrets);
}

/** @param secrets of this process: typed here, a claim finds nothing */
export function keptElsewhere(entry: Entry, secrets: Pick<SecretKeeping, "isEscrowed" | "place">): Failure {
  const because = `it is kept in ${entry.detail.kept_at}, and this is ${secrets.place}.`;
  const { kind, message, details } = undelivered(entry, because, secrets);
  return new Failure(kind, message, {
    ...details,
    meaning: `Nothing was sent. If that folder no longer exists: integ journal forget ${entry.id}`,
    nextCommand: undefined,
    hint: `Run integ journal claim ${entry.id} there.`,
  });
}

/** The kept secret with all that is known of what it opens. A receipt has the secret at its top level. */
export function belonging(kept: OneTimeSecret, entry: Entry): OneTimeSecret {
  const id = entry.resource_id ?? kept.id;
  const clientId = entry.detail.client_id ?? kept.clientId;
  const named = { ...kept, id, clientId };
  const field = secretFieldOf(kept);
  if (objectOf(kept.receipt)[field] === kept.secret) return named;
  const ids = kept.kind === "oauth_client" ? { client_id: clientId ?? null } : {};
  return { ...named, receipt: JSON.stringify({ id: id || null, ...ids, [field]: kept.secret }) };
}

/** The field of a response that holds the secret (§2.3, §2.4). */
export function secretFieldOf({ kind }: OneTimeSecret): "client_secret" | "secret" {
  return kind === "oauth_client" ? "client_secret" : "secret";
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** How a creation ends whose secret is kept here, and that did not learn from a receipt which client it opens. */
export async function keptUnnamed({ bench, lease }: SecretDelivery, failure: Failure): Promise<Failure> {
  if (failure.kind !== "outcome_unknown") return failure;
  try {
    if (!bench.secrets.isKept(lease.entry.id)) return failure;
  } catch {
    return failure; // Recovery looks again.
  }
  await recordAfterwards(bench, lease, { state: "undelivered" });
  const { hint, nextCommand, meaning } = undelivered(lease.entry, failure, bench.secrets).details;
  const message = `The secret arrived and is kept, but the command could not continue: ${failure.message}`;
  return new Failure("undelivered", message, { ...failure.details, meaning, hint, nextCommand, recovers: undefined });
}

/** True if only some of several destinations have the secret. */
export function isPartlyDelivered({ destination }: Entry): boolean {
  return destination?.kind === "several" && destination.places.some(({ state }) => state === "delivered");
}

/** Whether the secret is at its destination; one that only some of several have is kept for the others. */
export async function seekSecret(bench: DeliveryBench, lease: EntryLease): Promise<boolean> {
  if (wasClaimed(lease.entry) || (await completeDelivery(bench, lease))) return true;
  await keepDelivered(bench, lease);
  return false;
}

/** Keeps the secret that some of several destinations have, if one can be read there: the others are to have it too. */
async function keepDelivered({ secrets }: DeliveryBench, { entry }: EntryLease): Promise<void> {
  const { id, resource_id, detail } = entry;
  if (!isPartlyDelivered(entry) || secrets.isKept(id)) return;
  const secret = await rereadSecret(secrets, entry);
  if (secret === undefined) return;
  const known = { id: resource_id ?? "", clientId: detail.client_id ?? undefined };
  await secrets.keep(id, { secret, kind: kindOf(entry), ...known, receipt: "" });
}

/** The secret of an entry, if it is readable at one of its destinations. */
export async function rereadSecret(secrets: SecretKeeping, { destination }: Entry): Promise<string | undefined> {
  for (const place of placesOf(destination)) {
    const secret = await secrets.reread(place);
    if (secret !== undefined) return secret;
  }
  return undefined;
}

/** Ids that the created credential cannot have: the replaced one, the one whose secret was lost, the key that sent the request. */
export async function formerIds({ journal }: DeliveryBench, creation: Entry): Promise<readonly string[]> {
  const { parent, replaces, detail } = creation;
  const ids = [parent, replaces].filter((id) => id !== null);
  const others = ids.length === 0 ? [] : await journal.select({ all: true, ids });
  const known = others.flatMap((one) => [rotatedBy(one), one.id === replaces ? one.resource_id : undefined]);
  return [detail.asking_key, ...known].filter((id) => typeof id === "string");
}

/** Facts about a key from its kept secret that the journal may lack; none for a client, which only its receipt identifies. */
export async function learnedOfKept(bench: DeliveryBench, entry: Entry, id: string): Promise<Partial<EntryProgress>> {
  if (kindOf(entry) === "oauth_client") return {};
  if (entry.operation !== "access_key.create") return learnedOfKey(entry, id);
  const { keyDifferences } = await import("../api/access-keys.ts");
  const request = JSON.parse(entry.request_text) as AccessKeyRequest;
  // The rotation that an entry belongs to may have learned which key was made, if the entry itself could not be recorded.
  const [rotation] = entry.parent === null ? [] : await bench.journal.select({ all: true, ids: [entry.parent] });
  const seen = (id || entry.resource_id || rotation?.resource_id) ?? undefined;
  const differs = keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs;
  return learnedOfKey(entry, seen ?? "", { differs });
}
