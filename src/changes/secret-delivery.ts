// The way of a one-time secret from the answer to its destination, in the order that loses least: kept on this machine,
// proven if that was asked for, delivered, recorded as done, and only then the copy destroyed. And the way back to a
// secret after a crash: found where it was to go, kept for `journal claim`, or lost (§2.3, §2.4, §4.2).
import type { Salvage } from "../api/http/attempt.ts";
import { readableIds } from "../api/oauth-client-creation.ts";
import { Failure } from "../errors.ts";
import { type Entry, type EntryProgress, isSettled, nextStep } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination, DestinationRecord, OneTimeSecret } from "../secrets/destination.ts";
import {
  detailsOf,
  reasonOf,
  recordAfterwards,
  releaseReserved,
  type SecretKeeping,
  withRequestId,
  type Workbench,
} from "./workbench.ts";

/** A piece of work whose secret comes, and where it goes. */
export interface SecretDelivery {
  readonly bench: Workbench;
  readonly lease: EntryLease;
  readonly destination: Destination;
}

export interface DeliveryOptions {
  /** Proves the secret before it is delivered: for one that replaces a credential in use. */
  readonly prove?: (secret: string) => Promise<void>;
  /** What the answer said of the resource, for the entry. */
  readonly learned: Partial<EntryProgress>;
  /** Of the answer that brought the secret: shown with what becomes of it. */
  readonly requestId?: string | undefined;
}

interface DeliveryTexts {
  readonly undelivered: string;
  readonly untilClaimed: string;
  readonly neither: (delivering: string, keeping: string) => string;
  readonly copyStays: string;
}

const texts: Readonly<Record<OneTimeSecret["kind"], DeliveryTexts>> = {
  oauth_client: {
    undelivered: "The client was created, but its secret could not be delivered",
    untilClaimed: "The secret is kept on this machine, readable by you alone, until you claim it.",
    neither: (delivering, keeping) => `The secret could neither be delivered (${delivering}) nor kept (${keeping}).`,
    copyStays: "A copy of the secret that nobody needs could not be destroyed",
  },
  access_key: {
    undelivered: "The service gave the secret, and it could not be delivered",
    untilClaimed: "It is kept on this machine, readable by you alone, until you claim it.",
    neither: (delivering) => `The secret could neither be kept nor delivered: ${delivering}`,
    copyStays: "The secret was delivered; the copy kept meanwhile could not be destroyed",
  },
};

function kindOf({ operation }: Pick<Entry, "operation">): OneTimeSecret["kind"] {
  return operation.startsWith("access_key.") ? "access_key" : "oauth_client";
}

/**
 * Makes a destination ready for the secret of an entry. The destination is in the journal before anything is reserved
 * there, and the one that is left is cleared before it is forgotten: a crash in between leaves nothing unknown.
 * @param options.isKept the secret itself is safe elsewhere: what an earlier process wrote at another destination goes too
 * @returns the destination with what was reserved there, for the caller's next record
 */
export async function reserveDestination(
  { secrets }: { readonly secrets: Pick<SecretKeeping, "removeReserve"> },
  lease: EntryLease,
  { destination, isKept = false }: { readonly destination: Destination; readonly isKept?: boolean },
): Promise<DestinationRecord> {
  const wanted = await destination.check();
  const before = lease.entry.destination;
  if (!isRemembered(before, wanted)) {
    if (before) await secrets.removeReserve(before, lease.entry.id, { isKept });
    await lease.record({ destination: { ...wanted } });
  }
  return destination.prepare(lease.entry.id);
}

/** Only a file has a reserve that could be left behind. */
function isRemembered(before: DestinationRecord | null, wanted: DestinationRecord): boolean {
  if (wanted.kind !== "file") return before?.kind !== "file";
  return before?.kind === "file" && before.path === wanted.path;
}

/**
 * Delivers a secret in hand, before anything else is said or complained about.
 * @throws Failure `undelivered` (kept for `journal claim`), or `secret_lost` if nothing at all would take it: then what
 * was reserved for it must stay, since the secret may be whole in there
 */
export async function deliverSecret(
  delivery: SecretDelivery,
  secret: OneTimeSecret,
  { prove, learned, requestId }: DeliveryOptions,
): Promise<void> {
  const { bench, lease, destination } = delivery;
  const isKept = needsCopy(lease.entry, secret) && (await keepMeanwhile(delivery, secret));
  try {
    await prove?.(secret.secret);
    const proven = destination.provenRecord?.(secret);
    if (proven) await recordAfterwards(bench, lease, { destination: { ...proven } });
    await bench.clock.finishing(() => destination.deliver(secret));
  } catch (error) {
    throw withRequestId(await keepUndelivered(delivery, secret, { isKept, learned, error }), requestId);
  }
  await settleDelivered(delivery, learned, secret.kind === "access_key" ? isKept : undefined);
}

/**
 * A file and a profile can be looked at after a crash. Standard output and a command leave nothing to look at: a copy
 * left for `claim` keeps a client, whose secret somebody may have, from being taken for lost. A key has no receipt to
 * ask for, so its secret is kept in every case.
 */
function needsCopy({ destination }: Entry, { kind }: OneTimeSecret): boolean {
  return kind === "access_key" || (destination?.kind !== "file" && destination?.kind !== "profile");
}

async function keepMeanwhile({ bench, lease }: SecretDelivery, secret: OneTimeSecret): Promise<boolean> {
  try {
    await bench.secrets.keep(lease.entry.id, secret);
    return true;
  } catch (error) {
    if (secret.kind === "oauth_client") bench.disk.markFailed(reasonOf(error));
    bench.tell.warn(`No copy of the secret could be kept before its delivery (${reasonOf(error)})`);
    return false;
  }
}

async function keepUndelivered(
  { bench, lease }: SecretDelivery,
  secret: OneTimeSecret,
  how: { readonly isKept: boolean; readonly learned: Partial<EntryProgress>; readonly error: unknown },
): Promise<Failure> {
  const refusal = how.isKept ? undefined : await whyNotKept(bench, lease.entry.id, secret);
  await recordAfterwards(bench, lease, {
    ...how.learned,
    state: refusal === undefined ? "undelivered" : "secret_lost",
  });
  if (refusal === undefined) return undelivered(lease.entry, how.error);
  return new Failure("secret_lost", texts[secret.kind].neither(reasonOf(how.error), refusal), {
    ...detailsOf(lease.entry),
    hint: nextStep(lease.entry) ?? undefined,
  });
}

/** A copy may be whole although its last step failed. */
async function whyNotKept({ secrets }: Workbench, entry: string, secret: OneTimeSecret): Promise<string | undefined> {
  try {
    await secrets.keep(entry, secret);
    return undefined;
  } catch (error) {
    const kept = await secrets.readKept(entry).catch(() => undefined);
    return kept?.secret === secret.secret ? undefined : reasonOf(error);
  }
}

/**
 * Records a secret that is at its destination as done, and destroys the copy.
 * @throws Failure `unusable` if what it opens is not what was asked for: that is not done
 */
export async function settleDelivered(
  delivery: Omit<SecretDelivery, "destination">,
  learned: Partial<EntryProgress>,
  isKept?: boolean,
): Promise<void> {
  const state = settledState(learned.detail ?? delivery.lease.entry.detail);
  await recordAfterwards(delivery.bench, delivery.lease, { ...learned, state, last_error: null });
  await destroyCopy(delivery, isKept);
  assertAsAsked(delivery.lease.entry);
}

export function settledState({ differs }: Entry["detail"]): "done" | "unusable" {
  return differs === undefined ? "done" : "unusable";
}

/** @throws Failure `unusable` if the receipt of the entry showed something else than was asked for */
export function assertAsAsked(entry: Entry): void {
  const { detail, state, resource_id } = entry;
  if (detail.differs === undefined || state !== "unusable") return;
  const noun = kindOf(entry) === "oauth_client" ? "client" : "key";
  throw new Failure("unusable", `The ${noun} ${resource_id ?? ""} is not what was asked for: ${detail.differs}.`, {
    ...detailsOf(entry),
    meaning: `Nothing was revoked, and a secret that came is where it was to go. Do not use this ${noun} before you know why the service answered so.`,
    hint: `Ask whoever runs the service with the request id, then revoke this ${noun} or keep it.`,
  });
}

/**
 * Destroys the copy that is kept here, once the journal says that nobody needs it: a crash leaves one too many, never
 * none. If the journal could not say so, the copy is what tells recovery that the secret is not lost.
 */
export async function destroyCopy(
  { bench, lease }: Omit<SecretDelivery, "destination">,
  isKept?: boolean,
): Promise<void> {
  const { entry } = lease;
  if (!isSettled(entry.state)) return;
  try {
    if (isKept ?? bench.secrets.isKept(entry.id)) await bench.secrets.destroyKept(entry.id);
  } catch (error) {
    bench.tell.warn(`${texts[kindOf(entry)].copyStays} (${reasonOf(error)})`);
  }
}

/** The failure of work whose secret waits on this machine (exit 12). */
export function undelivered(entry: Entry, because: unknown): Failure {
  const kind = kindOf(entry);
  const profile = entry.destination?.kind === "profile" ? ` --secret-profile ${entry.destination.name}` : "";
  const claim = `integ journal claim ${entry.id}${profile}`;
  return new Failure("undelivered", `${texts[kind].undelivered}: ${reasonOf(because)}`, {
    ...detailsOf(entry),
    meaning: texts[kind].untilClaimed,
    hint: kind === "access_key" ? claim : (nextStep(entry) ?? undefined),
  });
}

/**
 * The failure of a client or key that exists and whose secret cannot be had (exit 9).
 * @param requestId of the answer that showed it without the secret, if that came just now
 */
export function secretLost(entry: Entry, requestId?: string): Failure {
  if (entry.detail.made_before === true) return withRequestId(notLostHere(entry), requestId);
  const noun = kindOf(entry) === "oauth_client" ? "client" : "key";
  const wayOut =
    entry.operation === "access_key.rotate"
      ? "rotate the key again."
      : `revoke this ${noun} and create another in its place.`;
  const failure = new Failure(
    "secret_lost",
    `The ${noun} ${entry.resource_id ?? ""} exists, and its one-time secret is lost.`,
    {
      ...detailsOf(entry),
      meaning: `The API never shows a secret twice. The way out: ${wayOut}`,
      hint: nextStep(entry) ?? undefined,
    },
  );
  return withRequestId(failure, requestId);
}

/** The failure of a client that is older than the first request of its entry: whoever made it has its secret. */
function notLostHere(entry: Entry): Failure {
  return new Failure("secret_lost", `The client ${entry.resource_id ?? ""} was made before, with the same key.`, {
    ...detailsOf(entry),
    meaning:
      "Its secret was shown then, and is not lost here: somebody may be using it. Nothing is revoked for --yes alone.",
    hint: nextStep(entry) ?? undefined,
  });
}

/**
 * Finishes a delivery that a crash interrupted, at the destination that the entry remembers.
 * @returns true if the secret is there now
 * @throws Failure if that destination cannot be looked at: the secret may be there
 */
export async function completeDelivery(bench: Workbench, entry: Entry): Promise<boolean> {
  const { operation, resource_id } = entry;
  const record = entry.destination;
  if (!record) return false;
  if (kindOf(entry) === "oauth_client")
    return bench.secrets.completeDelivery(record, { clientId: entry.detail.client_id ?? undefined });
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
  if ((state !== "undelivered" && state !== "secret_lost") || resource_id === null) return false;
  if (await completeDelivery(bench, lease.entry)) {
    await lease.record({ state: settledState(lease.entry.detail), last_error: null });
    await bench.secrets.destroyKept(id);
    assertAsAsked(lease.entry);
    return true;
  }
  // A copy goes only after `done` is recorded: one that is missing went with its folder, and nobody can claim it.
  assertNotElsewhere(bench, lease.entry);
  const found = bench.secrets.isKept(id) ? "undelivered" : "secret_lost";
  if (state !== found) await lease.record({ state: found });
  if (found === "undelivered") throw undelivered(lease.entry, "an earlier run could not reach its destination.");
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
    meaning: `Nothing was sent. Claim it there; if that folder is gone for good: integ journal forget ${entry.id}`,
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
    throw undelivered(lease.entry, "it waits to be claimed.");
  try {
    return await finishKeyDelivery(delivery, prove);
  } finally {
    await releaseReserved(bench, lease.entry, destination);
  }
}

/** As `resumeDelivery`, of an entry that is not `undelivered`. */
export async function finishKeyDelivery(
  delivery: SecretDelivery,
  prove?: (secret: string) => Promise<void>,
): Promise<boolean> {
  const { bench, lease, destination } = delivery;
  const isKept = bench.secrets.isKept(lease.entry.id);
  if (await completeDelivery(bench, lease.entry)) {
    // The copy knows whose secret it is, if the crash came before the journal did.
    const kept = isKept ? await bench.secrets.readKept(lease.entry.id).catch(() => undefined) : undefined;
    await settleDelivered(delivery, learnedOfKey(lease.entry, kept?.id ?? ""), isKept);
    return true;
  }
  if (!isKept) return false;
  const secret = await bench.secrets.readKept(lease.entry.id);
  if (destination.isStdout) {
    await recordAfterwards(bench, lease, { state: "undelivered", resource_id: secret.id || lease.entry.resource_id });
    throw undelivered(lease.entry, "an earlier run ended before it could say that it arrived.");
  }
  const record = await reserveDestination(bench, lease, { destination, isKept: true });
  await lease.record({ destination: { ...record } });
  await deliverSecret(delivery, secret, { prove, learned: learnedOfKey(lease.entry, secret.id) });
  return true;
}

/** What an answer with a key says of the entry. */
export function learnedOfKey(entry: Entry, id: string, detail: Entry["detail"] = {}): Partial<EntryProgress> {
  return { resource_id: id || entry.resource_id, detail: { ...entry.detail, ...detail, in_flight: false } };
}

/**
 * Keeps a secret from an answer that was cut or breaks the contract, before anything else is done: the service gave it,
 * and never shows it again.
 * @returns the id that it seems to belong to, and why it could not be kept
 */
export async function keepStray(
  { bench, lease }: Omit<SecretDelivery, "destination">,
  { secret, text }: Salvage,
): Promise<{ readonly id: string; readonly refusal?: string }> {
  const kind = kindOf(lease.entry);
  const { id = "", clientId } =
    kind === "oauth_client" ? readableIds(text) : { id: lease.entry.resource_id ?? firstIdIn(text) };
  const receipt = kind === "oauth_client" ? text : JSON.stringify(id === "" ? { secret } : { id, secret });
  try {
    await bench.secrets.keep(lease.entry.id, { secret, kind, id, clientId, receipt });
    return { id };
  } catch (error) {
    return { id, refusal: reasonOf(error) };
  }
}

function firstIdIn(text: string): string | undefined {
  return /"id"\s*:\s*"([^"\\]{1,200})"/.exec(text)?.[1];
}
