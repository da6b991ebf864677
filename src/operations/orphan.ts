// Searches the list for the key of a creation whose outcome is unknown. The rules are in api/orphan-key.ts.
import { type AccessKey, type AccessKeyRequest, readAccessKey } from "../api/access-keys.ts";
import { findOrphan, namesakesIn, type Search, settleMs, type Criteria } from "../api/orphan-key.ts";
import type { Rows } from "../api/json/unknown-list.ts";
import { Failure } from "../errors.ts";
import { type Entry, mayHaveArrived, wasClaimed, otherPlaces, startedAt, clockSkewMs } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { CreationWork, Outcome } from "./creation.ts";
import { learnedOfKept, deliveryEvidence, settleDelivered } from "./secret-delivery.ts";
import { readUntilAnswered, wait } from "./sending.ts";
import { entryFailure, outcomeUnknown, recordOrWarn, serviceTime, type Workbench } from "./workbench.ts";
import { hasHolder } from "../journal/rotations.ts";
import { type Advice, type NextStep, shell } from "../next-step.ts";

export function requestIn({ request_text }: Entry): AccessKeyRequest {
  return JSON.parse(request_text) as AccessKeyRequest;
}

/** @returns other unfinished creations of the same name, which may have created the key instead */
async function creationsOfSameName({ journal }: Workbench, entry: Entry): Promise<Entry[]> {
  const isSame = ({ id, base_url, operation, resource_id }: Entry): boolean =>
    id !== entry.id && resource_id === null && base_url === entry.base_url && operation === entry.operation;
  const others = (await journal.unsettled()).filter((other) => isSame(other) && mayHaveArrived(other));
  return others.filter((other) => requestIn(other).name === requestIn(entry).name);
}

/** Soon after the request, a key may still be missing from the list, so the search is repeated once if `waitMs` allows it. */
export async function searchOrphan({ bench, lease: { entry }, waitMs = 0 }: CreationWork): Promise<Search> {
  const rows = await listedKeys(bench);
  const sought = await searchCriteria(bench, entry, rows);
  const first = findOrphan(rows, sought, serviceTime(bench));
  const settledAt = sought.sentUntil + settleMs;
  const waitFor = settledAt - serviceTime(bench);
  if (first.kind !== "none" || waitFor <= 0 || waitFor > waitMs) return first;
  await wait(bench, waitFor, "The key is not in the list. Looking again, since the request was sent a moment ago");
  // The wait has passed `settledAt`, even if the clock was set back meanwhile.
  const askedAt = Math.max(settledAt, serviceTime(bench));
  return findOrphan(await listedKeys(bench), sought, askedAt);
}

function listedKeys(bench: Workbench): Promise<Rows> {
  const { account } = bench;
  const where = `profile ${account.profile} (${account.region})`;
  return readUntilAnswered(bench, () => account.service.accessKeys.list(), { what: "list access keys", where });
}

async function searchCriteria(bench: Workbench, entry: Entry, rows: Rows): Promise<Criteria> {
  const request = requestIn(entry);
  const { clock_offset_ms: offset } = entry;
  const isClockKnown = offset !== null && Math.abs(offset) <= clockSkewMs;
  return {
    request,
    marked: entry.detail.marked === true,
    createdAfter: startedAt(entry),
    // With a wrong or unchecked clock, the request may be later than its recorded time.
    sentUntil: isClockKnown ? lastSentAt(entry) : Math.max(lastSentAt(entry), serviceTime(bench)),
    isClockKnown,
    skewMs: clockSkewMs,
    userId: await knownCreator(bench, entry),
    knownIds: await idsOfOtherEntries(bench, entry, namesakesIn(rows, request)),
    ownId: bench.account.keyId,
  };
}

const maxCreations = 100;

async function knownCreator({ journal }: Workbench, { id, base_url, profile_id }: Entry): Promise<string | undefined> {
  const creations = { all: true, operation: "access_key.create", limit: maxCreations, trusted: true } as const;
  for (const other of await journal.select(creations)) {
    const isOurs = other.id !== id && other.base_url === base_url && other.profile_id === profile_id;
    if (isOurs && typeof other.detail.created_by === "string") return other.detail.created_by;
  }
  return undefined;
}

/** @returns ids of keys of other entries. The parent rotation counts only for its old key: its new key is this entry's. */
async function idsOfOtherEntries(
  { journal, secrets }: Workbench,
  { id, parent, base_url }: Entry,
  keys: readonly AccessKey[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  // After a crash, only the kept secret may name the key.
  for (const other of keys.length === 0 ? [] : await journal.unsettled())
    if (other.id !== id && secrets.isKept(other.id)) known.add((await secrets.readKept(other.id)).id);
  for (const key of keys) {
    if (key.id === undefined) continue;
    const entries = await journal.select({ all: true, resource: key.id });
    const belongsToOther = ({ id: other, detail, base_url: at }: Entry): boolean =>
      at === base_url && other !== id && (other !== parent || detail.old_key === key.id);
    if (entries.some(belongsToOther)) known.add(key.id);
  }
  return known;
}

/** @returns the latest time at which a request may have been in progress, by the service's clock, in ms since 1970 */
function lastSentAt({ state, detail, updated_at, created_at, clock_offset_ms }: Entry): number {
  const sent = Date.parse(detail.sent_at ?? "");
  const seen = state === "unknown" ? Date.parse(updated_at) : Number.NaN;
  const last = Math.max(...[sent, seen, Date.parse(created_at)].filter((time) => !Number.isNaN(time)));
  return last + (clock_offset_ms ?? 0);
}

export async function settleSearch({ bench, lease }: CreationWork, search: Search): Promise<Outcome | undefined> {
  const { entry } = lease;
  switch (search.kind) {
    case "several":
      throw uncertain(entry, `${search.keys.length} keys match the request: ${search.keys.map(keyLabel).join("; ")}.`, {
        meaning: "Nothing was revoked: integ cannot determine which of them this creation made.",
        hint: "Revoke the one that is not in use with integ keys revoke, then stop tracking this change.",
      });
    case "used": {
      const message = `The key ${keyLabel(search.key)} matches the request, and it has been used: its secret is in use.`;
      const meaning = "Nothing was revoked. If its secret reached you, the work is done.";
      throw uncertain(entry, message, { meaning });
    }
    case "none":
      return settleNoneFound(bench, lease, search.doubts);
    case "one":
      return settleOrphanFound(bench, lease, search);
  }
}

/** Records the key of a delivered secret. @throws Failure unless it has this creation's mark: nothing else is certain */
export async function identifyKey({ bench, lease }: CreationWork, search: Search): Promise<void> {
  const { entry } = lease;
  const key = search.kind === "one" || search.kind === "used" ? search.key : undefined;
  if (key?.id !== undefined && entry.detail.marked === true)
    return settleDelivered({ bench, lease }, await learnedOfKept(bench, entry, key.id));
  if (search.kind === "none" && search.doubts.length === 0) {
    await recordOrWarn(bench, lease, { state: "unusable", last_error: null });
    throw entryFailure(entry, "unusable", `The key of ${entry.id} was delivered, and is not in the list any more.`, {
      meaning: "Nothing was sent, and integ creates no replacement. If you still need one, create it.",
    });
  }
  const keys = search.kind === "several" ? search.keys : key === undefined ? [] : [key];
  const fits = keys.length === 0 ? "none in the list fits" : `these fit: ${keys.map(keyLabel).join("; ")}`;
  const message = `The secret of ${entry.id} was delivered, and it is not certain which key it opens: ${fits}.`;
  throw uncertain(entry, message, {
    meaning: "Nothing was sent or revoked, and no second key is created.",
    hint: "Revoke a key that no one uses with integ keys revoke. If the delivered secret works, the work is done: stop tracking it.",
  });
}

async function settleOrphanFound(
  bench: Workbench,
  lease: EntryLease,
  { key, certain }: Extract<Search, { kind: "one" }>,
): Promise<undefined> {
  if (!certain) await assertNoOtherMaker(bench, lease.entry, key);
  const detail = { ...lease.entry.detail, in_flight: false, orphan_certain: certain };
  // If this record fails, the work ends here: nothing was changed, and a later run searches again.
  await lease.record({ state: "secret_lost", resource_id: key.id, last_error: null, detail });
  const found = certain
    ? `Found the key ${key.id}: its name has the mark of this creation.`
    : `Found the key ${keyLabel(key)}: the only unused key with that name from that time.`;
  bench.tell.note(found);
}

async function assertNoOtherMaker(bench: Workbench, entry: Entry, key: AccessKey): Promise<void> {
  const { journal, secrets } = bench;
  const others = await creationsOfSameName(bench, entry);
  const mayBeOf = (id: string, why: string, hint: Advice): Failure =>
    uncertain(entry, `The key ${keyLabel(key)} matches the request, and may be of ${id} instead.`, {
      meaning: `Nothing was revoked: ${why}.`,
      hint,
      nextCommand: undefined,
    });
  for (const { id } of others)
    if (await hasHolder(journal, id))
      throw mayBeOf(id, `a running process works on ${id}`, "Run the command again when that has ended.");
  // Another process may have recorded this key since the list was read.
  const made = await journal.select({ all: true, resource: key.id, operation: entry.operation });
  const known = made.find(({ id, base_url }) => id !== entry.id && base_url === entry.base_url);
  if (known) throw mayBeOf(known.id, `${known.id} has finished meanwhile`, "Run the command again.");
  // A delivered entry without a key id may have created this key.
  const unknown = "Revoke the key with integ keys revoke if no one uses it.";
  for (const one of others)
    if (wasClaimed(one) || (await deliveryEvidence(bench, one)) !== undefined)
      throw mayBeOf(one.id, `the secret of ${one.id} was delivered, and its key is not known`, unknown);
  const elsewhere = others.find((one) => otherPlaces(one, secrets).length > 0 && !secrets.isKept(one.id));
  if (elsewhere === undefined) return;
  const places = otherPlaces(elsewhere, secrets).join(", ");
  const why = `${elsewhere.id} was requested in ${places}, and its secret may be kept there`;
  throw mayBeOf(elsewhere.id, why, "Run integ journal recover there.");
}

async function settleNoneFound(bench: Workbench, lease: EntryLease, doubts: readonly string[]): Promise<Outcome> {
  const { id, detail } = lease.entry;
  if (doubts.length > 0)
    throw uncertain(lease.entry, `No key of this creation was found, but that is not certain: ${doubts.join("; ")}.`, {
      meaning: "Nothing was sent or revoked. Try again later, or stop tracking the entry if you know the outcome.",
      nextCommand: shell`integ journal recover ${id}`,
    });
  await lease.record({ state: "refused", detail: { ...detail, in_flight: false } });
  bench.tell.note(
    "No key of that name is in the list: none was created. To create it, run the command that requested it again.",
  );
  return { kind: "nothing_made", entry: lease.entry };
}

function keyLabel({ id = "without id", name, createdAt }: AccessKey): string {
  return `${id} ("${name ?? ""}", created ${createdAt ?? "at an unknown time"})`;
}

/** The default next step is `forget`, because a person must decide. */
function uncertain(entry: Entry, message: string, step: NextStep & { readonly meaning: string }): Failure {
  const more = { nextCommand: shell`integ journal forget ${entry.id}`, ...step, recovers: undefined };
  return outcomeUnknown(entry, new Failure("outcome_unknown", message), more);
}

export async function assertUnused(bench: Workbench, lost: Entry): Promise<void> {
  const { rows } = await listedKeys(bench);
  const key = rows.map((row) => readAccessKey(row.value)).find((found) => found.id === lost.resource_id);
  if (typeof key?.lastUsedAt !== "string") return;
  const message = `The key ${keyLabel(key)} was used at ${key.lastUsedAt}: its secret is in use.`;
  throw entryFailure(lost, "secret_lost", message, {
    meaning: "Nothing was revoked. If its secret reached you, the work is done.",
    nextCommand: shell`integ journal forget ${lost.id}`,
  });
}
