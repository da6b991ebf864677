// Creates access keys (§2.4, §4.4). The request has no idempotency key, so integ does not repeat a request that may have
// arrived: orphan.ts searches the list for its key.
import {
  accessKeyBody,
  type AccessKeyRequest,
  checkAccessKey,
  keyDifferences,
  keyReceipt,
  markedName,
  newMark,
  type SecretAnswer,
} from "../api/access-keys.ts";
import { type Answered, type Attempt, failureOf } from "../api/call/attempt.ts";
import { differencesIn } from "../api/oauth-client-creation.ts";
import type { Failure } from "../errors.ts";
import { type Entry, hasNoId, wasClaimed, lastErrorOf } from "../journal/entry.ts";
import type { Intent } from "../journal/journal.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";
import { send } from "./acts/send.ts";
import { type CreateOptions, create, type CreationContract, type CreationWork, type Outcome } from "./creation.ts";
import { assertUnused, identifyKey, requestIn, searchOrphan, settleSearch } from "./orphan.ts";
import { keyCredential } from "./revocation.ts";
import { readUntilAnswered, recordAttempt, sendUntilKnown } from "./sending.ts";
import {
  assertMatchesRequest,
  deliverSecret,
  formerIds,
  keepSalvaged,
  learnedOfKept,
  learnedOfKey,
  reserveDestination,
  type SecretWork,
  secretLost,
  undelivered,
  releaseReserved,
  withRelease,
  continueDelivery,
} from "./secret-delivery.ts";
import {
  entryFailure,
  isoTime,
  lifetimeDifference,
  accountFields,
  outcomeUnknown,
  recordOrWarn,
  noteOtherEndpoint,
  type Workbench,
} from "./workbench.ts";

export interface KeyCreation {
  readonly request: AccessKeyRequest;
  /** The normalized expiry, so that `in 90d` is the same intent tomorrow. By default, the request's `expiresAt`. */
  readonly expiry?: string;
  /** `--marker`: the name gets a random mark, which identifies the key in the list with certainty. */
  readonly marked: boolean;
}

export function keyCreationIntent(
  bench: Workbench,
  creation: KeyCreation,
  { mark = creation.marked ? newMark() : "", lost }: { readonly mark?: string; readonly lost?: Entry } = {},
): Intent {
  const { request, marked } = creation;
  const sent = { ...request, name: markedName(request.name, mark) };
  const scopes = request.scopes === undefined ? null : [...new Set(request.scopes)].sort();
  const expiry = creation.expiry ?? request.expiresAt ?? null;
  const { keyId } = bench.account;
  return {
    ...accountFields(lost ?? bench.account),
    operation: "access_key.create",
    method: "POST",
    path: "/api/v1/access-keys",
    request_text: accessKeyBody(sent),
    fingerprint: JSON.stringify([request.name, request.keyType ?? null, scopes, expiry, marked]),
    idempotent: false,
    detail: { base_name: request.name, marked, expiry, ...(keyId !== undefined && { asking_key: keyId }) },
  };
}

export async function createAccessKey(bench: Workbench, creation: KeyCreation, asked: CreateOptions): Promise<Outcome> {
  checkAccessKey(creation.request, bench.clock.now());
  return create(key, bench, keyCreationIntent(bench, creation), asked);
}

export const key: CreationContract = {
  ...keyCredential,
  continueDelivery: resumeDelivery,
  send: sendKeyCreation,
  searchKey: async (work) => {
    const end = await settleSearch(work, await searchOrphan(work));
    if (end !== undefined) return end;
    const found = await resumeDelivery(work);
    return found && { kind: "delivered_before", entry: work.lease.entry, ...found };
  },
  assertUnused,
  prove: (bench, rotation, _child, { secret }) => proveSecret(bench, rotation, secret),
  replacementIntent: (bench, lost) => {
    const request = requestIn(lost);
    checkAccessKey(request, bench.clock.now());
    const { base_name, marked, expiry } = lost.detail;
    const creation = { request: { ...request, name: base_name ?? request.name }, marked: marked === true };
    return keyCreationIntent(bench, { ...creation, expiry: expiry ?? undefined }, { lost: lost });
  },
};

/** If the secret is found without the key's id, searches the list for the key. */
async function resumeDelivery(work: CreationWork) {
  const found = wasClaimed(work.lease.entry) ? {} : await continueDelivery(work);
  if (found !== undefined && hasNoId(work.lease.entry)) await identifyKey(work, await searchOrphan(work));
  return found;
}

/** Called only if no earlier request of the entry may have arrived. */
async function sendKeyCreation(work: CreationWork): Promise<Outcome> {
  const { bench, lease } = work;
  checkAccessKey(requestIn(lease.entry), bench.clock.now());
  return withRelease(work, async () => {
    // The ids are read before the request, because a failed read after it would prevent the delivery.
    const former = [...(await formerIds(bench, lease.entry)), bench.account.keyId];
    const answer = await sendForSecret(work, {
      what: "create the access key",
      change: "create key",
      unknownMeaning: "The key may or may not exist, and its secret is not here.",
    });
    const { key: made } = answer.value;
    const request = requestIn(lease.entry);
    const late = lifetimeDifference(lease.entry, request.expiresAt);
    const differs = differencesIn([keyDifferences(made, request, former), late]);
    const detail = { created_by: made.createdByUserId ?? null, differs };
    const secret = await takeSecret(work, answer, detail);
    return { kind: "delivered", entry: lease.entry, receipt: secret.receipt, secret };
  });
}

export interface SendOptions {
  readonly what: string;
  readonly change: "create key" | "rotate key";
  readonly id?: string;
  readonly unknownMeaning: string;
  /** The state to keep if the request is refused: an earlier attempt may have changed the secret. */
  readonly stateBefore?: "unknown" | "secret_lost" | undefined;
}

/** Repeats the request while that can help, but not after a lost response. The caller releases the reserved space. */
export function sendForSecret(work: SecretWork, options: SendOptions): Promise<Answered<SecretAnswer>> {
  const { bench, lease, destination } = work;
  return sendUntilKnown(bench, lease, {
    stateBefore: () => options.stateBefore,
    prepare: async (state = "open") => {
      const place = await reserveDestination(bench, lease, { destination });
      await bench.secrets.reserve(lease.entry.id);
      const sent_at = isoTime(bench.clock.now());
      await recordAttempt(work, { state, place, detail: { in_flight: true, sent_at } });
    },
    send: () => send(bench, lease, options),
    read: async (answer) => {
      if (answer.kind === "answered") return { end: answer };
      if (answer.kind === "unknown") throw await recordLostAnswer(work, answer, options);
      await recordOrWarn(bench, lease, { detail: { ...lease.entry.detail, in_flight: false } });
      return failureOf(answer, { what: options.what, change: true });
    },
    retryLabel: "Nothing was changed. Trying again",
  });
}

/** Records the unknown outcome. A secret in the broken response is kept, because it may be the only copy. */
async function recordLostAnswer(
  { bench, lease }: SecretWork,
  answer: Extract<Attempt<SecretAnswer>, { kind: "unknown" }>,
  { what, unknownMeaning }: SendOptions,
): Promise<Failure> {
  const failure = failureOf(answer, { what, change: true });
  await recordOrWarn(bench, lease, { state: "unknown", last_error: lastErrorOf(failure) });
  if (!answer.salvage)
    return outcomeUnknown(lease.entry, failure, {
      meaning: `${unknownMeaning} The request is not sent again automatically.`,
    });
  const { id, refusal } = await keepSalvaged({ bench, lease }, answer.salvage);
  if (refusal !== undefined) {
    const message = `An invalid response contained a secret, and it could not be kept: ${refusal}`;
    return entryFailure(lease.entry, "outcome_unknown", message);
  }
  await recordOrWarn(bench, lease, { ...(await learnedOfKept(bench, lease.entry, id)), state: "undelivered" });
  return undelivered(lease.entry, "the response that contained it was incomplete or invalid.", bench.secrets);
}

export async function takeSecret(
  work: SecretWork,
  { value: { key, secret }, body, requestId }: Answered<SecretAnswer>,
  detail: Entry["detail"],
): Promise<OneTimeSecret> {
  const { bench, lease } = work;
  const learned = learnedOfKey(lease.entry, key.id ?? "", detail);
  if (secret === undefined) {
    // A key that differs from its request may be another person's, so no later run may revoke it as lost.
    const state = detail.differs === undefined ? "secret_lost" : "unusable";
    await recordOrWarn(bench, lease, { ...learned, state });
    await releaseReserved(bench, lease.entry, work.destination);
    assertMatchesRequest(lease.entry);
    throw secretLost(lease.entry, { requestId });
  }
  const receipt = keyReceipt({ text: body.toString(), key, secret });
  const issued = { secret, kind: "access_key", id: key.id ?? "", receipt } as const;
  await deliverSecret(work, issued, { learned, requestId });
  return issued;
}

/** Proves a key's secret by a token exchange (§5.3). @returns false if the profile has no exchange. @throws Failure if it fails */
export async function proveSecret(bench: Workbench, rotation: Entry, secret: string): Promise<boolean> {
  const { account } = bench;
  // Journal data must not decide where a secret is sent, so the profile's exchange is used.
  const { keyExchange: way } = account;
  if (way === null) return false;
  const recorded = rotation.detail.exchange;
  if (way.kind === "endpoint" && recorded?.kind === "endpoint") noteOtherEndpoint(bench, recorded.url, way.url);
  let impossible = false;
  const exchange = async (): Promise<Attempt<unknown>> => {
    const attempt = await account.exchangeKey(secret, way);
    impossible = attempt === undefined;
    return attempt ?? { kind: "answered", status: 200, value: undefined, body: Buffer.alloc(0) };
  };
  const where = `profile ${account.profile} (${account.region})`;
  await readUntilAnswered(bench, exchange, { what: "exchange the new secret for a token", where });
  return !impossible;
}
