// Owns: the creation of an OAuth client, from the intent on disk to the secret in its place: the decision table of §4.2
// followed step by step, retried under one key, resumable by any later process.
// Must not know: flags, terminals, files.
import { type Attempt, failureOf } from "../api/http/attempt.ts";
import {
  checkCreation,
  creationBody,
  type CreationDecision,
  type CreationRequest,
  decideCreation,
} from "../api/oauth-client-creation.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import type { Admission, EntryLease, Intent } from "../journal/journal.ts";
import { type Course, type CreationEnd, type CreationOptions, giveUp, noteError, pause } from "./creation-course.ts";
import { inspect, unusable } from "./creation-inspection.ts";
import { deliver, keepStray, lookAtDestination, waitsUnnamed, withoutSecret } from "./creation-secret.ts";
import { wasClaimed } from "./kept-secret.ts";
import { takePlace } from "./secret-place.ts";
import { exchanged, giveBack, madeFor, type Workbench, withRequestId } from "./workbench.ts";

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
  options: CreationOptions & { readonly conclude: (end: CreationEnd, drive: EntryLease) => Promise<T> },
): Promise<T> {
  checkCreation({ ...request, idempotencyKey: options.key });
  const admission = await admit(bench, creationIntent(bench, request), options);
  const { drive } = admission;
  try {
    if (admission.kind === "resumed")
      bench.tell.note(
        `Going on with the unfinished creation ${drive.entry.id}, under its own key (--new starts another).`,
      );
    return await options.conclude(await driveCreation(bench, drive, options), drive);
  } finally {
    await drive.release();
  }
}

/** The place stands in the intent: a crash before anything is reserved there must not make recovery forget it. */
async function admit(bench: Workbench, intent: Intent, options: CreationOptions): Promise<Admission> {
  let destination: Intent["destination"];
  try {
    destination = { ...(await options.destination.check()) };
  } catch (refusal) {
    const earlier = await deliveredBefore(bench, intent, options);
    if (earlier === undefined) throw refusal;
    return earlier;
  }
  return bench.journal.admit({ ...intent, destination }, { fresh: options.fresh, key: options.key });
}

/**
 * The same command typed again: the secret's file is in its place because an earlier process put it there, and is no
 * reason to refuse. A place is looked at only by the one who drives its entry: looking finishes a delivery, and a living
 * process is still at its own.
 */
async function deliveredBefore(
  bench: Workbench,
  intent: Intent,
  { fresh, key }: CreationOptions,
): Promise<Admission | undefined> {
  const earlier = await bench.journal.resume(intent, { fresh, key });
  if (earlier === undefined) return undefined;
  let isThere = false;
  try {
    isThere = await lookAtDestination(bench, earlier.drive.entry);
  } finally {
    if (!isThere) await earlier.drive.release();
  }
  return isThere ? earlier : undefined;
}

/**
 * Sends the stored request under its key until the service has said how it stands, and brings the secret home.
 * @param drive the entry, driven by this process alone
 */
export async function driveCreation(
  bench: Workbench,
  drive: EntryLease,
  options: CreationOptions,
): Promise<CreationEnd> {
  const { entry } = drive;
  const settledBefore = entry.state === "done" || entry.state === "replaced" || entry.state === "unusable";
  const course: Course = {
    bench,
    drive,
    options,
    startedAt: bench.clock.now(),
    uncertain: !settledBefore && entry.state !== "refused" && entry.attempts > 0,
    settledBefore,
    deliveredBefore: false,
    attempt: 0,
    requestId: undefined,
    leaveReserve: false,
  };
  try {
    course.deliveredBefore =
      wasClaimed(entry) ||
      (await lookAtDestination(bench, entry).catch(async (error: unknown) => {
        throw error instanceof Failure ? await giveUp(course, error) : error;
      }));
    for (;;) {
      const end = await onceMore(course);
      if (end) return end.kind === "secret_lost" ? { ...end, requestId: course.requestId } : end;
    }
  } catch (error) {
    throw error instanceof Failure ? withRequestId(await waitsUnnamed(course, error), course.requestId) : error;
  } finally {
    // A secret that is neither delivered nor kept may stand whole in what was reserved: recovery looks there.
    if (!course.leaveReserve) await giveBack(bench, entry.id, options.destination);
  }
}

/** One POST and what it leads to; nothing where another one is due. */
async function onceMore(course: Course): Promise<CreationEnd | undefined> {
  const { bench, drive } = course;
  course.attempt += 1;
  await makeReady(course);
  const answer = await exchanged(bench, () =>
    bench.account.service.oauthClients.create(drive.entry.request_text, drive.entry.idempotency_key!),
  );
  course.requestId = answer.kind === "answered" ? answer.requestId : undefined;
  const decision = decideCreation(answer);
  switch (decision.kind) {
    case "store_secret":
      return deliver(course, decision.client, { secret: decision.secret, text: decision.text });
    case "secret_lost":
      return withoutSecret(course, decision.client, decision.text);
    case "pending":
      return inspect(course, decision.client);
    case "unusable":
      throw await unusable(course, decision.client);
    case "unknown":
      return unknown(course, answer, decision);
    case "key_reuse":
    case "refused":
      throw await refused(course, answer);
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
    bench.disk.assert();
    // The receipt of a client that is delivered, or that came to its end, has no secret: nothing is made for one.
    const isOver = course.deliveredBefore || course.settledBefore;
    const destination = isOver ? undefined : await takePlace(bench, drive, options);
    await bench.secrets.reserve(drive.entry.id);
    if (course.settledBefore) await drive.record({ attempts: drive.entry.attempts + 1 });
    else
      await drive.record({
        attempts: drive.entry.attempts + 1,
        state: course.uncertain ? drive.entry.state : "open",
        ...(destination ? { destination: { ...destination } } : {}),
      });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw await giveUp(course, error);
  }
}

/** 5xx, cut, time-out, broken body: the client may exist. A secret that can still be read is kept. */
async function unknown(
  course: Course,
  answer: Attempt<OAuthClient>,
  decision: Extract<CreationDecision, { kind: "unknown" }>,
): Promise<undefined> {
  const { drive } = course;
  course.uncertain = !course.settledBefore;
  const failure = failureOf(answer, { what: "create OAuth client", change: true });
  // The secret first: a crash must not find it nowhere. Of a settled creation it was delivered before.
  if (decision.secret !== undefined && !course.settledBefore) await keepStray(course, decision.secret);
  await noteError(course, failure, course.settledBefore ? drive.entry.state : "unknown");
  await pause(course, answer, failure);
}

/** 429, or nothing was sent: the same request again, when it is due. */
async function againLater(course: Course, answer: Attempt<OAuthClient>): Promise<undefined> {
  const failure = failureOf(answer, { what: "create OAuth client", change: true });
  await noteError(course, failure, course.drive.entry.state);
  await pause(course, answer, failure);
}

async function refused(course: Course, answer: Attempt<OAuthClient>): Promise<Failure> {
  return giveUp(course, failureOf(answer, { what: "create OAuth client", change: true }));
}
