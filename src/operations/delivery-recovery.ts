// Finding a secret after a crash: where it was to go, kept for `journal claim`, or lost (§2.3, §2.4, §4.2).
import { Failure } from "../errors.ts";
import type { Entry, EntryProgress } from "../journal/entry.ts";
import type { AccessKeyRequest } from "../api/access-keys.ts";
import type { EntryLease } from "../journal/journal.ts";
import { isSamePlace, type OneTimeSecret, placesOf } from "../secrets/destination.ts";
import { isAt, type Overwriting } from "./acts/overwrite.ts";
import {
  type DeliveryOptions,
  deliverSecret,
  learnedOfKey,
  kindOf,
  reserveDestination,
  type SecretDelivery,
  settleDelivered,
  undelivered,
  releaseReserved,
} from "./secret-delivery.ts";
import { type DeliveryBench, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";
import type { SecretKeeping } from "../secrets/kept.ts";

/**
 * Finishes a delivery that a crash interrupted, at the destinations that the entry remembers.
 * @returns true if the secret is at all of them now
 * @throws Failure if one of them cannot be checked: the secret may be there
 */
export async function completeDelivery(bench: Overwriting, lease: EntryLease): Promise<boolean> {
  const { destination } = lease.entry;
  if (destination === null) return false;
  if (destination.kind !== "several") return isAt(bench, lease, destination);
  const places = [];
  for (const place of destination.places) {
    const isThere = place.state === "delivered" || (await isAt(bench, lease, place.at));
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

/**
 * Resumes the delivery that an earlier process left, before anything is sent or revoked: first the secret is looked for at its
 * destination, then among what is kept here.
 * @param about.learned what a receipt that came just now says of the client
 * @returns nothing if the secret is nowhere
 * @throws Failure `undelivered` if a person has to claim it
 */
export async function takeUp(
  work: SecretDelivery,
  about: { readonly prove?: DeliveryOptions["prove"]; readonly learned?: Partial<EntryProgress> } = {},
): Promise<TakenUp | undefined> {
  const { bench, lease, destination } = work;
  const { id, state } = lease.entry;
  const learnedFrom = async (kept: OneTimeSecret | undefined): Promise<Partial<EntryProgress>> =>
    about.learned ?? (await learnedOfKept(bench, lease.entry, kept?.id ?? ""));
  // The copy knows whose secret it is, if the crash came before the journal did. A damaged one says nothing.
  const copy = async (): Promise<OneTimeSecret | undefined> =>
    bench.secrets.isKept(id) ? bench.secrets.readKept(id).catch(() => undefined) : undefined;
  try {
    const isThere = isForPlace(work) && completeDelivery(bench, lease);
    if (await Promise.resolve(isThere).catch((error: unknown) => mayBeThere(work, about.learned, error))) {
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
    const why = whyClaimed(work, about.learned);
    if (why !== undefined) {
      if (state !== "undelivered" || about.learned !== undefined)
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
    await deliverSecret(work, secret, { prove: about.prove, learned, isKept: true });
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

/** A destination that cannot be checked may hold the secret of a client that was shown just now: it is not called lost for that. */
async function mayBeThere(
  { bench, lease }: SecretDelivery,
  learned: Partial<EntryProgress> | undefined,
  error: unknown,
): Promise<never> {
  if (!(error instanceof Failure) || learned === undefined) throw error;
  await recordAfterwards(bench, lease, { ...learned, state: "unknown" });
  throw outcomeUnknown(lease.entry, error);
}

/**
 * Why a secret that is kept waits for a claim, as a sentence ends; nothing if it goes to its destination now. Of a client that is
 * so if the journal remembers a place to write to; of a key unless it is for the screen, and once it was called undelivered only
 * a profile takes its own credential without a question.
 */
function whyClaimed(
  { lease: { entry }, destination, claimedBy }: SecretDelivery,
  learned: unknown,
): string | undefined {
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
  if (entry.state !== "undelivered" || kept_at === undefined || kept_at === secrets.place) return;
  if (secrets.isKept(entry.id)) return;
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

/**
 * The kept secret with all that is known of what it opens. What came with it is its receipt if that is an object with the
 * secret at its top level; a cut text is not, and never keeps a secret from its destination.
 */
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
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
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

/** Keeps the secret that some of several destinations have, if one can be read there: the others are to have it too. */
export async function keepDelivered({ secrets }: Pick<Workbench, "secrets">, { entry }: EntryLease): Promise<void> {
  const { id, resource_id, detail } = entry;
  if (!isPartlyDelivered(entry) || secrets.isKept(id)) return;
  const secret = await rereadSecret(secrets, entry);
  if (secret === undefined) return;
  const clientId = detail.client_id ?? undefined;
  await secrets.keep(id, { secret, kind: kindOf(entry), id: resource_id ?? "", clientId, receipt: "" });
}

/** The secret of an entry, if it is readable at one of its destinations. */
export async function rereadSecret(
  secrets: Pick<SecretKeeping, "reread">,
  { destination }: Pick<Entry, "destination">,
): Promise<string | undefined> {
  for (const place of destination ? placesOf(destination) : []) {
    const secret = await secrets.reread(place);
    if (secret !== undefined) return secret;
  }
  return undefined;
}

/** The ids of what a creation replaces, of its lost one, and of the key that asked for it. */
export async function formerIds({ journal }: DeliveryBench, creation: Entry): Promise<readonly string[]> {
  const { parent, replaces, detail: asked } = creation;
  const ids = [parent, replaces].filter((id) => id !== null);
  const others = ids.length === 0 ? [] : await journal.select({ all: true, ids });
  const known = others.flatMap(({ id, detail, resource_id }) => [
    detail.old_client,
    detail.old_key,
    id === replaces ? resource_id : undefined,
  ]);
  return [asked.asking_key, ...known].filter((id) => typeof id === "string");
}

/**
 * What a secret that was kept says of its key (a client is named by its receipt alone). The response may have been read by a process that ended before the journal
 * learned of it.
 */
export async function learnedOfKept(bench: DeliveryBench, entry: Entry, id: string): Promise<Partial<EntryProgress>> {
  if (kindOf(entry) === "oauth_client") return {};
  if (entry.operation !== "access_key.create") return learnedOfKey(entry, id);
  const { keyDifferences } = await import("../api/access-keys.ts");
  const request = JSON.parse(entry.request_text) as AccessKeyRequest;
  const seen = id || entry.resource_id || (await newKeyOf(bench, entry));
  const differs = keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs;
  return learnedOfKey(entry, seen ?? "", { differs });
}

/** The rotation that an entry belongs to may have learned which key was made, if the entry itself could not be recorded. */
async function newKeyOf({ journal }: DeliveryBench, { parent }: Entry): Promise<string | undefined> {
  const [rotation] = parent === null ? [] : await journal.select({ all: true, ids: [parent] });
  return rotation?.resource_id ?? undefined;
}
