// Owns: the creation of an OAuth client, from the intent on disk to the secret in its place: the decision table of §4.2
// followed step by step, retried under one key, resumable by any later process.
// Must not know: flags, terminals, files.
import type { Attempt } from "../api/attempt.ts";
import { failureOf } from "../api/failure-of.ts";
import {
  checkCreation,
  creationBody,
  decideCreation,
  type CreationDecision,
  type OAuthClient,
} from "../api/oauth-clients.ts";
import { nextDelay } from "../api/retry.ts";
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import { nextStep } from "../journal/entry.ts";
import type { Drive, Intent } from "../journal/journal.ts";
import type { Destination, DestinationRecord, OneTimeSecret } from "../secrets/destination.ts";
import { detailsOf, madeFor, mayPass, outcomeUnknown, recordAfterwards, type Workbench } from "./workbench.ts";

export interface CreationRequest {
  readonly service_account_id: string;
  readonly scopes: readonly string[];
}

export interface CreationOptions {
  readonly destination: Destination;
  /** How long a pending creation is waited for, milliseconds; 0 inspects once. */
  readonly waitMs: number;
  /** `--idempotency-key` */
  readonly key?: string;
  /** `--new`: leave an unfinished twin alone. */
  readonly fresh?: boolean;
}

/** A creation that came to its end. A lost secret is an end too: what follows is another piece of work. */
export type CreationEnd =
  | { readonly kind: "delivered"; readonly entry: Entry; readonly receipt: string }
  /** The secret was delivered by an earlier process: the receipt shows the client as it stands. */
  | { readonly kind: "delivered_before"; readonly entry: Entry; readonly receipt: string }
  | { readonly kind: "secret_lost"; readonly entry: Entry; readonly receipt: string };

/** The request's normal form: the same service account and the same set of scopes are the same intent. */
export function twinOf(request: CreationRequest): string {
  return JSON.stringify([request.service_account_id, [...new Set(request.scopes)].sort()]);
}

/** The intent of a creation as the journal admits it. */
export function creationIntent(bench: Workbench, request: CreationRequest): Intent {
  return {
    ...madeFor(bench.account),
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: creationBody(request),
    twin: twinOf(request),
    idempotent: true,
  };
}

/**
 * Creates an OAuth client, or finishes the unfinished creation of the same one.
 * @throws Failure of every kind that the decision table knows; the journal holds what may have happened
 */
export async function createOAuthClient<T>(
  bench: Workbench,
  request: CreationRequest,
  options: CreationOptions & { readonly then: (end: CreationEnd, drive: Drive) => Promise<T> },
): Promise<T> {
  checkCreation({ ...request, idempotencyKey: options.key });
  await options.destination.check();
  const admission = await bench.journal.admit(creationIntent(bench, request), {
    fresh: options.fresh,
    key: options.key,
  });
  const { drive } = admission;
  try {
    if (admission.kind === "resumed")
      bench.tell.note(
        `Going on with the unfinished creation ${drive.entry.id}, under its own key (--new starts another).`,
      );
    return await options.then(await driveCreation(bench, drive, options), drive);
  } finally {
    drive.release();
  }
}

/** One creation under way: what is known of earlier attempts, and since when this process tries. */
interface Course {
  readonly bench: Workbench;
  readonly drive: Drive;
  readonly options: CreationOptions;
  readonly startedAt: number;
  /** An attempt of this or an earlier process may have made the client. */
  uncertain: boolean;
  /** The entry was settled before: a key given again. What the journal says of it stays. */
  readonly settledBefore: boolean;
  /** The remembered destination holds the secret already. */
  readonly deliveredBefore: boolean;
  attempt: number;
}

/**
 * Sends the stored request under its key until the service has said how it stands, and brings the secret home.
 * @param drive the entry, driven by this process alone
 */
export async function driveCreation(bench: Workbench, drive: Drive, options: CreationOptions): Promise<CreationEnd> {
  const { entry } = drive;
  const settledBefore = entry.state === "done" || entry.state === "replaced" || entry.state === "unusable";
  const course: Course = {
    bench,
    drive,
    options,
    startedAt: bench.clock.now(),
    uncertain: !settledBefore && entry.state !== "refused" && entry.attempts > 0,
    settledBefore,
    deliveredBefore: await lookAtDestination(bench, entry),
    attempt: 0,
  };
  try {
    for (;;) {
      const end = await onceMore(course);
      if (end) return end;
    }
  } finally {
    await options.destination.release();
    if (!bench.secrets.isKept(entry.id)) await bench.secrets.release(entry.id);
  }
}

async function lookAtDestination(bench: Workbench, entry: Entry): Promise<boolean> {
  if (!entry.destination) return false;
  const client = entry.detail.client_id;
  return bench.secrets.wasDelivered(entry.destination as DestinationRecord, {
    clientId: typeof client === "string" ? client : undefined,
  });
}

/** One POST and what it leads to; nothing where another one is due. */
async function onceMore(course: Course): Promise<CreationEnd | undefined> {
  const { bench, drive } = course;
  course.attempt += 1;
  await makeReady(course);
  const answer = await bench.clock.finishing(() =>
    bench.account.service.oauthClients.create(drive.entry.request_text, drive.entry.idempotency_key!),
  );
  const decision = decideCreation(answer);
  switch (decision.kind) {
    case "store_secret":
      return deliver(course, decision.client, { secret: decision.secret, text: decision.text });
    case "secret_lost":
      return withoutSecret(course, decision.client, decision.text);
    case "pending":
      return inspect(course, decision.client);
    case "unusable":
      throw unusable(course, decision.client);
    case "unknown":
      return unknown(course, answer, decision);
    case "key_reuse":
    case "refused":
      throw refused(course, answer);
    case "wait":
    case "not_sent":
      return againLater(course, answer);
  }
}

/** Everything that must stand before a request may leave: a place for the secret, and the attempt on disk. */
async function makeReady(course: Course): Promise<void> {
  const { bench, drive, options } = course;
  try {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    const destination = course.deliveredBefore ? undefined : await options.destination.prepare(drive.entry.id);
    await bench.secrets.reserve(drive.entry.id);
    if (course.settledBefore) drive.record({ attempts: drive.entry.attempts + 1 });
    else
      drive.record({
        attempts: drive.entry.attempts + 1,
        state: course.uncertain ? drive.entry.state : "open",
        ...(destination ? { destination: { ...destination } } : {}),
      });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw giveUp(course, error);
  }
}

/** A secret in hand is delivered before anything else is said or complained about. */
async function deliver(
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
  try {
    await options.destination.deliver(secret);
  } catch (error) {
    await keep(course, secret, error);
    recordAfterwards(bench, drive, { ...known, state: "undelivered" });
    throw undelivered(drive.entry, error);
  }
  recordAfterwards(bench, drive, { ...known, state: "done" });
  return { kind: "delivered", entry: drive.entry, receipt: got.text };
}

async function keep(course: Course, secret: OneTimeSecret, because: unknown): Promise<void> {
  try {
    await course.bench.secrets.keep(course.drive.entry.id, secret);
  } catch (error) {
    recordAfterwards(course.bench, course.drive, { state: "secret_lost", resource_id: secret.id });
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

function undelivered(entry: Entry, because: unknown): Failure {
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
async function withoutSecret(course: Course, client: OAuthClient, receipt: string): Promise<CreationEnd> {
  const { bench, drive } = course;
  const known = {
    resource_id: client.id,
    last_error: null,
    detail: { ...drive.entry.detail, client_id: client.client_id },
  };
  if (course.settledBefore) return { kind: "delivered_before", entry: drive.entry, receipt };
  if (bench.secrets.isKept(drive.entry.id)) {
    recordAfterwards(bench, drive, { ...known, state: "undelivered" });
    throw undelivered(drive.entry, new Error("an earlier run could not reach its destination."));
  }
  if (course.deliveredBefore || (await lookAtDestination(bench, { ...drive.entry, detail: known.detail }))) {
    recordAfterwards(bench, drive, { ...known, state: "done" });
    return { kind: "delivered_before", entry: drive.entry, receipt };
  }
  recordAfterwards(bench, drive, { ...known, state: "secret_lost" });
  return { kind: "secret_lost", entry: drive.entry, receipt };
}

/** `pending` (§4.2): the key is kept, the resource inspected, nothing created anew. */
async function inspect(course: Course, client: OAuthClient): Promise<undefined> {
  const { bench, drive, options } = course;
  course.uncertain = true;
  recordAfterwards(bench, drive, { state: "pending", resource_id: client.id, last_error: null });
  const deadline = bench.clock.now() + options.waitMs;
  for (let round = 0; ; round++) {
    const answer = await bench.account.service.oauthClients.get(client.id);
    const status = answer.kind === "answered" ? answer.value.status : "pending";
    if (answer.kind === "answered" && status !== "pending") {
      if (status !== "active") throw unusable(course, answer.value);
      return undefined; // The next replay tells whether it still has a secret for us.
    }
    const pauseMs = Math.min(10_000, 500 * 2 ** round) * (0.5 + bench.clock.random() / 2);
    if (bench.clock.now() + pauseMs > deadline) throw stillPending(drive.entry);
    await waitOr(course, pauseMs, `Client ${client.id} is pending`, () => stillPending(drive.entry));
  }
}

function stillPending(entry: Entry): Failure {
  return new Failure("pending", "The service accepted the creation and has not completed it yet.", {
    ...detailsOf(entry),
    meaning: "The key is saved; the creation goes on by itself.",
    hint: nextStep(entry) ?? undefined,
  });
}

/** A wait that Ctrl-C ends: the failure then says how the work stands, not that a key was pressed. */
async function waitOr(course: Course, ms: number, ...[label, failure]: [string, () => Failure]): Promise<void> {
  const done = course.bench.tell.waiting(label, ms);
  try {
    await course.bench.clock.sleep(ms);
  } catch (error) {
    if (error instanceof Failure) throw failure();
    throw error;
  } finally {
    done();
  }
}

function unusable(course: Course, client: OAuthClient): Failure {
  const { bench, drive } = course;
  if (!course.settledBefore || drive.entry.state === "done")
    recordAfterwards(bench, drive, { state: "unusable", resource_id: client.id, last_error: null });
  return new Failure("unusable", `The client ${client.id} is ${client.status}: it must not be used.`, {
    ...detailsOf(drive.entry),
    meaning: "A receipt under the same key always shows this client.",
    hint: "Create another one under a new key: the same command with --new, and without --idempotency-key.",
  });
}

/** 5xx, cut, time-out, broken body: the client may exist. A secret that can still be read is delivered all the same. */
async function unknown(
  course: Course,
  answer: Attempt<OAuthClient>,
  decision: Extract<CreationDecision, { kind: "unknown" }>,
): Promise<undefined> {
  const { drive } = course;
  course.uncertain = !course.settledBefore;
  const failure = failureOf(answer, { what: "create OAuth client", change: true });
  noteError(course, failure, course.settledBefore ? drive.entry.state : "unknown");
  if (decision.secret !== undefined) await saveStray(course, decision.secret);
  await pause(course, answer, failure);
}

/** A secret in an answer that breaks the contract: kept for `claim`, since nobody knows what it belongs to. */
async function saveStray(course: Course, stray: { secret: string; text: string }): Promise<void> {
  const { bench, drive } = course;
  const secret: OneTimeSecret = { secret: stray.secret, kind: "oauth_client", id: "", receipt: stray.text };
  await keep(course, secret, new Error("the answer that brought it breaks the contract"));
  recordAfterwards(bench, drive, { state: "undelivered" });
  throw undelivered(drive.entry, new Error("the answer that brought it breaks the contract."));
}

/** 429, or nothing was sent: the same request again, when it is due. */
async function againLater(course: Course, answer: Attempt<OAuthClient>): Promise<undefined> {
  const failure = failureOf(answer, { what: "create OAuth client", change: true });
  noteError(course, failure, course.drive.entry.state);
  await pause(course, answer, failure);
}

async function pause(course: Course, answer: Attempt<OAuthClient>, failure: Failure): Promise<void> {
  const { bench } = course;
  const retryAfterSeconds =
    answer.kind === "refused" || answer.kind === "unknown" ? answer.retryAfterSeconds : undefined;
  const hopeless = (answer.kind === "unknown" || answer.kind === "not_sent") && !mayPass(answer.reason);
  const elapsedMs = bench.clock.now() - course.startedAt;
  const delay = hopeless
    ? null
    : nextDelay({
        attempt: course.attempt,
        elapsedMs,
        retryForMs: bench.retryForMs,
        retryAfterSeconds,
        random: () => bench.clock.random(),
      });
  if (delay === null || bench.clock.interruption.aborted) throw giveUp(course, interruptedOr(course, failure));
  await waitOr(course, delay, `${failure.message} Trying again under the same key`, () =>
    giveUp(course, interruptedOr(course, failure)),
  );
}

function interruptedOr(course: Course, failure: Failure): Failure {
  const { interruption } = course.bench.clock;
  return interruption.aborted && interruption.reason instanceof Failure ? interruption.reason : failure;
}

function refused(course: Course, answer: Attempt<OAuthClient>): Failure {
  return giveUp(course, failureOf(answer, { what: "create OAuth client", change: true }));
}

/** Ends this run without a client: the journal stays uncertain where any attempt is, and is settled where none is. */
function giveUp(course: Course, failure: Failure): Failure {
  const { drive } = course;
  if (course.settledBefore) {
    noteError(course, failure, drive.entry.state);
    return new Failure(failure.kind, failure.message, detailsOf(drive.entry, failure.details));
  }
  if (course.uncertain) {
    if (drive.entry.state === "pending") {
      noteError(course, failure, "pending");
      return stillPending(drive.entry);
    }
    noteError(course, failure, "unknown");
    return outcomeUnknown(drive.entry, failure);
  }
  noteError(course, failure, "refused");
  return new Failure(failure.kind, failure.message, detailsOf(drive.entry, failure.details));
}

function noteError(course: Course, failure: Failure, state: Entry["state"]): void {
  recordAfterwards(course.bench, course.drive, {
    state,
    last_error: {
      kind: failure.kind,
      message: failure.message,
      status: failure.details.problem?.status,
      code: failure.details.problem?.code,
      request_id: failure.details.problem?.request_id,
    },
  });
}
