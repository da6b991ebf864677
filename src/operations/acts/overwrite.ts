// The act `overwrite`: writes a secret to its destination. What it may replace depends on the content found there immediately
// before the write, if that can be read.
import { Failure, onFailure } from "../../errors.ts";
import {
  clockSkewMs,
  type Entry,
  isExpiredKey,
  mayBeSameOrganization,
  nextStep,
  revokedBy,
  rotatedBy,
} from "../../journal/entry.ts";
import { mayHaveSuperseded } from "../../journal/rotations.ts";
import type { EntryLease, Intent, Journal } from "../../journal/journal.ts";
import type { EntryFilter } from "../../journal/lookup.ts";
import { flags, shell } from "../../next-step.ts";
import {
  describeDestination,
  type Destination,
  type DestinationRecord,
  type Found,
  isAllowed,
  hasContentId,
  isLocal,
  isSamePlace,
  type MayReplace,
  type OneTimeSecret,
  placesOf,
  type SingleRecord,
  withoutLastNewline,
} from "../../secrets/destination.ts";
import { originOf, renderSecret } from "../../secrets/secret-format.ts";
import { type DeliveryBench, recordOrWarn } from "../workbench.ts";

export type Overwriting = Pick<DeliveryBench, "journal" | "secrets">;

export class AtDestination {
  readonly entry: string;
  /** The constructor is private, so that evidence exists only after a write or check that did not throw. */
  private constructor(entry: string) {
    this.entry = entry;
  }

  static async after(entry: string, write: () => Promise<void>): Promise<AtDestination> {
    await write();
    return new AtDestination(entry);
  }
}

export function overwrite(
  bench: DeliveryBench,
  lease: EntryLease,
  destination: Destination,
  secret: OneTimeSecret,
): Promise<AtDestination> {
  const may = permission(bench, lease);
  const record = async (at: DestinationRecord): Promise<void> => {
    await recordOrWarn(bench, lease, { destination: { ...withEvidence(at, lease.entry.destination) } });
  };
  return AtDestination.after(lease.entry.id, async () => {
    await assertAllowed(bench, lease, placesOf(destination.record));
    await destination.deliver(secret, { origin: originOf(lease.entry), record, may });
  });
}

/** Adds the proof and the consent that the journal has for the same place, unless the new record has its own. */
function withEvidence<Place extends DestinationRecord>(record: Place, before: DestinationRecord | null): Place {
  if (record.kind === "several")
    return { ...record, places: record.places.map((one) => ({ ...one, at: withEvidence(one.at, before) })) };
  const earlier = placesOf(before).find((place) => isSamePlace(place, record));
  if (earlier === undefined || earlier.kind === "stdout") return record;
  const { proof, consent } = earlier;
  const hasConsent = "consent" in record && record.consent !== undefined;
  // An explicit `proof: undefined` means that the delivery wrote nothing.
  return { ...record, ...(proof && !("proof" in record) && { proof }), ...(!hasConsent && consent && { consent }) };
}

/** Completes the rename of a written file after a crash. @returns true if the place has the secret */
export async function isAt(bench: Overwriting, entry: Entry, record: SingleRecord): Promise<boolean> {
  if (isLocal(record) && !isOfMachine(record, bench)) return false;
  return bench.secrets.completeDelivery(await withProof(bench, entry, record), permission(bench, { entry }));
}

export type Seen = "there" | "missing" | "unverified";

interface Looking {
  readonly isActive: (id: string) => Promise<boolean>;
  /** Needed to run a command's check, because the journal does not store commands. */
  readonly destination?: Destination | undefined;
}

/** @returns `there` also for an active later secret of the same item. @throws Failure if a command's check fails */
export async function seenAt(
  bench: Overwriting,
  entry: Entry,
  record: SingleRecord,
  { isActive, destination }: Looking,
): Promise<Seen> {
  const later = (await entriesOfItem(bench.journal, entry)).filter(({ id }) => id > entry.id);
  const ofKey = await bench.journal.select({ all: true, resource: entry.resource_id ?? "" });
  const isOutdated = ofKey.some((one) => one.id > entry.id && mayHaveSuperseded(one, entry.resource_id));
  const text = await shownBy(destination, entry, record);
  if (text !== undefined) {
    const isShown = (place: SingleRecord): boolean =>
      hasContentId({ is: "text", text }, proofOf(place), bench.journal.digests);
    const holders = [entry, ...later].filter((one) => placesOf(one.destination).some(isShown));
    for (const { id, resource_id } of holders)
      if (id === entry.id ? !isOutdated : await isActive(resource_id ?? "")) return "there";
    return "missing";
  }
  if (!isOutdated) {
    if (record.kind === "command" || (isLocal(record) && !isOfMachine(record, bench))) return "unverified";
    const known = await withProof(bench, entry, record);
    const proof = proofOf(known);
    if (proof === undefined || isWeak(proof)) return "unverified";
    if (await isAt(bench, entry, known)) return "there";
  }
  for (const { destination, resource_id } of later)
    for (const place of placesOf(destination).filter((one) => isSameHere(one, record)))
      if ((await bench.secrets.reread(place)) !== undefined && (await isActive(resource_id ?? ""))) return "there";
  return "missing";
}

/** @returns the output of a command's check that prints the secret, else undefined. @throws Failure if the check fails */
async function shownBy(
  destination: Destination | undefined,
  entry: Entry,
  at: SingleRecord,
): Promise<string | undefined> {
  if (at.kind !== "command" || at.proof === undefined) return undefined;
  const { resource_id, detail } = entry;
  const about = { id: resource_id ?? "", clientId: detail.client_id ?? undefined, origin: originOf(entry) };
  return destination?.shownBy?.(at, about);
}

export async function secretShownBy(
  bench: Overwriting,
  entry: Entry,
  destination: Destination,
): Promise<string | undefined> {
  for (const place of placesOf(entry.destination)) {
    const text = await shownBy(destination, entry, place).catch(onFailure(() => undefined));
    if (text !== undefined && hasContentId({ is: "text", text }, proofOf(place), bench.journal.digests))
      return withoutLastNewline(text);
  }
  return undefined;
}

/** A proof `after <version>` names the version before the write: the version after the write is not known. */
const isWeak = (proof: string): boolean => proof.startsWith("after ");

/** Without a recorded proof, the kept secret's digest identifies the content. */
async function withProof({ journal, secrets }: Overwriting, entry: Entry, record: SingleRecord): Promise<SingleRecord> {
  if (record.kind === "stdout" || record.proof || !secrets.isKept(entry.id)) return record;
  const kept = await secrets.readKept(entry.id).catch(() => undefined);
  if (kept === undefined) return record;
  const text = renderSecret(kept, record.kind === "file" ? record.as : "raw", originOf(entry));
  return { ...record, proof: journal.digests.of(withoutLastNewline(text)) };
}

/** Refuses before the request, if possible, so that no request returns a secret that cannot be delivered. */
export async function prepareOverwrite(
  bench: Overwriting,
  lease: EntryLease,
  destination: Destination,
  preparation: { readonly before: DestinationRecord | null; readonly isKept: boolean },
): Promise<DestinationRecord> {
  // Without a machine id, every machine would treat the recorded path as its own.
  bench.secrets.machine.make();
  const places = placesOf(destination.record);
  await assertAllowed(bench, lease, places);
  await assertFirst(bench, lease.entry, places);
  const record = await destination.prepare(lease.entry.id, { ...preparation, may: permission(bench, lease) });
  return withEvidence(record, lease.entry.destination);
}

/** @throws Failure if the entry's secret must not go to one of these places, whatever their content */
async function assertAllowed(bench: Overwriting, lease: EntryLease, places: readonly SingleRecord[]): Promise<void> {
  if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);
  const lists = (await bench.secrets.allowed?.(lease.entry.profile)) ?? [];
  for (const place of places) {
    const { name } = describeDestination(place);
    const limit = lists.find(({ list }) => !isAllowed(place, list));
    if (limit !== undefined)
      throw new Failure("usage", `The secret may not go to ${name}: ${limit.from} does not name it.`, {
        meaning: "Nothing was sent.",
        hint: "Name another destination, or ask the owner of that list to add this destination.",
      });
    // The place was opened on this machine, but the entry may record it for another machine.
    const asked = placesOf(lease.entry.destination);
    const named = [place, ...asked.filter((one) => isSamePlace(one, place))];
    if (isLocal(place) && !named.every((one) => isOfMachine(one, bench))) throw ofAnotherMachine(lease.entry.id, place);
    const isActing = place.kind === "profile" && place.profileId !== "" && place.profileId === lease.entry.profile_id;
    if (isActing && place.own !== true)
      throw new Failure("usage", `The secret would replace the credential of ${name}, as which this work acts.`, {
        meaning: "The profile keeps its credential.",
        hint: `Add ${flags.yes} if that is what you want, or name another profile.`,
      });
  }
}

/** @throws Failure if the parent or replaced entry of a new step is untrusted, or names one of the places on another machine */
export async function assertStepAllowed(
  bench: Overwriting,
  { parent = null, replaces = null }: Pick<Intent, "parent" | "replaces">,
  places: readonly SingleRecord[],
): Promise<void> {
  const above = await bench.journal.select({ all: true, ids: [parent, replaces].filter((id) => id !== null) });
  await assertTrusted(bench, above);
  for (const { id, destination } of above)
    for (const asked of placesOf(destination))
      if (places.some((one) => isSamePlace(one, asked)) && isLocal(asked) && !isOfMachine(asked, bench))
        throw ofAnotherMachine(id, asked);
}

export async function assertTrusted({ journal }: Pick<Overwriting, "journal">, entries: readonly Entry[]) {
  const [forged] = await journal.untrusted(entries.map(({ id }) => id));
  if (forged !== undefined) throw untrusted(forged);
}

/** A place without a machine id counts as this machine's: the state folder had no id when the place was recorded. */
function isOfMachine(place: SingleRecord, { secrets }: Pick<Overwriting, "secrets">): boolean {
  const id = "machine" in place ? place.machine : undefined;
  return id === undefined || id === secrets.machine.find();
}

export function ofAnotherMachine(id: string, place: SingleRecord): Failure {
  const { name } = describeDestination(place);
  return new Failure("usage", `The secret of ${id} goes to ${name} of another machine.`, {
    meaning: "Nothing was sent. What has the same name here is another place.",
    hint: `Recover it there, or run integ journal recover ${id} with ${flags.secretFile} and another path.`,
    recovers: id,
  });
}

export function untrusted(id: string): Failure {
  const message = `The entry ${id} is untrusted: a record of it was not signed with a key of this journal.`;
  return new Failure("auth", message, {
    entry: id,
    meaning: "Nothing was sent, and no secret goes where it says.",
    hint: `Look at what it asks for: integ journal show ${id}.`,
    nextCommand: shell`integ journal trust ${id}`,
  });
}

/** @throws Failure `pending` if an older unfinished entry of another item may still deliver to one of these places */
async function assertFirst({ journal }: Overwriting, entry: Entry, places: readonly SingleRecord[]): Promise<void> {
  const lasting = places.filter(({ kind }) => kind !== "stdout" && kind !== "command");
  if (lasting.length === 0) return;
  const isAmong = (place: SingleRecord): boolean => lasting.some((one) => isSameHere(one, place));
  const ahead = (await journal.unsettled()).filter(
    (other) => other.id < entry.id && mayDeliver(other) && placesOf(other.destination).some(isAmong),
  );
  if (ahead.length === 0) return;
  const own = new Set((await entriesOfItem(journal, entry)).map(({ id }) => id));
  const first = ahead.findLast(({ id }) => !own.has(id));
  if (first === undefined) return;
  const { name } = describeDestination(placesOf(first.destination).find(isAmong)!);
  throw new Failure("pending", `The secret of the unfinished entry ${first.id} goes to ${name}.`, {
    meaning: "Nothing was sent: the older entry is finished first, and its secret is not replaced.",
    hint: "Name another destination, or finish that entry first.",
    nextCommand: nextStep(first) ?? undefined,
  });
}

export function isSameHere(one: SingleRecord, other: SingleRecord): boolean {
  if (!isSamePlace(one, other)) return false;
  const [here, there] = [one, other].map((place) => ("machine" in place ? place.machine : undefined));
  return here === undefined || there === undefined || here === there;
}

function mayDeliver({ state, operation }: Entry): boolean {
  if (operation.endsWith(".revoke")) return false;
  return state === "open" || state === "unknown" || state === "pending" || state === "undelivered";
}

/** Permissions are cached, so that a retry does not read the journal again. */
export function permission(bench: Overwriting, lease: Pick<EntryLease, "entry">): MayReplace {
  const permitted = new Set<string>();
  return async (at, found) => {
    if (found.is === "absent") return;
    const key = JSON.stringify([describeDestination(at).name, found.is === "text" ? found.text : found.version]);
    if (permitted.has(key)) return;
    if (!(await isReplaceable(bench, lease.entry, at, found))) throw occupiedFailure(at);
    permitted.add(key);
  };
}

async function isReplaceable(
  bench: Overwriting,
  entry: Entry,
  at: SingleRecord,
  found: Exclude<Found, { is: "absent" }>,
): Promise<boolean> {
  const { journal } = bench;
  const isKnown = (known: string | undefined): boolean => hasContentId(found, known, journal.digests);
  // Two different commands may write to the same place, so the content's digest decides.
  const isThere = (place: SingleRecord): boolean =>
    isSameHere(place, at) || (place.kind === "command" && at.kind === "command");
  const ownPlaces = [await withProof(bench, entry, at), ...placesOf(entry.destination).filter(isThere)];
  const consentTo = (place: SingleRecord) => ("consent" in place ? place.consent : undefined);
  const isOwn = (place: SingleRecord, by: Entry) => isKnown(proofOf(place)) || mayBeOwnWrite(place, found, by);
  if (ownPlaces.some((place) => isOwn(place, entry))) return true;
  if (ownPlaces.some((place) => isKnown(consentTo(place)))) return true;
  const item = await entriesOfItem(journal, entry);
  if (at.kind === "command" && found.is === "hidden") return !(await isTaken(journal, { entry, item, at, found }));
  if (found.of !== undefined && replacedIds(item, entry).has(found.of)) return true;
  // For the replaced entry, an interrupted write and a consent count too, because this entry continues its work.
  const isWrite = (place: SingleRecord, by: Entry): boolean =>
    by.id === entry.replaces ? isOwn(place, by) || isKnown(consentTo(place)) : isKnown(proofOf(place));
  const isDelivered = (one: Entry): boolean =>
    one.id !== entry.id && placesOf(one.destination).some((place) => isThere(place) && isWrite(place, one));
  return item.some(isDelivered) || isRevoked(journal, isDelivered);
}

interface CommandContent {
  readonly entry: Entry;
  readonly item: readonly Entry[];
  readonly at: SingleRecord;
  readonly found: Extract<Found, { is: "hidden" }>;
}

/** True if the same command stored another item's secret at the same place, and that secret may still work. */
async function isTaken(
  journal: Journal,
  { entry, item, at, found: { differsBy = [] } }: CommandContent,
): Promise<boolean> {
  const own = new Set(item.map(({ id }) => id));
  const place = (one: Entry): string => JSON.stringify(differsBy.map((name) => originOf(one)[name]));
  const all = await journal.select({ all: true });
  const others = all.filter((one) => !own.has(one.id) && !isExpiredKey(one, entry));
  const isDelivered = (place: SingleRecord): boolean => isSamePlace(place, at) && proofOf(place) !== undefined;
  for (const one of others.filter((each) => place(each) === place(entry)))
    if (placesOf(one.destination).some(isDelivered) && !(await isRevokedBy(journal, all, one))) return true;
  return false;
}

/** True if a trusted entry has revoked a client or key whose secret was delivered to the place. */
async function isRevoked(journal: Journal, isDelivered: (entry: Entry) => boolean): Promise<boolean> {
  const all = await journal.select({ all: true, archived: true });
  for (const one of all.filter(isDelivered))
    if ((await isAnyTrusted(journal, [one])) && (await isRevokedBy(journal, all, one))) return true;
  return false;
}

async function isRevokedBy(journal: Journal, all: readonly Entry[], { resource_id }: Entry): Promise<boolean> {
  return isAnyTrusted(
    journal,
    all.filter((one) => resource_id !== null && revokedBy(one) === resource_id),
  );
}

async function isAnyTrusted(journal: Journal, entries: readonly Entry[]): Promise<boolean> {
  if (entries.length === 0) return false;
  const unknown = await journal.untrusted(entries.map(({ id }) => id));
  return entries.some(({ id }) => !unknown.has(id));
}

const proofOf = (place: SingleRecord): string | undefined => ("proof" in place ? place.proof : undefined);

/** True if this entry probably changed the write-only store: after it recorded its write, and not long after its last record. */
function mayBeOwnWrite(place: SingleRecord, found: Found, { updated_at }: Entry): boolean {
  const proof = proofOf(place);
  if (found.is !== "hidden" || isLongAfter(found.version, updated_at)) return false;
  return proof !== undefined && isWeak(proof) && proof !== `after ${found.version}`;
}

/** GitHub's version of a secret is the time of its last change. */
const isLongAfter = (version: string, time: string): boolean => Date.parse(version) > Date.parse(time) + clockSkewMs;

/** @returns the entry with all trusted ones of its account that are linked to it by item, parent, replacement, client or key */
async function entriesOfItem(journal: Journal, entry: Entry): Promise<readonly Entry[]> {
  const read = (filter: EntryFilter): Promise<Entry[]> => journal.select({ ...filter, all: true, trusted: true });
  const found = new Map([[entry.id, entry]]);
  const visited = new Set<string>();
  const isSameAccount = ({ base_url, organization_id }: Entry): boolean =>
    base_url === entry.base_url && mayBeSameOrganization(organization_id, entry.organization_id);
  let next: readonly Entry[] = [entry];
  while (next.length > 0) {
    const ids = new Set<string>();
    const resources = new Set<string>();
    for (const one of next) {
      for (const id of [one.parent, one.replaces, one.replaced_by]) if (id !== null) ids.add(id);
      for (const id of [one.resource_id, rotatedBy(one)]) if (id) resources.add(id);
    }
    const item = next.includes(entry) ? entry.policy?.item : undefined;
    const related: Entry[] = [];
    const missing = [...ids].filter((id) => !found.has(id) && !visited.has(id));
    if (missing.length > 0) related.push(...(await read({ ids: missing })));
    for (const resource of resources) if (!visited.has(resource)) related.push(...(await read({ resource })));
    if (item !== undefined) related.push(...(await read({ item })).filter((one) => isSameItem(one, entry)));
    for (const id of [...missing, ...resources]) visited.add(id);
    next = related.filter((one) => !found.has(one.id) && isSameAccount(one));
    for (const one of next) found.set(one.id, one);
  }
  return [...found.values()];
}

/** Items of different policies, organizations or kinds of credentials may have the same name. */
function isSameItem(one: Entry, other: Entry): boolean {
  // A profile may have got its organization id between the two.
  const isSameProfile = other.profile_id && one.profile_id === other.profile_id;
  if (one.organization_id !== other.organization_id && !isSameProfile) return false;
  const isSameKind = one.operation.split(".")[0] === other.operation.split(".")[0];
  return (one.policy?.id ?? null) === (other.policy?.id ?? null) && isSameKind;
}

function replacedIds(item: readonly Entry[], entry: Entry): ReadonlySet<string> {
  const above = item.filter(({ id }) => id === entry.id || id === entry.parent || id === entry.replaces);
  const ids = new Set<string>();
  for (const one of above)
    for (const old of [rotatedBy(one), one.id === entry.replaces ? one.resource_id : undefined]) if (old) ids.add(old);
  for (const { resource_id, detail } of item)
    if (resource_id !== null && ids.has(resource_id) && detail.client_id) ids.add(detail.client_id);
  return ids;
}

function occupiedFailure(at: SingleRecord): Failure {
  const { name } = describeDestination(at);
  const isChecked = at.kind === "command" && at.check === "output";
  const why =
    at.kind === "file"
      ? "the file already exists"
      : at.kind === "command" && !isChecked
        ? "the same command got the secret of another client or key"
        : `integ did not deliver ${isChecked ? "what its check prints" : "its current content"} for this client or key`;
  const what = at.kind === "profile" ? `become the credential of ${name}` : `go to ${name}`;
  return new Failure("usage", `The secret cannot ${what}: ${why}.`, {
    meaning: "Its content was not replaced.",
    hint: `Name another ${at.kind === "file" ? "file" : "destination"}, or add ${flags.force} to replace its current content.`,
    nextCommand: { add: [flags.force] },
  });
}
