// Owns: which change an unfinished entry belongs to, under whose profile it may be finished, and what is left afterwards.
// Must not know: flags, terminals, files.
import { exitCodes, Failure, type FailureKind } from "../errors.ts";
import { isSettled, type Entry } from "../journal/entry.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import type { Destination } from "../secrets/destination.ts";
import { recoverKeyCreation } from "./access-key-recovery.ts";
import { driveKeyReplacement } from "./access-key-replacement.ts";
import { driveKeyRevocation } from "./access-key-revocation.ts";
import { recoverKeyRotation } from "./access-key-rotation.ts";
import { foundAfterAll } from "./creation-secret.ts";
import { driveCreation } from "./oauth-client-creation.ts";
import { begunReplacement, replaceLostSecret, secretLost } from "./oauth-client-replacement.ts";
import { driveRevocation } from "./oauth-client-revocation.ts";
import { driveRotation } from "./oauth-client-rotation.ts";
import { detailsOf, isInterruption, saysNothingWasDone, type Account, type Workbench } from "./workbench.ts";

export interface RecoveryOptions {
  /** Where a secret goes that still comes: asked for, else where the original command wanted it. */
  readonly destinationOf: (entry: Entry) => Promise<Destination>;
  /** Asked once for each lost secret; no means that nothing is revoked. */
  readonly mayReplace: (entry: Entry) => Promise<boolean>;
  /** Asked before a rotation revokes the old client though the new one cannot be proven any more. */
  readonly mayRevokeUnproven: (entry: Entry) => Promise<boolean>;
  readonly waitMs: number;
  /** The account that the entry was made for; throws where its profile is gone or unusable. */
  readonly benchFor: (entry: Entry) => Promise<Workbench>;
}

/** How one entry stands after recovery. */
export interface Recovered {
  readonly entry: Entry;
  readonly failure?: Failure;
}

/** Kinds from the worst to the mildest: the exit code of a recovery that left something. */
const worstFirst: readonly FailureKind[] = [
  "outcome_unknown",
  "undelivered",
  "secret_lost",
  "pending",
  "unusable",
  "auth",
  "rate_limited",
  "unreachable",
  "conflict",
  "not_found",
  "failed",
];

/** @returns the failure to end with, or nothing where all is settled */
export function worstOf(results: readonly Recovered[]): Failure | undefined {
  const failures = results.flatMap((result) => (result.failure ? [result.failure] : []));
  const rank = (failure: Failure): number =>
    (worstFirst.indexOf(failure.kind) + worstFirst.length + 1) % (worstFirst.length + 1);
  return failures.sort((a, b) => rank(a) - rank(b))[0];
}

/**
 * Finishes the given entries, each under its own profile, oldest first. One that fails does not stop the others.
 * @param entries unsettled ones; settled ones are reported as they stand
 */
export async function recover(
  journal: Journal,
  entries: readonly Entry[],
  options: RecoveryOptions,
): Promise<Recovered[]> {
  const results: Recovered[] = [];
  const oldestFirst = [...entries].sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  for (const entry of oldestFirst) results.push(await recoverOne(journal, entry.id, options));
  return results;
}

async function recoverOne(journal: Journal, id: string, options: RecoveryOptions): Promise<Recovered> {
  let drive: EntryLease | undefined;
  try {
    drive = await journal.drive((await rootOf(journal, id)).id);
    if (isSettled(drive.entry.state)) return { entry: drive.entry };
    const bench = await options.benchFor(drive.entry);
    checkBinding(drive.entry, bench.account);
    await finish(bench, drive, options);
    return { entry: await journal.find(id) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { entry: await journal.find(id), failure: told(await journal.find(id), error) };
  } finally {
    await drive?.release();
  }
}

/**
 * A replacement is finished through the entry it replaces, a step of a rotation through the rotation: what has to be
 * revoked, and when, stands there.
 */
async function rootOf(journal: Journal, id: string): Promise<Entry> {
  const entry = await journal.find(id);
  if (isSettled(entry.state)) return entry;
  const all = await journal.entries();
  const above = [entry.parent, entry.replaces]
    .map((name) => (name ? all.find((other) => other.id === name) : undefined))
    .find((other) => other && !isSettled(other.state));
  return above ? await rootOf(journal, above.id) : entry;
}

/**
 * How the entry stands decides, whatever stood in the way this time: one that is still unknown is unknown, Ctrl-C or not
 * (cli.md, exit 7), and a secret that is lost is not found by a place that cannot take another.
 */
function told(entry: Entry, failure: Failure): Failure {
  const isUnknown = entry.state === "unknown" || (entry.state === "open" && entry.attempts > 0);
  const isLeft = entry.state === "open" && !isInterruption(failure);
  const isLost = entry.state === "secret_lost" && saysNothingWasDone(failure);
  const kind: FailureKind = isUnknown || isLeft ? "outcome_unknown" : isLost ? "secret_lost" : failure.kind;
  return new Failure(kind in exitCodes ? kind : "failed", failure.message, detailsOf(entry, failure.details));
}

/** The entry belongs to one profile, at one address, in one organization: it is finished there or not at all. */
function checkBinding(entry: Entry, account: Account): void {
  const moved =
    (account.baseUrl !== entry.base_url &&
      `points at ${account.baseUrl} now, and the entry was made for ${entry.base_url}`) ||
    (account.organizationId !== entry.organization_id && "is bound to another organization now") ||
    (account.profileId !== entry.profile_id && "is another profile of the same name");
  if (!moved) return;
  throw new Failure("auth", `Profile "${entry.profile}" ${moved}.`, {
    ...detailsOf(entry),
    meaning: "Nothing was sent: the key and the client belong to the account of that time.",
    hint: `Put the profile back as it was, or give the entry up: integ journal forget ${entry.id}`,
  });
}

async function finish(bench: Workbench, drive: EntryLease, options: RecoveryOptions): Promise<void> {
  switch (drive.entry.operation) {
    case "oauth_client.create":
      return finishCreation(bench, drive, options);
    case "oauth_client.revoke":
      await driveRevocation(bench, drive, drive.entry.resource_id ?? "");
      return;
    case "oauth_client.rotate":
      await driveRotation(bench, drive, {
        destination: await options.destinationOf((await childOf(bench.journal, drive.entry)) ?? drive.entry),
        waitMs: options.waitMs,
        mayReplace: options.mayReplace,
        mayRevokeUnproven: options.mayRevokeUnproven,
      });
      return;
    case "access_key.create":
      await recoverKeyCreation(bench, drive, { ...options, destination: await options.destinationOf(drive.entry) });
      return;
    case "access_key.rotate":
      return finishKeyRotation(bench, drive, options);
    case "access_key.revoke":
      await driveKeyRevocation(bench, drive);
      return;
    default:
      throw new Failure(
        "failed",
        `This version cannot finish "${String(drive.entry.operation)}".`,
        detailsOf(drive.entry),
      );
  }
}

async function finishKeyRotation(bench: Workbench, drive: EntryLease, options: RecoveryOptions): Promise<void> {
  const destination = await options.destinationOf((await childOf(bench.journal, drive.entry)) ?? drive.entry);
  if (drive.entry.detail.mode === "replacement") await driveKeyReplacement(bench, drive, { ...options, destination });
  else await recoverKeyRotation(bench, drive, { ...options, destination });
}

/** The creation of a rotation: it remembers where the secret was to go. */
async function childOf(journal: Journal, rotation: Entry): Promise<Entry | undefined> {
  return (await journal.entries()).find((entry) => entry.parent === rotation.id && entry.destination !== null);
}

async function finishCreation(bench: Workbench, drive: EntryLease, options: RecoveryOptions): Promise<void> {
  const begun = await begunReplacement(bench.journal, drive.entry);
  if (begun === undefined && (await foundAfterAll(bench, drive))) return;
  const { entry } = drive;
  const creation = { destination: await options.destinationOf(begun ?? entry), waitMs: options.waitMs };
  const end = entry.state === "secret_lost" ? undefined : await driveCreation(bench, drive, creation);
  if (end !== undefined && end.kind !== "secret_lost") return;
  // A replacement that was begun was agreed to then.
  const agreed = begun !== undefined || (await options.mayReplace(drive.entry));
  if (!agreed) throw secretLost(drive.entry, end?.requestId);
  const replaced = await replaceLostSecret(bench, drive, creation);
  if (replaced.kind !== "secret_lost") return;
  // One of this run's own that was lost as well is enough; one that an earlier run had begun is replaced like any other.
  if (begun === undefined) throw secretLost(replaced.entry, replaced.requestId);
  const next = await bench.journal.drive(replaced.entry.id);
  try {
    await finishCreation(bench, next, options);
  } finally {
    await next.release();
  }
}
