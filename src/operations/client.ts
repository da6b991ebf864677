// Creates an OAuth client by the decision table of §4.2; a later process can resume with the same idempotency key.
import {
  checkCreation,
  clientDifferences,
  type CreationDecision,
  type CreationRequest,
  decideCreation,
  creationBody,
  isUndocumented,
  maxClients,
} from "../api/oauth-client-creation.ts";
import { type Attempt, failureOf } from "../api/call/attempt.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure, withRequestId } from "../errors.ts";
import { type Entry, isDeferred, revokedEntry, lastErrorOf, clockSkewMs } from "../journal/entry.ts";
import type { Intent } from "../journal/journal.ts";
import { type Advice, flags } from "../next-step.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";
import { send } from "./acts/send.ts";
import { type CreateOptions, create, type CreationContract, type CreationWork, type Outcome } from "./creation.ts";
import { clientCredential } from "./revocation.ts";
import {
  assertMatchesRequest,
  assertNotKeptElsewhere,
  deliverSecret,
  destroyCopy,
  formerIds,
  keepSalvaged,
  undeliveredIfKept,
  withRelease,
  reserveDestination,
  findSecret,
  settleDelivered,
  continueDelivery,
} from "./secret-delivery.ts";
import { recordFailure, recordingFailure, recordAttempt, sendUntilKnown, waitWhilePending } from "./sending.ts";
import { entryFailure, isoTime, accountFields, noteOtherEndpoint, recordOrWarn, type Workbench } from "./workbench.ts";

export function creationIntent({ account }: Workbench, request: CreationRequest, owner?: Entry): Intent {
  const fingerprint = [request.service_account_id, [...new Set(request.scopes)].sort()];
  return {
    ...accountFields(owner ?? account),
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: creationBody(request),
    fingerprint: JSON.stringify(fingerprint),
    idempotent: true,
    detail: { own_key: true },
  };
}

export async function createOAuthClient(
  bench: Workbench,
  request: CreationRequest,
  asked: CreateOptions,
): Promise<Outcome> {
  checkCreation({ ...request, idempotencyKey: asked.key });
  const detail = { own_key: asked.key === undefined };
  return create(client, bench, { ...creationIntent(bench, request), detail }, asked);
}

export const client: CreationContract = {
  ...clientCredential,
  continueDelivery: async (work) => {
    const { state, resource_id } = work.lease.entry;
    // Without a resource id, the request is repeated first: its response names the client.
    if (resource_id === null) assertNotKeptElsewhere(work.bench, work.lease.entry);
    else if (state === "undelivered" || state === "secret_lost") return continueDelivery(work);
    return undefined;
  },
  send: sendCreation,
  prove: async (bench, rotation, child, { secret, clientId = child.detail.client_id ?? "" }) => {
    // Journal data must not decide where a secret is sent, so the profile's endpoint is used.
    const { proof: due, proveClient } = bench.account;
    if (due === null) return false;
    noteOtherEndpoint(bench, rotation.detail.proof?.token_endpoint, due.token_endpoint);
    await proveClient({ clientId, secret }, due);
    return true;
  },
  replacementIntent: (bench, lost) => creationIntent(bench, JSON.parse(lost.request_text) as CreationRequest, lost),
  readReceipt: clientReceipt,
};

export async function clientReceipt(bench: Workbench, { resource_id }: Entry): Promise<string> {
  const answer = await bench.account.service.oauthClients.get(resource_id ?? "");
  return answer.kind === "answered" ? answer.body.toString() : JSON.stringify({ id: resource_id, client_secret: null });
}

const creationContext = { what: "create the OAuth client", change: true } as const;

interface Run extends CreationWork {
  /** Ids that the new client cannot have: a receipt with one of them describes an earlier client. */
  readonly formerIds: readonly string[];
  /** The entry was already `done`, `replaced` or `unusable` when its idempotency key was typed again. */
  readonly isOver: boolean;
  readonly isDelivered: boolean;
}

async function sendCreation(work: CreationWork): Promise<Outcome> {
  const { bench, lease } = work;
  const { state: initial } = lease.entry;
  const isOver = initial === "done" || initial === "replaced" || initial === "unusable";
  // A refusal keeps this state, because an earlier attempt may have created the client.
  const stateBefore = (): Entry["state"] | undefined => {
    const { state, attempts, detail } = lease.entry;
    if (isOver || (state === "pending" && attempts > 0)) return state;
    const mayExist = attempts > 0 && state !== "refused" && (state !== "open" || detail.in_flight === true);
    return mayExist ? "unknown" : undefined;
  };
  return withRelease(work, async () => {
    try {
      const former = await formerIds(bench, lease.entry);
      const isDelivered = await recordingFailure(bench, lease, { stateBefore: stateBefore() }, () =>
        findSecret(bench, lease),
      );
      const run: Run = { ...work, formerIds: former, isOver, isDelivered };
      return await sendUntilKnown(bench, lease, {
        stateBefore,
        prepare: (state, attempt) => prepareAttempt(run, state, attempt),
        send: () => send(bench, lease, { change: "create client" }),
        read: (answer, state) => applyAnswer(run, answer, state),
        retryLabel: "Trying again under the same key",
      });
    } catch (error) {
      throw error instanceof Failure ? await undeliveredIfKept(work, error) : error;
    }
  });
}

async function prepareAttempt(run: Run, stateBefore: Entry["state"] | undefined, attempt: number): Promise<void> {
  const { bench, lease, destination: to, isDelivered, isOver } = run;
  // If the secret is kept, a destination that fails does not stop the others.
  const isKept = lease.entry.destination?.kind === "several" && bench.secrets.isKept(lease.entry.id);
  // After a delivery or the end of the entry, no response has a secret, so the destination is not prepared.
  const place = isDelivered || isOver ? undefined : await reserveDestination(bench, lease, { destination: to, isKept });
  await bench.secrets.reserve(lease.entry.id);
  const now = await currentDigest(run);
  // The first attempt's digest stays: under another account, the idempotency key names another request (§4.2 rule 2).
  const first = isDeferred(lease.entry) ? undefined : lease.entry.detail.sent_as;
  const detail = { in_flight: !isOver, sent_as: first ?? now, sent_around: attemptTimes(bench, lease.entry) };
  await recordAttempt(run, { state: stateBefore === undefined ? "open" : lease.entry.state, place, detail });
  if (attempt === 1 && first !== undefined && first !== now)
    bench.tell.note(
      `Profile ${bench.account.profile} has another credential than at the first attempt of ${lease.entry.id}. The service continues the creation if both belong to one service account.`,
    );
}

/** A client that was created at most this long after a recorded send time counts as created by this journal's requests. */
const sendWindowMs = 30 * 60_000;

function attemptTimes({ clock }: Workbench, { detail: { sent_around: times = [] } }: Entry): readonly string[] {
  const now = clock.now();
  return times.some((time) => Math.abs(now - Date.parse(time)) < sendWindowMs / 2) ? times : [...times, isoTime(now)];
}

/**
 * @returns the places that may have the secret. If no recorded request fits the time of the client's creation, this journal
 * was probably restored from a backup, and the places include its newer copy.
 */
function placesOfSecret({ account }: Workbench, { detail }: Entry, { created_at }: OAuthClient): readonly string[] {
  const { sent_around: times = [], attempted_at = [] } = detail;
  const madeAt = Date.parse(created_at) - (account.service.clockOffset() ?? 0);
  const isMadeBy = (sent: string): boolean =>
    madeAt > Date.parse(sent) - clockSkewMs && madeAt < Date.parse(sent) + sendWindowMs;
  if (Number.isNaN(madeAt) || times.some(isMadeBy)) return attempted_at;
  return [...new Set([...attempted_at, "a later copy of this journal"])];
}

async function currentDigest({ bench, lease }: CreationWork): Promise<string> {
  try {
    return await bench.account.credentialDigest(lease.entry.id);
  } catch (failure) {
    const none = { kind: "not_sent", reason: "unsendable", detail: "there is no credential" } as const;
    throw failure instanceof Failure ? failureOf({ ...none, failure }, creationContext) : failure;
  }
}

async function applyAnswer(
  run: Run,
  answer: Attempt<OAuthClient>,
  stateBefore: Entry["state"] | undefined,
): Promise<{ end: Outcome } | Failure | undefined> {
  const { bench, lease, isOver } = run;
  const decision = decideCreation(answer);
  const requestId = answer.kind === "answered" ? answer.requestId : undefined;
  try {
    switch (decision.kind) {
      case "store_secret":
        return { end: await deliver(run, decision) };
      case "secret_lost":
        await compare(run, decision.client);
        return { end: await withoutSecret(run, decision, requestId) };
      case "pending":
        await compare(run, decision.client);
        return await waitForCompletion(run, decision.client);
      case "unusable":
        throw await unusable(run, decision.client);
      case "key_reuse":
        throw await recordFailure(bench, lease, { stateBefore, failure: await keyReuse(run, answer) });
      case "refused": {
        const refusal = await recordFailure(bench, lease, { stateBefore, failure: failureOf(answer, creationContext) });
        throw await slotFailure(run, refusal);
      }
      default: {
        const isUnknown = decision.kind === "unknown" && !isOver;
        if (isUnknown && decision.secret !== undefined) {
          const { refusal } = await keepSalvaged(run, decision.secret);
          if (refusal !== undefined)
            bench.tell.warn(`An incomplete response contained a secret, and it could not be kept: ${refusal}`);
        }
        const met = failureOf(answer, creationContext);
        const state = isUnknown ? "unknown" : lease.entry.state;
        const in_flight = isUnknown || (!isOver && stateBefore === "unknown");
        const detail = { ...lease.entry.detail, in_flight };
        await recordOrWarn(bench, lease, { state, last_error: lastErrorOf(met), detail });
        return met;
      }
    }
  } catch (error) {
    throw error instanceof Failure ? withRequestId(error, requestId) : error;
  }
}

/** Once the client is active, the repeated request may return its secret (§4.2). @throws Failure `pending` or `unusable` */
async function waitForCompletion(run: Run, { id }: OAuthClient): Promise<undefined> {
  const { bench, lease } = run;
  const detail = { ...lease.entry.detail, in_flight: false };
  await recordOrWarn(bench, lease, { state: "pending", resource_id: id, last_error: null, detail });
  const settled = await waitWhilePending(bench, { entry: lease.entry, id, waitMs: run.waitMs ?? 0 });
  if (settled.status !== "active") throw await unusable(run, settled);
}

async function keyReuse(run: Run, answer: Attempt<OAuthClient>): Promise<Failure> {
  const { bench, lease, key } = run;
  const isOther = lease.entry.detail.sent_as !== (await currentDigest(run));
  if (!isOther && key !== undefined) return failureOf(answer, creationContext);
  const hint: Advice = isOther
    ? `Give profile ${bench.account.profile} the credential of the first attempt again, or another one of the same service account: the credential changed since.`
    : "Check that the credential belongs to the service account that first sent this request, in the same region.";
  return failureOf(answer, { ...creationContext, step: { hint } });
}

type Decision<K extends CreationDecision["kind"]> = Extract<CreationDecision, { kind: K }>;

async function deliver(run: Run, { client: made, secret, text }: Decision<"store_secret">): Promise<Outcome> {
  const { id, client_id } = made;
  const mine: OneTimeSecret = { secret, kind: "oauth_client", id, clientId: client_id ?? undefined, receipt: text };
  await deliverSecret(run, mine, { learned: learnedOf(run, made) });
  return { kind: "delivered", entry: run.lease.entry, receipt: text, secret: mine };
}

function learnedOf(run: Run, made: OAuthClient) {
  const { id, client_id } = made;
  const detail = { ...run.lease.entry.detail, client_id, differs: differencesOf(run, made), in_flight: false };
  return { resource_id: id, last_error: null, detail };
}

function differencesOf({ lease: { entry }, formerIds: notIds }: Run, made: OAuthClient): string | undefined {
  return clientDifferences(made, JSON.parse(entry.request_text) as CreationRequest, { id: entry.resource_id, notIds });
}

/** @throws Failure `unusable` if the receipt differs from the request: the client may be another person's */
async function compare(run: Run, made: OAuthClient): Promise<void> {
  const { bench, lease, isOver } = run;
  const differs = differencesOf(run, made);
  if (differs === undefined) return;
  const change = { state: "unusable", resource_id: made.id, detail: { ...lease.entry.detail, differs } } as const;
  if (!isOver) await recordOrWarn(bench, lease, { ...change, last_error: null });
  assertMatchesRequest({ ...lease.entry, ...change });
}

/** Settles an `active` client whose receipt has no secret (§4.2): the secret was delivered, is kept, or is lost. */
async function withoutSecret(run: Run, decision: Decision<"secret_lost">, requestId?: string): Promise<Outcome> {
  const { bench, lease, isOver, isDelivered } = run;
  const { text: receipt } = decision;
  if (isOver) return { kind: "delivered_before", entry: lease.entry, receipt };
  const learned = learnedOf(run, decision.client);
  if (isDelivered) await settleDelivered(run, learned);
  const found = isDelivered ? {} : await continueDelivery({ ...run, learned });
  if (found !== undefined) return { kind: "delivered_before", entry: lease.entry, receipt, ...found };
  const detail = { ...learned.detail, attempted_at: placesOfSecret(bench, lease.entry, decision.client) };
  await recordOrWarn(bench, lease, { ...learned, state: "secret_lost", detail });
  return { kind: "secret_lost", entry: lease.entry, receipt, requestId };
}

/** Records a client with an unusable status (§4.2). Only the kept secret of a revoked client is destroyed. */
async function unusable(run: Run, made: OAuthClient): Promise<Failure> {
  const { bench, lease, isOver } = run;
  if (!isOver || lease.entry.state === "done")
    await recordOrWarn(bench, lease, { state: "unusable", resource_id: made.id, last_error: null });
  if (!isUndocumented(made)) await destroyCopy(bench, lease.entry, { shown: made.status });
  return entryFailure(lease.entry, "unusable", `The client ${made.id} is ${made.status}: it must not be used.`, {
    meaning: "The same idempotency key always returns this client.",
    hint: "Create another one under a new key.",
    nextCommand: { add: [flags.new], without: [`${flags.idempotencyKey} <k>`], of: "create" },
  });
}

/** If the service account may have the maximum number of clients (§8), the failure lists clients that a person can revoke. */
async function slotFailure(run: Run, refusal: Failure): Promise<Failure> {
  const { code, param } = refusal.details.problem ?? {};
  // Other codes concern the idempotency key (§7). A response that names a parameter has another cause.
  if (refusal.kind !== "conflict" || code !== "invalid_request" || param !== undefined) return refusal;
  const { service_account_id: account } = JSON.parse(run.lease.entry.request_text) as CreationRequest;
  const holders = await holdersOf(run, account);
  if (holders.length === 0) return refusal;
  const named = holders.map(({ id, status }) => (status === "active" ? id : `${id} (${status})`)).join(", ");
  return new Failure(refusal.kind, refusal.message, {
    ...refusal.details,
    meaning: `Nothing was revoked. If ${account} has all ${maxClients} clients that it can have, you can revoke one of these: ${named}.`,
    hint: "Revoke one that no program uses with integ oauth-clients revoke, then run the command again.",
    nextCommand: undefined,
  });
}

/** Most clients of a long journal may be revoked, so the number of reads is limited. */
const maxReads = 3 * maxClients;

async function holdersOf({ bench, lease, formerIds: keep }: Run, serviceAccount: string) {
  const { base_url, operation } = lease.entry;
  const asked = new Set<string>();
  const replaced = new Set<string | null>();
  const holders: { readonly id: string; readonly status: string }[] = [];
  for (const other of await bench.journal.select({ all: true, serviceAccount, operation, trusted: true })) {
    const { resource_id: id, state } = other;
    replaced.add(revokedEntry(other));
    const isCandidate =
      id !== null && !keep.includes(id) && state !== "replaced" && !replaced.has(other.id) && !asked.has(id);
    if (!isCandidate || other.base_url !== base_url) continue;
    asked.add(id);
    const answer = await bench.account.service.oauthClients.get(id);
    const { status } = answer.kind === "answered" ? answer.value : { status: "not confirmed" };
    if (status !== "revoked") holders.push({ id, status });
    if (holders.length === maxClients || asked.size === maxReads) break;
  }
  return holders.sort((a, b) => Number(a.status === "active") - Number(b.status === "active"));
}
