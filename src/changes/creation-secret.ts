// Owns: bringing the one-time secret of a creation home: delivered, kept for `claim`, found where it was delivered before,
// or lost (§2.3, §4.2).
// Must not know: flags, terminals, files, when to send (oauth-client-creation.ts).
import type { Salvage } from "../api/http/attempt.ts";
import { readableIds } from "../api/oauth-client-creation.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import { type Entry, isSettled, nextStep } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";
import type { Course, CreationEnd } from "./creation-course.ts";
import { detailsOf, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";

/**
 * A secret in hand is delivered before anything else is said or complained about. Where the place leaves nothing to look at
 * afterwards (standard output, a command that may take its time), a copy is kept meanwhile: a crash then leaves it for
 * `claim`, and a client whose secret somebody may have is never taken for lost.
 */
export async function deliver(
  course: Course,
  client: OAuthClient,
  got: { secret: string; text: string },
): Promise<CreationEnd> {
  const { bench, drive, options } = course;
  const secret: OneTimeSecret = {
    secret: got.secret,
    kind: "oauth_client",
    id: client.id,
    clientId: client.client_id ?? undefined,
    receipt: got.text,
  };
  const known = {
    resource_id: client.id,
    last_error: null,
    detail: { ...drive.entry.detail, client_id: client.client_id },
  };
  const isKept = !leavesTrace(drive.entry) && (await keptMeanwhile(course, secret));
  try {
    await bench.clock.finishing(() => options.destination.deliver(secret));
  } catch (error) {
    if (!isKept) await keep(course, secret, error);
    await recordAfterwards(bench, drive, { ...known, state: "undelivered" });
    throw undelivered(drive.entry, error);
  }
  await settleDelivered(course, known);
  return { kind: "delivered", entry: drive.entry, receipt: got.text };
}

function leavesTrace({ destination }: Entry): boolean {
  return destination?.kind === "file" || destination?.kind === "profile";
}

async function keptMeanwhile({ bench, drive }: Course, secret: OneTimeSecret): Promise<boolean> {
  try {
    await bench.secrets.keep(drive.entry.id, secret);
    return true;
  } catch (error) {
    bench.disk.lose(words(error));
    bench.tell.warn(`No copy of the secret could be kept before its delivery (${words(error)})`);
    return false;
  }
}

async function settleDelivered(course: Course, known: Parameters<EntryLease["record"]>[0]): Promise<void> {
  await recordAfterwards(course.bench, course.drive, { ...known, state: "done" });
  await destroyCopy(course);
}

/** Destroys what a cut answer left here, once the journal says that nobody needs it: a crash leaves one too many, never none. */
export async function destroyCopy({ bench, drive }: Course): Promise<void> {
  if (!isSettled(drive.entry.state)) return;
  try {
    if (bench.secrets.isKept(drive.entry.id)) await bench.secrets.destroyKept(drive.entry.id);
  } catch (error) {
    bench.tell.warn(`A copy of the secret that nobody needs could not be destroyed (${words(error)})`);
  }
}

async function keep(course: Course, secret: OneTimeSecret, because: unknown): Promise<void> {
  try {
    await course.bench.secrets.keep(course.drive.entry.id, secret);
  } catch (error) {
    if (await isKeptAfterAll(course, secret)) return;
    course.leaveReserve = true;
    await recordAfterwards(course.bench, course.drive, { state: "secret_lost", resource_id: secret.id });
    throw new Failure(
      "secret_lost",
      `The secret could neither be delivered (${words(because)}) nor kept (${words(error)}).`,
      {
        ...detailsOf(course.drive.entry),
        hint: nextStep(course.drive.entry) ?? undefined,
      },
    );
  }
}

/** A copy may stand whole although its last step failed. */
async function isKeptAfterAll({ bench, drive }: Course, secret: OneTimeSecret): Promise<boolean> {
  try {
    return (await bench.secrets.readKept(drive.entry.id)).secret === secret.secret;
  } catch {
    return false;
  }
}

/** The failure of a creation whose secret is kept here (exit 12). */
export function undelivered(entry: Entry, because: unknown): Failure {
  return new Failure(
    "undelivered",
    `The client was created, but its secret could not be delivered: ${words(because)}`,
    {
      ...detailsOf(entry),
      meaning: "The secret is kept on this machine, readable by you alone, until you claim it.",
      hint: nextStep(entry) ?? undefined,
    },
  );
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** `active` without a secret (§4.2): delivered by an earlier process, kept here, or lost. */
export async function withoutSecret(course: Course, client: OAuthClient, receipt: string): Promise<CreationEnd> {
  const { bench, drive } = course;
  const known = {
    resource_id: client.id,
    last_error: null,
    detail: { ...drive.entry.detail, client_id: client.client_id },
  };
  if (course.settledBefore) return { kind: "delivered_before", entry: drive.entry, receipt };
  const place = course.deliveredBefore ? "delivered" : await whereIsIt(course, { ...drive.entry, ...known });
  if (place === "kept") {
    await recordAfterwards(bench, drive, { ...known, state: "undelivered" });
    throw undelivered(drive.entry, new Error("an earlier run could not reach its destination."));
  }
  if (place === "delivered") {
    await settleDelivered(course, known);
    return { kind: "delivered_before", entry: drive.entry, receipt };
  }
  await recordAfterwards(bench, drive, { ...known, state: "secret_lost" });
  return { kind: "secret_lost", entry: drive.entry, receipt };
}

/** A place that cannot be looked at may hold the secret: nothing is called lost for that. */
async function whereIsIt({ bench, drive }: Course, entry: Entry): Promise<"kept" | "delivered" | "nowhere"> {
  try {
    if (bench.secrets.isKept(entry.id)) return "kept";
    return (await lookAtDestination(bench, entry)) ? "delivered" : "nowhere";
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    await recordAfterwards(bench, drive, { ...entry, state: "unknown" });
    throw outcomeUnknown(drive.entry, error);
  }
}

/** True where the place that the journal remembers holds the secret. */
export async function lookAtDestination(bench: Workbench, entry: Entry): Promise<boolean> {
  if (!entry.destination) return false;
  return bench.secrets.wasDelivered(entry.destination, { clientId: entry.detail.client_id ?? undefined });
}

/**
 * Looks for a secret that an earlier run called lost or undelivered, before anything is revoked or asked for: where it
 * should have gone, then among what is kept here. An entry that does not name its client yet is left to its creation.
 * @returns true where it was in its place: the entry is done now
 * @throws Failure `undelivered` where it is kept for `claim`
 */
export async function foundAfterAll(bench: Workbench, drive: EntryLease): Promise<boolean> {
  const { id, state } = drive.entry;
  if (state !== "undelivered" && state !== "secret_lost") return false;
  // Which client it opens is not known yet: the creation has to be gone on with.
  if (drive.entry.resource_id === null) return false;
  if (await lookAtDestination(bench, drive.entry)) {
    await drive.record({ state: "done", last_error: null });
    await bench.secrets.destroyKept(id);
    return true;
  }
  // A copy goes only after `done` is written: one that is not here went with its folder, and nobody can claim it.
  const found = bench.secrets.isKept(id) ? "undelivered" : "secret_lost";
  if (state !== found) await drive.record({ state: found });
  if (drive.entry.state === "undelivered")
    throw undelivered(drive.entry, new Error("an earlier run could not reach its destination."));
  return false;
}

/**
 * Keeps a secret from an answer that was cut or breaks the contract, before anything else is done: the service gave it,
 * and never shows it again. What it belongs to, a receipt under the same key tells: the work goes on.
 */
export async function keepStray({ bench, drive }: Course, { secret, text }: Salvage): Promise<void> {
  const { id = "", clientId } = readableIds(text);
  try {
    await bench.secrets.keep(drive.entry.id, { secret, kind: "oauth_client", id, clientId, receipt: text });
  } catch (error) {
    bench.tell.warn(`A secret came in an answer that was no whole one, and could not be kept (${words(error)})`);
  }
}

/** How a run ends whose secret is kept here, and that did not learn from a receipt which client it opens. */
export async function waitsUnnamed({ bench, drive }: Course, failure: Failure): Promise<Failure> {
  if (failure.kind !== "outcome_unknown" || !isSecretKept(bench, drive.entry.id)) return failure;
  await recordAfterwards(bench, drive, { state: "undelivered" });
  const { hint, meaning } = undelivered(drive.entry, failure).details;
  return new Failure(
    "undelivered",
    `A secret came and is kept here, and the work could not go on: ${failure.message}`,
    {
      ...failure.details,
      meaning,
      hint,
    },
  );
}

function isSecretKept(bench: Workbench, entry: string): boolean {
  try {
    return bench.secrets.isKept(entry);
  } catch {
    return false; // What cannot be looked at is told as unknown: recovery looks again.
  }
}
