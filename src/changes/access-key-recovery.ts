// Owns: settling a creation of an access key whose outcome is unknown: the secret looked for on this machine first, then
// the key in the list; an orphan is revoked and another made in its place, or stays with its secret lost, as the person
// says.
// Must not know: flags, terminals, files. Which key is the orphan: access-key-orphan.ts.
import { type AccessKey, type AccessKeyRequest, checkAccessKey, readAccessKey } from "../api/access-keys.ts";
import type { Rows } from "../api/json/unknown-list.ts";
import { retryRead } from "../api/http/retry.ts";
import { Failure } from "../errors.ts";
import { isSettled, type Entry } from "../journal/entry.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import type { Destination } from "../secrets/destination.ts";
import { admitCreation, driveKeyCreation, type KeyCreated } from "./access-key-creation.ts";
import { findOrphan, type Search, settleMs, type Sought } from "./access-key-orphan.ts";
import { lastSentAt, mayHaveArrived } from "./access-key-posting.ts";
import { finishDelivery, keptHere, mayDeliverAgain, noteLostCopy, secretLost } from "./access-key-secret.ts";
import { untilKeyRevoked } from "./access-key-revocation.ts";
import { wait } from "./trying-again.ts";
import { detailsOf, giveBack, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";

export interface KeyRecoveryOptions {
  readonly destination: Destination;
  /** Asked before an orphan is revoked and another key made; no means that nothing is revoked. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
  /** How long may be waited before the list is believed, milliseconds; 0: not at all. */
  readonly waitMs: number;
  readonly prove?: (secret: string) => Promise<void>;
}

/** How a creation ended: with its secret in its place, or with nothing made for certain. */
export type KeyEnd =
  | { readonly kind: "home"; readonly entry: Entry; readonly created?: KeyCreated }
  | { readonly kind: "nothing_made"; readonly entry: Entry };

/**
 * Brings an unfinished creation to its end.
 * @throws Failure: `outcome_unknown` where it cannot be told, `secret_lost` where the person did not say yes,
 * `undelivered` where the secret is kept here
 */
export async function recoverKeyCreation(
  bench: Workbench,
  drive: EntryLease,
  options: KeyRecoveryOptions,
): Promise<KeyEnd> {
  const { destination } = options;
  await noteLostCopy(bench, drive);
  if (!mayDeliverAgain(drive.entry)) throw keptHere(drive.entry, "it waits to be claimed.");
  try {
    if (await finishDelivery({ bench, drive, destination }, options)) return { kind: "home", entry: drive.entry };
  } finally {
    await giveBack(bench, drive.entry.id, destination);
  }
  if (drive.entry.state !== "secret_lost") {
    if (!mayHaveArrived(drive.entry)) {
      checkAccessKey(JSON.parse(drive.entry.request_text) as AccessKeyRequest, bench.clock.now());
      const created = await driveKeyCreation(bench, drive, options);
      return { kind: "home", entry: created.entry, created };
    }
    const settled = await settle(bench, drive, await searchOrphan(bench, drive.entry, options.waitMs));
    if (settled) return settled;
    // A profile that took the key's secret before a crash names the key.
    if (await finishDelivery({ bench, drive, destination }, options)) return { kind: "home", entry: drive.entry };
  }
  return replaceOrphan(bench, drive, options);
}

/** Reads the list, and once more where it was too early to believe that the key is not there. */
async function searchOrphan(bench: Workbench, entry: Entry, waitMs: number): Promise<Search> {
  const sought = await soughtOf(bench, entry);
  const first = await look(bench, sought);
  const waitFor = sought.sentUntil + settleMs - bench.clock.now();
  if (first.kind !== "none" || waitFor <= 0 || waitFor > waitMs) return first;
  await wait(bench, waitFor, "The key is not in the list. Looking again, since the request was sent a moment ago");
  return look(bench, sought);
}

async function look(bench: Workbench, sought: Sought): Promise<Search> {
  const askedAt = bench.clock.now();
  return findOrphan(await listKeys(bench), sought, askedAt);
}

async function listKeys(bench: Workbench): Promise<Rows> {
  const { value } = await retryRead(() => bench.account.service.accessKeys.list(), {
    what: "list access keys",
    where: `profile ${bench.account.profile} (${bench.account.region})`,
    retryForMs: bench.retryForMs,
    clock: bench.clock,
    random: () => bench.clock.random(),
    signal: bench.clock.interruption,
  });
  return value;
}

async function soughtOf(bench: Workbench, entry: Entry): Promise<Sought> {
  const others = (await bench.journal.entries()).filter(
    (other) => other.id !== entry.id && other.base_url === entry.base_url,
  );
  const ids = others.flatMap((other) => [other.resource_id, other.detail.key_id, other.detail.old_key]);
  const ours = others.find(
    (other) => other.profile_id === entry.profile_id && typeof other.detail.created_by === "string",
  );
  return {
    request: JSON.parse(entry.request_text) as AccessKeyRequest,
    marked: entry.detail.marked === true,
    madeAfter: Date.parse(entry.created_at),
    sentUntil: lastSentAt(entry),
    userId: ours === undefined ? undefined : String(ours.detail.created_by),
    knownIds: new Set(ids.filter((id) => typeof id === "string")),
    ownId: bench.account.keyId,
  };
}

/** What the search came to, in the journal. @returns nothing where there is an orphan to be replaced */
async function settle(bench: Workbench, drive: EntryLease, search: Search): Promise<KeyEnd | undefined> {
  const { entry } = drive;
  switch (search.kind) {
    case "several":
      throw told(entry, `${search.keys.length} keys fit what was sent: ${search.keys.map(named).join("; ")}.`, {
        meaning: "Nothing was revoked: nobody can tell which of them is the orphan.",
        hint: `integ keys revoke <id> for the one that nobody uses, then integ journal forget ${entry.id}`,
      });
    case "used":
      throw told(
        entry,
        `The key ${named(search.key)} fits what was sent, and it has been used: somebody has its secret.`,
        {
          meaning: "Nothing was revoked. If its secret reached you, the work is done.",
          hint: `integ journal forget ${entry.id}`,
        },
      );
    case "none":
      return noneFound(bench, drive, search.doubts);
    case "one":
      return oneFound(bench, drive, search);
  }
}

async function oneFound(
  bench: Workbench,
  drive: EntryLease,
  { key, certain }: Extract<Search, { kind: "one" }>,
): Promise<undefined> {
  const detail = { ...drive.entry.detail, in_flight: false, orphan_certain: certain };
  await recordAfterwards(bench, drive, { state: "secret_lost", resource_id: key.id, last_error: null, detail });
  bench.tell.note(
    certain
      ? `Found the key ${key.id}: it carries the mark of this creation.`
      : `Found the key ${named(key)}: the only one of that name, made then, that nobody has used.`,
  );
}

async function noneFound(bench: Workbench, drive: EntryLease, doubts: readonly string[]): Promise<KeyEnd> {
  if (doubts.length > 0)
    throw told(
      drive.entry,
      `No key was found that this creation made, and that is not certain: ${doubts.join("; ")}.`,
      {
        meaning: "Nothing was sent or revoked. Look again later, or give the entry up if you know better.",
        hint: `integ journal recover ${drive.entry.id}, or integ journal forget ${drive.entry.id}`,
      },
    );
  const detail = { ...drive.entry.detail, in_flight: false };
  await recordAfterwards(bench, drive, { state: "refused", detail });
  bench.tell.note("No key of that name is in the list: nothing was made. The same command again makes it.");
  return { kind: "nothing_made", entry: drive.entry };
}

function named({ id = "without id", name, createdAt }: AccessKey): string {
  return `${id} ("${name ?? ""}", created ${createdAt ?? "at an unknown time"})`;
}

function told(entry: Entry, message: string, details: { meaning: string; hint: string }): Failure {
  const failure = outcomeUnknown(entry, new Failure("outcome_unknown", message));
  return new Failure(failure.kind, failure.message, { ...failure.details, ...details });
}

/** The entry that was to stand in this one's place and has not come to nothing. */
async function begunReplacement(journal: Journal, lost: Entry): Promise<Entry | undefined> {
  return (await journal.entries()).find(
    (entry) => entry.replaces === lost.id && entry.state !== "refused" && entry.state !== "abandoned",
  );
}

/**
 * Revokes the orphan, sees it gone, and makes another key like it. The new entry is on disk before the orphan goes, and
 * the lost one is settled before the new request leaves: from then on the new entry stands for the work.
 */
async function replaceOrphan(bench: Workbench, lost: EntryLease, options: KeyRecoveryOptions): Promise<KeyEnd> {
  const begun = await begunReplacement(bench.journal, lost.entry);
  if (!begun && !(await options.mayReplace(lost.entry))) throw secretLost(lost.entry);
  const destination = { ...(await options.destination.check()) };
  const request = JSON.parse(lost.entry.request_text) as AccessKeyRequest;
  checkAccessKey(request, bench.clock.now());
  const replacement = begun
    ? await bench.journal.drive(begun.id)
    : await admitReplacement(bench, lost.entry, { request, destination });
  try {
    await revokeOrphan(bench, lost);
    await recordAfterwards(bench, lost, { state: "replaced", replaced_by: replacement.entry.id, last_error: null });
    if (isSettled(replacement.entry.state)) return { kind: "home", entry: replacement.entry };
    return await recoverKeyCreation(bench, replacement, options);
  } finally {
    await replacement.release();
  }
}

function admitReplacement(
  bench: Workbench,
  lost: Entry,
  { request, destination }: { request: AccessKeyRequest; destination: Entry["destination"] },
): Promise<EntryLease> {
  const { base_name, marked, expiry } = lost.detail;
  const creation = {
    request: { ...request, name: typeof base_name === "string" ? base_name : request.name },
    marked: marked === true,
    ...(typeof expiry === "string" ? { expiry } : {}),
  };
  return admitCreation(bench, creation, { fresh: true, parent: lost.parent, replaces: lost.id, destination });
}

async function revokeOrphan(bench: Workbench, lost: EntryLease): Promise<void> {
  const id = lost.entry.resource_id;
  if (!id) throw new Failure("failed", `The entry ${lost.entry.id} does not name its key.`, detailsOf(lost.entry));
  await refuseWhereUsed(bench, lost.entry);
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await untilKeyRevoked(bench, id, { mayHaveArrived: true });
}

/** A key whose secret nobody has cannot be used: one that was is not our orphan, whatever it looked like before. */
async function refuseWhereUsed(bench: Workbench, lost: Entry): Promise<void> {
  const keys = await listKeys(bench);
  const key = keys.rows.map((row) => readAccessKey(row.value)).find((found) => found.id === lost.resource_id);
  if (typeof key?.lastUsedAt !== "string") return;
  throw new Failure("secret_lost", `The key ${named(key)} was used at ${key.lastUsedAt}: somebody has its secret.`, {
    ...detailsOf(lost),
    meaning: "Nothing was revoked. If its secret reached you, the work is done.",
    hint: `integ journal forget ${lost.id}`,
  });
}
