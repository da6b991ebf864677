// Owns: sending a POST of the legacy contract (§4.4): once. There is no idempotency key, so what may have arrived is
// never sent again from here; 429 and what was proven not to have left are. And what the journal says of it meanwhile.
// Must not know: flags, terminals, files, what is created or rotated.
import type { SecretAnswer } from "../api/access-keys.ts";
import { type Answered, type Attempt, failureOf } from "../api/http/attempt.ts";
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { Destination } from "../secrets/destination.ts";
import { keepStray } from "./access-key-secret.ts";
import { takePlace } from "./secret-place.ts";
import { delayBeforeNext, wait } from "./trying-again.ts";
import {
  detailsOf,
  exchanged,
  giveBack,
  lastErrorOf,
  outcomeUnknown,
  recordAfterwards,
  type Workbench,
} from "./workbench.ts";

export interface Post {
  readonly bench: Workbench;
  readonly drive: EntryLease;
  readonly destination: Destination;
  /** As it stands in a sentence: `create access key`. */
  readonly what: string;
  /** One attempt. */
  readonly send: () => Promise<Attempt<SecretAnswer>>;
  /** What an unknown outcome means for the person, besides that it is unknown. */
  readonly ifUnknown: string;
  /** How an earlier request of the entry left it: what this one is refused does not undo that. */
  readonly before?: "unknown" | "secret_lost";
}

/**
 * True where a request of this entry may have arrived: then nothing is sent for it again without being asked for. A
 * crash between the record and the answer leaves this true.
 */
export function mayHaveArrived(entry: Entry): boolean {
  return entry.state === "unknown" || entry.detail.in_flight === true;
}

/** When the last request of an entry may still have been under way, milliseconds since 1970. */
export function lastSentAt(entry: Entry): number {
  const { sent_at } = entry.detail;
  const at = typeof sent_at === "string" ? Date.parse(sent_at) : Number.NaN;
  const seen = entry.state === "unknown" ? Date.parse(entry.updated_at) : Number.NaN;
  return Math.max(...[at, seen, Date.parse(entry.created_at)].filter((time) => !Number.isNaN(time)));
}

/**
 * Sends until the service has answered or the answer is lost.
 * @returns the answer; its secret is nowhere yet but here
 * @throws Failure: the entry is `refused` where nothing was done for certain, `unknown` (exit 7) or `undelivered` else
 */
export async function post(work: Post): Promise<Answered<SecretAnswer>> {
  const { bench, drive } = work;
  const startedAt = bench.clock.now();
  try {
    for (let attempt = 1; ; attempt++) {
      await makeReady(work);
      const answer = await exchanged(bench, work.send);
      if (answer.kind === "answered") return answer;
      if (answer.kind === "unknown") throw await unknown(work, answer);
      await landed(work);
      const failure = failureOf(answer, { what: work.what, change: true });
      await pause(work, { answer, failure, attempt, startedAt });
    }
  } finally {
    await giveBack(bench, drive.entry.id);
  }
}

/** Everything that must stand before the request may leave: a place for the secret, room to keep it, and the attempt on disk. */
async function makeReady(work: Post): Promise<void> {
  const { bench, drive, destination, before = "open" } = work;
  try {
    if (bench.clock.interruption.aborted) throw bench.clock.interruption.reason;
    bench.disk.assert();
    const record = await takePlace(bench, drive, { destination });
    await bench.secrets.reserve(drive.entry.id);
    await drive.record({
      state: before,
      attempts: drive.entry.attempts + 1,
      destination: { ...record },
      detail: { ...drive.entry.detail, in_flight: true, sent_at: new Date(bench.clock.now()).toISOString() },
    });
  } catch (error) {
    throw error instanceof Failure ? await refused(work, error) : error;
  }
}

/** The attempt is known to have changed nothing. */
async function landed({ bench, drive }: Post): Promise<void> {
  await recordAfterwards(bench, drive, { detail: { ...drive.entry.detail, in_flight: false } });
}

interface Refusal {
  readonly answer: Attempt<SecretAnswer>;
  readonly failure: Failure;
  readonly attempt: number;
  readonly startedAt: number;
}

/** Waits before the same request again, where it is proven that this one changed nothing. */
async function pause(work: Post, { answer, failure, attempt, startedAt }: Refusal): Promise<void> {
  const { bench } = work;
  // What may have arrived is not here any more: the caller has told it.
  const delay = answer.kind === "answered" ? null : delayBeforeNext(bench, answer, { attempt, startedAt });
  if (delay === null) throw await refused(work, failure);
  try {
    await wait(bench, delay, `${failure.message} Nothing was changed. Trying again`);
  } catch (error) {
    throw error instanceof Failure ? await refused(work, error) : error;
  }
}

async function refused({ bench, drive, before }: Post, failure: Failure): Promise<Failure> {
  const detail = { ...drive.entry.detail, in_flight: false };
  await recordAfterwards(bench, drive, { state: before ?? "refused", last_error: lastErrorOf(failure), detail });
  if (before === "unknown") return outcomeUnknown(drive.entry, failure);
  return new Failure(failure.kind, failure.message, detailsOf(drive.entry, failure.details));
}

/** 5xx, cut, time-out, broken body. A secret that can still be read from it is kept. */
async function unknown(work: Post, answer: Extract<Attempt<SecretAnswer>, { kind: "unknown" }>): Promise<Failure> {
  const { bench, drive } = work;
  const failure = failureOf(answer, { what: work.what, change: true });
  await recordAfterwards(bench, drive, { state: "unknown", last_error: lastErrorOf(failure) });
  if (answer.salvage) return keepStray(work, answer.salvage);
  const told = outcomeUnknown(drive.entry, failure);
  return new Failure(told.kind, told.message, {
    ...told.details,
    meaning: `${work.ifUnknown} It is not sent again by itself.`,
  });
}
