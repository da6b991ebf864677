// Owns: the way out of a lost secret (§4.2: «revoke the client, confirm, create a replacement with a new key»), one piece
// of work over two entries: the lost one names its replacement before anything is revoked, and is settled last.
// Must not know: flags, terminals, files.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import { nextStep } from "../journal/entry.ts";
import type { Drive, Journal } from "../journal/journal.ts";
import type { CreationEnd, CreationOptions } from "./creation-course.ts";
import { driveCreation } from "./oauth-client-creation.ts";
import { untilRevoked } from "./oauth-client-revocation.ts";
import { detailsOf, madeFor, recordAfterwards, type Workbench } from "./workbench.ts";

/** The failure of a creation whose client exists and whose secret cannot be had (exit 9). */
export function secretLost(entry: Entry): Failure {
  return new Failure("secret_lost", `The client ${entry.resource_id ?? ""} exists, and its one-time secret is lost.`, {
    ...detailsOf(entry),
    meaning: "The API never shows a secret twice. The way out: revoke this client and create another in its place.",
    hint: nextStep(entry) ?? undefined,
  });
}

/**
 * Revokes a client whose secret is lost, sees it revoked, and creates another one like it under a new key.
 * Begun work of this kind is gone on with. The new secret goes to `options.destination`.
 * @param lost the entry in state `secret_lost`, driven by this process
 */
export async function replaceLostSecret(bench: Workbench, lost: Drive, options: CreationOptions): Promise<CreationEnd> {
  const destination = { ...(await options.destination.check()) };
  // The place for the new secret, and the new entry with its key, stand before the old client goes.
  await options.destination.prepare(lost.entry.id);
  await options.destination.release();
  const begun = unfinishedReplacement(bench.journal, lost.entry);
  const replacement =
    begun === undefined ? await admitReplacement(bench, lost.entry, destination) : await bench.journal.drive(begun.id);
  try {
    await revokeLost(bench, lost);
    const end = await driveCreation(bench, replacement, { ...options, key: undefined });
    if (end.kind === "secret_lost") settleReplaced(bench, lost, replacement.entry);
    else settleReplaced(bench, lost, end.entry);
    return end;
  } catch (error) {
    if (replacement.entry.state === "undelivered") settleReplaced(bench, lost, replacement.entry);
    throw error;
  } finally {
    replacement.release();
  }
}

/** The entry that was to stand in this one's place and has not come to nothing. */
function unfinishedReplacement(journal: Journal, lost: Entry): Entry | undefined {
  const cameToNothing = new Set<Entry["state"]>(["refused", "abandoned"]);
  return journal.entries().find((entry) => entry.replaces === lost.id && !cameToNothing.has(entry.state));
}

/** True where a replacement of this entry was agreed to and begun. */
export function isReplacementBegun(journal: Journal, lost: Entry): boolean {
  return unfinishedReplacement(journal, lost) !== undefined;
}

async function admitReplacement(bench: Workbench, lost: Entry, destination: Entry["destination"]): Promise<Drive> {
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

async function revokeLost(bench: Workbench, lost: Drive): Promise<void> {
  const id = lost.entry.resource_id;
  if (!id) throw new Failure("failed", `The entry ${lost.entry.id} does not name its client.`, detailsOf(lost.entry));
  if (lost.entry.detail.revoked === true) return;
  bench.tell.note(`Revoking ${id}, whose secret is lost.`);
  await untilRevoked(bench, id);
  recordAfterwards(bench, lost, { detail: { ...lost.entry.detail, revoked: true } });
}

function settleReplaced(bench: Workbench, lost: Drive, by: Entry): void {
  recordAfterwards(bench, lost, { state: "replaced", replaced_by: by.id, last_error: null });
}
