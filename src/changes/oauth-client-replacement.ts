// Owns: the way out of a lost secret (§4.2: «revoke the client, confirm, create a replacement with a new key»), one piece
// of work over two entries: the lost one names its replacement before anything is revoked, and is settled last.
// Must not know: flags, terminals, files.
import { Failure } from "../errors.ts";
import { type Entry, isSettled, nextStep } from "../journal/entry.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import { lookAtDestination, undelivered } from "./creation-secret.ts";
import type { CreationEnd, CreationOptions } from "./creation-course.ts";
import { driveCreation } from "./oauth-client-creation.ts";
import { untilRevoked } from "./oauth-client-revocation.ts";
import { takePlace } from "./secret-place.ts";
import {
  detailsOf,
  giveBack,
  madeFor,
  recordAfterwards,
  recoveryIn,
  saysNothingWasDone,
  type Workbench,
  withRequestId,
} from "./workbench.ts";

/**
 * The failure of a creation whose client exists and whose secret cannot be had (exit 9).
 * @param requestId of the answer that showed the client without it, where that came just now
 */
export function secretLost(entry: Entry, requestId?: string): Failure {
  const message = `The client ${entry.resource_id ?? ""} exists, and its one-time secret is lost.`;
  const failure = new Failure("secret_lost", message, {
    ...detailsOf(entry),
    meaning: "The API never shows a secret twice. The way out: revoke this client and create another in its place.",
    hint: nextStep(entry) ?? undefined,
  });
  return withRequestId(failure, requestId);
}

/**
 * Revokes a client whose secret is lost, sees it revoked, and creates another one like it under a new key.
 * Begun work of this kind is gone on with. The new secret goes to `options.destination`.
 * @param lost the entry in state `secret_lost`, driven by this process
 */
export async function replaceLostSecret(
  bench: Workbench,
  lost: EntryLease,
  options: CreationOptions,
): Promise<CreationEnd> {
  try {
    return await replace(bench, lost, options);
  } catch (error) {
    throw stillLost(lost.entry, error);
  }
}

/** What stopped the replacement is not all that a person has to know. */
function stillLost(entry: Entry, error: unknown): unknown {
  if (!(error instanceof Failure) || !saysNothingWasDone(error)) return error;
  const { message, details } = secretLost(entry);
  return new Failure("secret_lost", `${message} It could not be replaced: ${error.message}`, {
    ...details,
    hint: recoveryIn(error.details) ?? details.hint,
    cause: error,
  });
}

async function replace(bench: Workbench, lost: EntryLease, options: CreationOptions): Promise<CreationEnd> {
  const begun = await begunReplacement(bench.journal, lost.entry);
  if (begun && (isSettled(begun.state) || begun.state === "undelivered")) return conclude(bench, lost, begun);
  const replacement = begun
    ? await bench.journal.drive(begun.id)
    : await admitReplacement(bench, lost.entry, { ...(await options.destination.check()) });
  try {
    await beforeRevocation(bench, replacement, options);
    await revokeLost(bench, lost).catch(async (error: unknown) => {
      await giveBack(bench, replacement.entry.id, options.destination);
      throw error;
    });
    const end = await driveCreation(bench, replacement, { ...options, key: undefined });
    await settleReplaced(bench, lost, end.entry);
    return end;
  } catch (error) {
    if (replacement.entry.state === "undelivered") await settleReplaced(bench, lost, replacement.entry);
    throw error;
  } finally {
    await replacement.release();
  }
}

/** The place for the new secret stands before the old client goes, unless the secret is in it already. */
async function beforeRevocation(bench: Workbench, replacement: EntryLease, options: CreationOptions): Promise<void> {
  if (await lookAtDestination(bench, replacement.entry)) return;
  try {
    await takePlace(bench, replacement, options);
  } catch (error) {
    await giveBack(bench, replacement.entry.id, options.destination);
    if (replacement.entry.attempts === 0) await recordAfterwards(bench, replacement, { state: "refused" });
    throw error;
  }
}

/** A replacement that came to its end before a crash: nothing is sent for it again. */
async function conclude(bench: Workbench, lost: EntryLease, begun: Entry): Promise<CreationEnd> {
  await revokeLost(bench, lost);
  await settleReplaced(bench, lost, begun);
  if (begun.state === "undelivered")
    throw undelivered(begun, new Error("an earlier run could not reach its destination."));
  const entry = await lastOf(bench.journal, begun);
  return { kind: "delivered_before", entry, receipt: await receiptOf(bench, entry) };
}

/** What stands at the end of a row of replacements. */
async function lastOf(journal: Journal, entry: Entry): Promise<Entry> {
  const next =
    entry.replaced_by === null ? undefined : (await journal.entries()).find(({ id }) => id === entry.replaced_by);
  return next ? await lastOf(journal, next) : entry;
}

/** The receipt of a client whose secret was delivered before, as the service shows it now. */
export async function receiptOf(bench: Workbench, { resource_id }: Entry): Promise<string> {
  const answer = await bench.account.service.oauthClients.get(resource_id ?? "");
  return answer.kind === "answered" ? answer.text : JSON.stringify({ id: resource_id, client_secret: null });
}

/** The entry that was to stand in this one's place and has not come to nothing. */
export async function begunReplacement(journal: Journal, lost: Entry): Promise<Entry | undefined> {
  const cameToNothing = new Set<Entry["state"]>(["refused", "abandoned", "unusable"]);
  return (await journal.entries()).find((entry) => entry.replaces === lost.id && !cameToNothing.has(entry.state));
}

async function admitReplacement(bench: Workbench, lost: Entry, destination: Entry["destination"]): Promise<EntryLease> {
  const { drive } = await bench.journal.admit(
    {
      ...madeFor(bench.account),
      service_version: lost.service_version,
      operation: "oauth_client.create",
      method: "POST",
      path: "/v1/oauth_clients",
      request_text: lost.request_text,
      twin: lost.twin,
      idempotent: true,
      replaces: lost.id,
      destination,
      parent: lost.parent ?? undefined,
    },
    { fresh: true },
  );
  return drive;
}

async function revokeLost(bench: Workbench, lost: EntryLease): Promise<void> {
  const id = lost.entry.resource_id;
  if (!id) throw new Failure("failed", `The entry ${lost.entry.id} does not name its client.`, detailsOf(lost.entry));
  if (lost.entry.detail.revoked === true) return;
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await untilRevoked(bench, id);
  await recordAfterwards(bench, lost, { detail: { ...lost.entry.detail, revoked: true } });
}

async function settleReplaced(bench: Workbench, lost: EntryLease, by: Entry): Promise<void> {
  await recordAfterwards(bench, lost, { state: "replaced", replaced_by: by.id, last_error: null });
}
