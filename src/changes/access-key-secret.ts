// Owns: the way of an access key's one-time secret from the answer to its place, in the order that loses least: kept on
// this machine first, proven where that was asked for, delivered, written down as done, and only then the copy destroyed.
// Must not know: flags, terminals, how the secret came to be.
import type { AccessKey } from "../api/access-keys.ts";
import type { Attempt, Salvage } from "../api/http/attempt.ts";
import { retryRead } from "../api/http/retry.ts";
import { Failure } from "../errors.ts";
import { nextStep, type Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination, OneTimeSecret } from "../secrets/destination.ts";
import { takePlace } from "./secret-place.ts";
import { detailsOf, recordAfterwards, type Workbench, withRequestId } from "./workbench.ts";

/** The work that a secret belongs to. */
export interface Bearer {
  readonly bench: Workbench;
  readonly drive: EntryLease;
  readonly destination: Destination;
}

/**
 * The receipt of a creation or rotation as it is shown and claimed: the API's own object where the secret stands at its
 * top level and the id with it, else what is known of the key with the secret beside it.
 * @assumed §4.4 does not show the answer to a rotation: it may wrap the key.
 */
export function receiptOf(answer: { readonly text: string; readonly key: AccessKey; readonly secret: string }): string {
  const { text, key, secret } = answer;
  const value: unknown = JSON.parse(text);
  const object = typeof value === "object" && value !== null ? (value as { id?: unknown; secret?: unknown }) : {};
  if (object.secret !== secret) return JSON.stringify({ ...key, secret });
  return object.id === undefined && key.id !== undefined ? JSON.stringify({ id: key.id, ...object }) : text;
}

export interface HomewardOptions {
  /** Proves the secret before it is delivered: where it takes the place of the one that works. */
  readonly prove?: (secret: string) => Promise<void>;
  /** What the answer told besides, for the entry's detail. */
  readonly learned?: Entry["detail"];
  /** Of the answer that brought the secret: told with what becomes of it. */
  readonly requestId?: string | undefined;
}

/**
 * Brings a secret in hand to its place.
 * @throws Failure `undelivered` (kept for `journal claim`), or `secret_lost` where nothing at all would take it
 */
export async function bringHome(
  work: Bearer,
  secret: OneTimeSecret,
  { prove, learned = {}, requestId }: HomewardOptions = {},
): Promise<void> {
  const { bench, drive } = work;
  const detail = { ...drive.entry.detail, ...learned, in_flight: false };
  const known = { resource_id: secret.id || drive.entry.resource_id, detail };
  let kept = true;
  try {
    await bench.secrets.keep(drive.entry.id, secret);
  } catch (error) {
    kept = false;
    bench.tell.warn(`No copy of the secret could be kept before its delivery (${wordsOf(error)})`);
  }
  try {
    await prove?.(secret.secret);
    await work.bench.clock.finishing(() => work.destination.deliver(secret));
  } catch (error) {
    throw withRequestId(await notDelivered(work, { kept, error, known }), requestId);
  }
  await recordAfterwards(bench, drive, { ...known, state: "done", last_error: null });
  // Where the journal could not say so, the copy is what tells recovery that the secret is not lost.
  if (kept && drive.entry.state === "done") await destroyCopy(bench, drive.entry.id);
}

async function destroyCopy(bench: Workbench, entry: string): Promise<void> {
  try {
    await bench.secrets.destroyKept(entry);
  } catch (error) {
    bench.tell.warn(`The secret was delivered; the copy kept meanwhile could not be destroyed (${wordsOf(error)})`);
  }
}

async function notDelivered(
  { bench, drive }: Bearer,
  { kept, error, known }: { kept: boolean; error: unknown; known: Parameters<EntryLease["record"]>[0] },
): Promise<Failure> {
  if (!kept) {
    await recordAfterwards(bench, drive, { ...known, state: "secret_lost" });
    return new Failure("secret_lost", `The secret could neither be kept nor delivered: ${wordsOf(error)}`, {
      ...detailsOf(drive.entry),
      hint: nextStep(drive.entry) ?? undefined,
    });
  }
  await recordAfterwards(bench, drive, { ...known, state: "undelivered" });
  return keptHere(drive.entry, wordsOf(error));
}

/** The failure of work whose secret waits on this machine (exit 12). */
export function keptHere(entry: Entry, why: string): Failure {
  const profile = entry.destination?.kind === "profile" ? ` --secret-profile ${entry.destination.name}` : "";
  return new Failure("undelivered", `The service gave the secret, and it could not be delivered: ${why}`, {
    ...detailsOf(entry),
    meaning: "It is kept on this machine, readable by you alone, until you claim it.",
    hint: `integ journal claim ${entry.id}${profile}`,
  });
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * A copy goes only after `done` is written: one that is not here went with its folder, and nobody can claim it. What had
 * arrived all the same is found where it was to go.
 */
export async function noteLostCopy({ secrets }: Workbench, drive: EntryLease): Promise<void> {
  const { id, state } = drive.entry;
  if (state !== "undelivered" || secrets.isKept(id)) return;
  await drive.record({ state: "secret_lost" });
}

/** True where recovery may try the delivery again by itself: the profile is still there to take its own credential. */
export function mayDeliverAgain(entry: Entry): boolean {
  return entry.state !== "undelivered" || entry.destination?.kind === "profile";
}

/** A secret that was read from an answer that is no proper one: kept, since it may be the only one that works. */
export async function keepStray({ bench, drive }: Omit<Bearer, "destination">, stray: Salvage): Promise<Failure> {
  const id = drive.entry.resource_id ?? /"id"\s*:\s*"([^"\\]{1,200})"/.exec(stray.text)?.[1] ?? "";
  const { secret } = stray;
  const receipt = JSON.stringify(id === "" ? { secret } : { id, secret });
  const why = "the answer that brought it was cut or broken.";
  try {
    await bench.secrets.keep(drive.entry.id, { secret, kind: "access_key", id, receipt });
  } catch (error) {
    return new Failure(
      "outcome_unknown",
      `A secret came in a broken answer, and could not be kept: ${wordsOf(error)}`,
      detailsOf(drive.entry),
    );
  }
  await recordAfterwards(bench, drive, { state: "undelivered", resource_id: id || null });
  return keptHere(drive.entry, why);
}

/**
 * Finishes the delivery of a secret that a crash left kept on this machine, or that had already arrived.
 * @returns true where the secret is in its place now; false where none is kept and none had arrived
 * @throws Failure `undelivered` where it can only be claimed by hand
 */
export async function finishDelivery(work: Bearer, options: HomewardOptions = {}): Promise<boolean> {
  const { bench, drive, destination } = work;
  const isKept = bench.secrets.isKept(drive.entry.id);
  if (await hasArrived(bench, drive.entry)) {
    await recordAfterwards(bench, drive, {
      state: "done",
      last_error: null,
      detail: { ...drive.entry.detail, in_flight: false },
    });
    if (isKept) await destroyCopy(bench, drive.entry.id);
    return true;
  }
  if (!isKept) return false;
  const secret = await bench.secrets.readKept(drive.entry.id);
  if (destination.isStdout) {
    await recordAfterwards(bench, drive, { state: "undelivered", resource_id: secret.id || drive.entry.resource_id });
    throw keptHere(drive.entry, "an earlier run ended before it could say that it arrived.");
  }
  const record = await takePlace(bench, drive, { destination, isKept: true });
  await drive.record({ destination: { ...record } });
  await bringHome(work, secret, options);
  return true;
}

/**
 * A finished file is its own proof. A profile that holds a key's id proves nothing of a rotation, where the id stays:
 * there the copy decides.
 */
async function hasArrived(bench: Workbench, entry: Entry): Promise<boolean> {
  const record = entry.destination;
  if (record?.kind === "file") return bench.secrets.wasDelivered(record, {});
  if (record?.kind !== "profile" || entry.operation !== "access_key.create" || !entry.resource_id) return false;
  return bench.secrets.wasDelivered(record, { id: entry.resource_id });
}

/**
 * Exchanges a key's secret for a bearer token (§5.3), repeated where that may help: the exchange changes nothing.
 * @returns false where the profile knows no way to exchange a secret: there is no proof
 * @throws Failure `auth` where the secret is not accepted, `unreachable` where nobody could be asked
 */
export async function proveSecret(bench: Workbench, secret: string): Promise<boolean> {
  let impossible = false;
  await retryRead(
    async (): Promise<Attempt<unknown>> => {
      const attempt = await bench.account.service.tokens.exchangeAccessKey(secret);
      impossible = attempt === undefined;
      return attempt ?? { kind: "answered", status: 200, value: undefined, text: "" };
    },
    {
      what: "exchange the new secret for a token",
      where: `profile ${bench.account.profile} (${bench.account.region})`,
      retryForMs: bench.retryForMs,
      clock: bench.clock,
      random: () => bench.clock.random(),
      signal: bench.clock.interruption,
    },
  );
  return !impossible;
}

/** The failure of an answer that made a key and shows no secret: there is none to be had (§2.4). */
export async function withoutSecret({ bench, drive }: Omit<Bearer, "destination">, key: AccessKey): Promise<Failure> {
  await recordAfterwards(bench, drive, {
    state: "secret_lost",
    resource_id: key.id ?? drive.entry.resource_id,
    detail: { ...drive.entry.detail, in_flight: false },
  });
  return secretLost(drive.entry);
}

/** The failure of a key that exists and whose secret nobody has (exit 9). */
export function secretLost(entry: Entry): Failure {
  const isRotation = entry.operation === "access_key.rotate";
  return new Failure("secret_lost", `The key ${entry.resource_id ?? ""} exists, and its one-time secret is lost.`, {
    ...detailsOf(entry),
    meaning: isRotation
      ? "The API never shows a secret twice. The way out: rotate the key again."
      : "The API never shows a secret twice. The way out: revoke this key and create another in its place.",
    hint: nextStep(entry) ?? undefined,
  });
}
