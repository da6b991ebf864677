// Owns: the creation of an access key (§2.4, §4.4), from the intent on disk to the secret in its place. The legacy
// contract has no idempotency key: the request is sent once, and an unknown outcome is settled by access-key-orphan.ts.
// Must not know: flags, terminals, files.
import { accessKeyBody, type AccessKeyRequest, checkAccessKey } from "../api/access-keys.ts";
import type { Answered } from "../api/http/attempt.ts";
import type { SecretAnswer } from "../api/access-keys.ts";
import { Failure } from "../errors.ts";
import { nextStep, type Entry } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import type { Destination, OneTimeSecret } from "../secrets/destination.ts";
import { mayHaveArrived, post } from "./access-key-posting.ts";
import { bringHome, receiptOf, withoutSecret } from "./access-key-secret.ts";
import { detailsOf, giveBack, madeFor, type Workbench, withRequestId } from "./workbench.ts";

/** Characters of a key's name (§8). */
const longestName = 255;

export interface KeyCreation {
  readonly request: AccessKeyRequest;
  /** Normal form of the expiry as it was asked for (`in 90d` is the same intent tomorrow); absent: the request's. */
  readonly expiry?: string;
  /** `--name-marker`: add a mark to the name that makes an orphan certain. */
  readonly marked: boolean;
}

export interface KeyCreationOptions {
  readonly destination: Destination;
  /** `--new`: leave an unfinished twin alone. */
  readonly fresh?: boolean;
  /** Proves the secret before it is delivered: where it takes the place of one that works. */
  readonly prove?: (secret: string) => Promise<void>;
}

export interface KeyCreated {
  readonly entry: Entry;
  /** The API's object with the secret in it. */
  readonly receipt: string;
  readonly secret: string;
}

/** Appended to a name by `--name-marker`: unguessable, so that nobody else's key has it. */
export function markOf(random: () => string): string {
  return `-${random().replaceAll("-", "").slice(0, 12)}`;
}

/**
 * The name as it goes out.
 * @throws Failure `usage` where name and mark are more than 255 characters together
 */
export function markedName(name: string, mark: string): string {
  const characters = lengthOf(name) + lengthOf(mark);
  if (characters <= longestName) return name + mark;
  throw new Failure("usage", `With its mark the name has ${characters} characters: ${longestName} is the most (§8).`, {
    hint: `Shorten the name to ${longestName - lengthOf(mark)} characters, or leave --name-marker out.`,
  });
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

/** The intent of a creation as the journal admits it. @param mark `""` for none */
export function keyCreationIntent(bench: Workbench, creation: KeyCreation, mark: string): Intent {
  const { request, marked } = creation;
  const sent = { ...request, name: markedName(request.name, mark) };
  const scopes = request.scopes === undefined ? null : [...new Set(request.scopes)].sort();
  const expiry = creation.expiry ?? request.expiresAt ?? null;
  return {
    ...madeFor(bench.account),
    operation: "access_key.create",
    method: "POST",
    path: "/api/v1/access-keys",
    request_text: accessKeyBody(sent),
    twin: JSON.stringify([request.name, request.keyType ?? null, scopes, expiry, marked]),
    idempotent: false,
    detail: { base_name: request.name, marked, expiry },
  };
}

/**
 * Creates an access key.
 * @throws Failure of every kind; the journal holds what may have happened
 */
export async function createAccessKey(
  bench: Workbench,
  creation: KeyCreation,
  options: KeyCreationOptions,
): Promise<KeyCreated> {
  checkAccessKey(creation.request, bench.clock.now());
  const destination = { ...(await options.destination.check()) };
  const drive = await admitCreation(bench, creation, { fresh: options.fresh, destination });
  try {
    return await driveKeyCreation(bench, drive, options);
  } finally {
    await drive.release();
  }
}

export interface KeyAdmission extends Pick<Intent, "destination" | "parent" | "replaces"> {
  /** Leave an unfinished twin alone. */
  readonly fresh?: boolean;
}

/** Puts the intent on disk, or takes the unfinished one of the same request that was certainly never sent. */
export async function admitCreation(
  bench: Workbench,
  creation: KeyCreation,
  { fresh, ...about }: KeyAdmission,
): Promise<EntryLease> {
  const mark = creation.marked ? markOf(() => crypto.randomUUID()) : "";
  const intent = { ...keyCreationIntent(bench, creation, mark), ...about };
  const { kind, drive } = await bench.journal.admit(intent, { fresh });
  if (kind === "resumed" && mayHaveArrived(drive.entry)) {
    await drive.release();
    throw stillUnknown(drive.entry);
  }
  if (kind === "resumed")
    bench.tell.note(`Going on with the unfinished creation ${drive.entry.id}, which was never sent.`);
  return drive;
}

/** The same creation was sent before and nobody knows how it ended: a second key is not made by itself. */
function stillUnknown(entry: Entry): Failure {
  return new Failure("outcome_unknown", "The same key was asked for before, and nobody knows whether it was made.", {
    ...detailsOf(entry),
    meaning: "Nothing was sent now. Settle that one first; --new makes another key all the same.",
    hint: nextStep(entry) ?? undefined,
  });
}

/**
 * Sends the creation of an entry that was never sent, and brings its secret home.
 * @param drive driven by this process alone
 */
export async function driveKeyCreation(
  bench: Workbench,
  drive: EntryLease,
  { destination, prove }: Pick<KeyCreationOptions, "destination" | "prove">,
): Promise<KeyCreated> {
  const work = { bench, drive, destination };
  try {
    const answer = await post({
      ...work,
      what: "create access key",
      send: () => bench.account.service.accessKeys.create(drive.entry.request_text),
      ifUnknown: "The key may or may not exist, and its secret is not here.",
    });
    return await takeKey(work, answer, prove);
  } finally {
    await giveBack(bench, drive.entry.id, destination);
  }
}

async function takeKey(
  work: { bench: Workbench; drive: EntryLease; destination: Destination },
  { value, text, requestId }: Answered<SecretAnswer>,
  prove?: (secret: string) => Promise<void>,
): Promise<KeyCreated> {
  const { key, secret } = value;
  if (secret === undefined) throw withRequestId(await withoutSecret(work, key), requestId);
  const receipt = receiptOf({ text, key, secret });
  const learned = { created_by: key.createdByUserId ?? null };
  const mine: OneTimeSecret = { secret, kind: "access_key", id: key.id ?? "", receipt };
  await bringHome(work, mine, { prove, learned, requestId });
  return { entry: work.drive.entry, receipt, secret };
}
