// The creation of an OAuth client: the decision table of §4.2 followed step by step, retried under one key, resumable by any
// later process; and what else the client's contract makes of a creation.
import {
  checkCreation,
  clientDifferences,
  type CreationDecision,
  type CreationRequest,
  decideCreation,
  creationBody,
  isUndocumented,
} from "../api/oauth-client-creation.ts";
import { type Attempt, failureOf, type Salvage } from "../api/call/attempt.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import { type Entry, type EntryProgress, isPutOff, wasClaimed } from "../journal/entry.ts";
import type { Intent } from "../journal/journal.ts";
import { type Advice, flags } from "../next-step.ts";
import type { Destination, OneTimeSecret } from "../secrets/destination.ts";
import { send } from "./acts/send.ts";
import {
  type CreationContract,
  type CreationOptions,
  type CreationWork,
  finishAdmitted,
  type Made,
} from "./creation.ts";
import {
  completeDelivery,
  deliverWhatIsKept,
  findSecret,
  formerIds,
  isPartlyDelivered,
  keepDelivered,
  keptUnnamed,
  refuseReplacement,
  settleIfFound,
} from "./delivery-recovery.ts";
import { goneOnPurpose, markRevoking, untilClientRevoked } from "./revocation.ts";
import {
  assertAsAsked,
  deliverSecret,
  destroyCopy,
  keepStray,
  releaseReserved,
  reserveDestination,
  settleDelivered,
} from "./secret-delivery.ts";
import {
  admitTo,
  attemptedHere,
  beginning,
  delayBeforeNext,
  isTooEarly,
  noSlot,
  readUntilAnswered,
  stillPending,
  untilDue,
  untilNotPending,
  wait,
} from "./sending.ts";
import {
  detailsOf,
  lastErrorOf,
  madeAs,
  madeFor,
  outcomeUnknown,
  recordAfterwards,
  withRequestId,
  type Workbench,
} from "./workbench.ts";

export interface ClientCreationOptions extends Pick<CreationOptions, "waitMs" | "mayReplace" | "key"> {
  readonly destination: Destination;
  /** `--new`: leave an unfinished creation of the same request alone. */
  readonly fresh?: boolean;
}

/** The intent of a creation as the journal admits it. @param begun the entry whose work it is a step of */
export function creationIntent({ account }: Workbench, request: CreationRequest, begun?: Entry): Intent {
  // The same service account and the same set of scopes are the same intent.
  const fingerprint = [request.service_account_id, [...new Set(request.scopes)].sort()];
  return {
    ...(begun ? madeAs(begun) : madeFor(account)),
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: creationBody(request),
    fingerprint: JSON.stringify(fingerprint),
    idempotent: true,
    detail: { own_key: true },
  };
}

/**
 * Creates an OAuth client, or finishes the unfinished creation of the same one.
 * @throws Failure of every kind that the decision table knows; the journal holds what may have happened
 */
export async function createOAuthClient(
  bench: Workbench,
  request: CreationRequest,
  { destination, fresh, ...options }: ClientCreationOptions,
): Promise<Made> {
  const { key } = options;
  checkCreation({ ...request, idempotencyKey: key });
  const since = beginning(bench);
  const intent = { ...creationIntent(bench, request), detail: { own_key: key === undefined } };
  // As it was typed: a client that is delivered needs no space at its destination.
  const admission = await admitTo(bench, intent, {
    destination,
    choice: { fresh, key },
    isThere: async (lease) => (await completeDelivery(bench, lease)) || isPartlyDelivered(lease.entry),
  });
  if (admission.kind === "resumed")
    bench.tell.note(
      `Resuming the unfinished creation ${admission.lease.entry.id}, under its own key (${flags.new} starts another).`,
    );
  const destinationOf = (): Promise<Destination> => Promise.resolve(destination);
  return finishAdmitted(client, { bench, admission, since }, { ...options, destinationOf });
}

export const client: CreationContract = {
  noun: "client",
  operation: "oauth_client.create",
  assertReady: () => {},
  takeUp: foundMeanwhile,
  send: sendCreation,
  look: () => Promise.resolve(undefined),
  assertNotRevoked: assertClientNotRevoked,
  revokeLost: async (bench, lost) => {
    const id = lost.entry.resource_id ?? "";
    bench.tell.note(`Revoking ${id}, whose secret is lost.`);
    await untilClientRevoked(bench, id, {
      grounds: { kind: "secret_lost", entry: lost.entry.id },
      lease: lost,
      mark: () => markRevoking(lost),
    });
  },
  again: (bench, lost) => creationIntent(bench, JSON.parse(lost.request_text) as CreationRequest, lost),
  settlesFirst: false,
  receiptNow: clientReceipt,
};

/** The receipt of a client whose secret was delivered before, as the service shows it now. */
export async function clientReceipt(bench: Workbench, { resource_id }: Entry): Promise<string> {
  const answer = await bench.account.service.oauthClients.get(resource_id ?? "");
  return answer.kind === "answered" ? answer.body.toString() : JSON.stringify({ id: resource_id, client_secret: null });
}

/** Settles what is found, and ends the replacement that was started for it and never sent. @returns as `settleIfFound` */
async function foundMeanwhile({ bench, lease }: CreationWork, begun: Entry | undefined): Promise<boolean> {
  try {
    return await settleIfFound(bench, lease);
  } finally {
    const { id, state } = lease.entry;
    if (begun !== undefined && state !== "secret_lost") {
      const unneeded = await bench.journal.lease(begun.id);
      try {
        await refuseReplacement(bench, unneeded, `the secret of ${id} was found`);
      } finally {
        await unneeded.release();
      }
    }
  }
}

/**
 * A client that someone has revoked since its secret was lost, or that was disabled, is not replaced: that was on purpose.
 * @throws Failure `unusable`, and the entry is settled; or of the read, and nothing was revoked
 */
async function assertClientNotRevoked(
  bench: Workbench,
  lease: Parameters<CreationContract["revokeLost"]>[1],
): Promise<void> {
  const { resource_id: id, detail } = lease.entry;
  if (id === null || detail.revoking === true) return;
  const { oauthClients } = bench.account.service;
  const asked = readUntilAnswered(bench, () => oauthClients.get(id), { what: "get the OAuth client" });
  // A service that refuses to show a client says nothing about it; one that cannot be asked now is asked again later.
  const shown = await asked.catch((error: unknown) => {
    if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return undefined;
    throw error;
  });
  if (shown === undefined || shown.status === "active" || shown.status === "pending") return;
  throw await goneOnPurpose(bench, lease, `The client ${id}, whose secret is lost, is ${shown.status}`);
}

const creating = { what: "create the OAuth client", change: true } as const;

/** One run of sending: what is known before its first attempt. */
interface Run extends CreationWork {
  /** Clients that existed before: a receipt that shows one of them is not of a new client. */
  readonly formerIds: readonly string[];
  /** The entry was settled before: a key given again. What the journal says of it does not change. */
  readonly isOver: boolean;
  /** The remembered destination holds the secret already. */
  readonly isDelivered: boolean;
}

/** True if an earlier attempt may have made the client: what another attempt is refused does not undo that. */
function isUncertain({ lease: { entry }, isOver }: Pick<Run, "lease" | "isOver">): boolean {
  const { state, attempts, detail } = entry;
  return !isOver && attempts > 0 && state !== "refused" && (state !== "open" || detail.in_flight === true);
}

/** Sends the stored request under its key until the service has said what became of it, and delivers the secret. */
async function sendCreation(work: CreationWork): Promise<Made> {
  const { bench, lease, destination } = work;
  const { state } = lease.entry;
  const isOver = state === "done" || state === "replaced" || state === "unusable";
  let answer: Attempt<OAuthClient> | undefined;
  let leavesReserve = false;
  try {
    const isUnsure = isUncertain({ lease, isOver });
    const former = await formerIds(bench, lease.entry);
    const isDelivered = await orGiveUp(work, { isOver, isUnsure }, () => isThere(work));
    const run: Run = { ...work, formerIds: former, isOver, isDelivered };
    if (isUnsure) await orGiveUp(work, { isOver, isUnsure }, () => untilDue(bench, lease.entry));
    else await untilDue(bench, lease.entry);
    const startedAt = bench.clock.elapsed();
    for (let attempt = 1; ; attempt++) {
      const about = { isOver, isUnsure: isUncertain(run) };
      const isOther = await orGiveUp(work, about, () => makeReady(run, about));
      if (attempt === 1 && isOther) tellOtherCredential(work);
      answer = await send(bench, lease, { change: "create client" });
      const decision = decideCreation(answer);
      if (decision.kind === "store_secret") {
        return await deliver(run, decision).catch((error: unknown) => {
          // The secret may be whole in what was reserved, and recovery looks there.
          leavesReserve = error instanceof Failure && error.kind === "secret_lost";
          throw error;
        });
      }
      const made = await follow(run, { decision, answer, isOther, ...about });
      if (made !== undefined) return made;
      if (decision.kind === "pending") continue;
      const state = decision.kind === "unknown" && !isOver ? "unknown" : lease.entry.state;
      const isUnsure = about.isUnsure || state === "unknown";
      await againLater(run, { answer, attempt, startedAt, isOver, isUnsure, state });
    }
  } catch (error) {
    throw error instanceof Failure ? withRequestId(await keptUnnamed(work, error), requestIdOf(answer)) : error;
  } finally {
    if (!leavesReserve) await releaseReserved(bench, lease.entry, destination);
  }
}

function requestIdOf(answer: Attempt<OAuthClient> | undefined): string | undefined {
  return answer?.kind === "answered" ? answer.requestId : undefined;
}

/** Whether the secret is at its destination; one that some of several have is kept for the others. */
async function isThere({ bench, lease }: CreationWork): Promise<boolean> {
  if (wasClaimed(lease.entry) || (await completeDelivery(bench, lease))) return true;
  await keepDelivered(bench, lease);
  return false;
}

interface Doubt {
  readonly isOver: boolean;
  /** An earlier attempt may have made the client. */
  readonly isUnsure: boolean;
}

async function orGiveUp<T>(work: CreationWork, doubt: Doubt, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw error instanceof Failure ? await giveUp(work, doubt, { failure: error }) : error;
  }
}

/**
 * Everything that must be in place before a request may leave: a destination for the secret, and the attempt on disk.
 * @returns whether an earlier attempt was made with another credential
 */
async function makeReady(run: Run, { isOver, isUnsure }: Doubt): Promise<boolean> {
  const { bench, lease, destination: to, isDelivered } = run;
  if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
  bench.disk.assertHealthy();
  // Of several destinations those that can be reached get a secret that is kept.
  const isKept = lease.entry.destination?.kind === "several" && bench.secrets.isKept(lease.entry.id);
  // The receipt of a client that is delivered, or that was finished, has no secret: nothing is reserved for one.
  const place = isDelivered || isOver ? undefined : await reserveDestination(bench, lease, { destination: to, isKept });
  await bench.secrets.reserve(lease.entry.id);
  const { id, attempts, state, destination, detail } = lease.entry;
  const now = await bench.account.credentialDigest(id).catch((error: unknown) => {
    throw error instanceof Failure ? failureOf({ ...unsendable, failure: error }, creating) : error;
  });
  // To the service, a request of another account under the same key is another request (§4.2 rule 2).
  const first = isPutOff(lease.entry) ? undefined : detail.sent_as;
  await lease.record({
    attempts: attempts + 1,
    state: isUnsure || isOver ? state : "open",
    destination: place ? { ...place } : destination,
    // From here on a crash leaves an attempt whose outcome no one knows.
    detail: { ...attemptedHere(bench, lease.entry), in_flight: !isOver, sent_as: first ?? now },
  });
  return first !== undefined && first !== now;
}

/** Of a credential that cannot be had. */
const unsendable = { kind: "not_sent", reason: "unsendable", detail: "there is no credential" } as const;

function tellOtherCredential({ bench, lease }: CreationWork): void {
  bench.tell.note(
    `Profile ${bench.account.profile} has another credential than at the first attempt of ${lease.entry.id}. The service continues the creation if both belong to one service account.`,
  );
}

interface Response extends Doubt {
  readonly decision: Exclude<CreationDecision, { kind: "store_secret" }>;
  readonly answer: Attempt<OAuthClient>;
  readonly isOther: boolean;
}

/** What the decision table makes of a response without a secret. @returns nothing if another request is due */
async function follow(run: Run, { decision, answer, isOther, ...doubt }: Response): Promise<Made | undefined> {
  const { bench, lease } = run;
  if (decision.kind === "secret_lost" || decision.kind === "pending") await compare(run, decision.client);
  switch (decision.kind) {
    case "secret_lost":
      return withoutSecret(run, { client: decision.client, receipt: decision.text, requestId: requestIdOf(answer) });
    case "pending": {
      // The key is kept, the client inspected, nothing created again; the next receipt shows whether it has a secret for us.
      const { id } = decision.client;
      const detail = { ...lease.entry.detail, in_flight: false };
      await recordAfterwards(bench, lease, { state: "pending", resource_id: id, last_error: null, detail });
      const settled = await untilNotPending(bench, { entry: lease.entry, id, waitMs: run.waitMs });
      if (settled.status !== "active") throw await unusable(run, settled);
      return undefined;
    }
    case "unusable":
      throw await unusable(run, decision.client);
    case "unknown":
      // 5xx, cut, timeout, broken body: the client may exist. The secret of a settled creation was delivered before.
      if (decision.secret !== undefined && !run.isOver) await keepSalvage(run, decision.secret);
      return undefined;
    case "key_reuse":
      throw await giveUp(run, doubt, { failure: keyReuse(run, answer, isOther) });
    case "refused": {
      const refusal = await giveUp(run, doubt, { failure: failureOf(answer, creating) });
      throw await noSlot(bench, lease.entry, { refusal, keep: run.formerIds });
    }
    default:
      return undefined;
  }
}

/** Keeps a secret that came in a broken response, before anything else: a crash must not find it nowhere. */
async function keepSalvage(run: Run, salvage: Salvage): Promise<void> {
  const { refusal } = await keepStray(run, salvage);
  if (refusal !== undefined)
    run.bench.tell.warn(`An incomplete response contained a secret, and it could not be kept: ${refusal}`);
}

/** The failure of a key that the service knows with another request (§4.2), with what a person can do about it. */
function keyReuse({ bench, key }: Run, answer: Attempt<OAuthClient>, isOther: boolean): Failure {
  if (!isOther && key !== undefined) return failureOf(answer, creating);
  const hint: Advice = isOther
    ? `Give profile ${bench.account.profile} the credential of the first attempt again, or another one of the same service account: the credential changed since.`
    : "Check that the credential belongs to the service account that first sent this request, in the same region.";
  return failureOf(answer, { ...creating, step: { hint } });
}

async function deliver(run: Run, { client: made, secret, text }: Extract<CreationDecision, { kind: "store_secret" }>) {
  const { id, client_id } = made;
  const mine: OneTimeSecret = { secret, kind: "oauth_client", id, clientId: client_id ?? undefined, receipt: text };
  await deliverSecret(run, mine, { learned: learnedOf(run, made) });
  return { kind: "delivered", entry: run.lease.entry, receipt: text } as const;
}

function learnedOf(run: Run, made: OAuthClient): Partial<EntryProgress> & Pick<Entry, "detail"> {
  const { id, client_id } = made;
  const differs = differencesOf(run, made);
  return {
    resource_id: id,
    last_error: null,
    detail: { ...run.lease.entry.detail, client_id, differs, in_flight: false },
  };
}

function differencesOf({ lease: { entry }, formerIds: notIds }: Run, made: OAuthClient): string | undefined {
  return clientDifferences(made, JSON.parse(entry.request_text) as CreationRequest, { id: entry.resource_id, notIds });
}

/**
 * A receipt that shows something else than was asked for ends the work; nothing of such a client is ever revoked, since it may
 * be someone's.
 */
async function compare(run: Run, made: OAuthClient): Promise<void> {
  const { bench, lease, isOver } = run;
  const differs = differencesOf(run, made);
  if (differs === undefined) return;
  const change = { state: "unusable", resource_id: made.id, detail: { ...lease.entry.detail, differs } } as const;
  if (!isOver) await recordAfterwards(bench, lease, { ...change, last_error: null });
  assertAsAsked({ ...lease.entry, ...change });
}

/** `active` without a secret (§4.2): delivered by an earlier process, kept here, or lost. */
async function withoutSecret(
  run: Run,
  about: { readonly client: OAuthClient; readonly receipt: string; readonly requestId: string | undefined },
): Promise<Made> {
  const { bench, lease, isOver, isDelivered } = run;
  const { receipt } = about;
  if (isOver) return { kind: "delivered_before", entry: lease.entry, receipt };
  const learned = learnedOf(run, about.client);
  const found = isDelivered ? "delivered" : await findSecret(run, { ...lease.entry, ...learned });
  if (found !== "nowhere") {
    await (found === "kept" ? deliverWhatIsKept(run, learned) : settleDelivered(run, learned));
    return { kind: "delivered_before", entry: lease.entry, receipt };
  }
  await recordAfterwards(bench, lease, { ...learned, state: "secret_lost" });
  return { kind: "secret_lost", entry: lease.entry, receipt, requestId: about.requestId };
}

/** The failure of a creation whose client must not be used (§4.2): a secret that came for it is useless. */
async function unusable(run: Run, made: OAuthClient): Promise<Failure> {
  const { bench, lease, isOver } = run;
  if (!isOver || lease.entry.state === "done")
    await recordAfterwards(bench, lease, { state: "unusable", resource_id: made.id, last_error: null });
  if (!isUndocumented(made)) await destroyCopy(run, { shown: made.status });
  return new Failure("unusable", `The client ${made.id} is ${made.status}: it must not be used.`, {
    ...detailsOf(lease.entry),
    meaning: "The same idempotency key always returns this client.",
    hint: "Create another one under a new key.",
    nextCommand: { add: [flags.new], without: [`${flags.idempotencyKey} <k>`], of: "create" },
  });
}

/** The same request again, when it is due. */
async function againLater(
  run: Run,
  at: Doubt & {
    readonly answer: Attempt<OAuthClient>;
    readonly attempt: number;
    readonly startedAt: number;
    readonly state: Entry["state"];
  },
): Promise<void> {
  const { bench } = run;
  const { interruption } = bench.clock;
  const met = failureOf(at.answer, creating);
  await noteError(run, { ...at, failure: met });
  const ended = (): Promise<Failure> => {
    const { aborted, reason } = interruption;
    return giveUp(run, at, { failure: aborted && reason instanceof Failure ? reason : met, met });
  };
  const delay = delayBeforeNext(bench, at.answer, at);
  if (delay === null || interruption.aborted) throw await ended();
  try {
    await wait(bench, delay, `${met.message} Trying again under the same key`);
  } catch (error) {
    // A wait that Ctrl-C ends: the failure says what became of the work, not that a key was pressed.
    throw error instanceof Failure ? await ended() : error;
  }
}

/**
 * Ends this run without a client: the journal stays uncertain if any attempt is, and is settled if none is.
 * @param about.met what the last request met, if something else ends the run
 */
async function giveUp(
  { bench, lease }: CreationWork,
  { isOver, isUnsure }: Doubt,
  { failure, met = failure }: { readonly failure: Failure; readonly met?: Failure },
): Promise<Failure> {
  const { state } = lease.entry;
  if (isUnsure && !isOver) {
    await noteError({ bench, lease }, { failure, isUnsure, state: state === "pending" ? state : "unknown" });
    return state === "pending" ? stillPending(lease.entry, failure) : outcomeUnknown(lease.entry, failure);
  }
  const end = isOver
    ? { failure, state }
    : isTooEarly(met)
      ? { failure: met, state: "open" as const }
      : { failure, state: "refused" as const };
  await noteError({ bench, lease }, { ...end, isUnsure: false });
  return new Failure(failure.kind, failure.message, detailsOf(lease.entry, failure.details));
}

function noteError(
  { bench, lease }: Pick<CreationWork, "bench" | "lease">,
  {
    failure,
    state,
    isUnsure,
  }: { readonly failure: Failure; readonly state: Entry["state"]; readonly isUnsure: boolean },
): Promise<boolean> {
  const detail = { ...lease.entry.detail, in_flight: isUnsure && state !== "pending" };
  return recordAfterwards(bench, lease, { state, last_error: lastErrorOf(failure), detail });
}
