// What every change works with: the account, the journal, the clock, the disk's health, and how a change reports what it
// does and how it fails.
import type { Service } from "../api/connect.ts";
import { type Attempt, requestIdOf, retryAfterOf } from "../api/http/attempt.ts";
import { nextDelay, retryRead } from "../api/http/retry.ts";
import { Failure, type FailureDetails } from "../errors.ts";
import { type ClientProof, type KeyExchange, type Entry, type EntryProgress, isSettled } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { Destination, OneTimeSecret, SingleRecord } from "../secrets/destination.ts";
import { shell } from "../next-step.ts";

/** Whose account is changed. `service` sends as this profile, and to nowhere else. */
export interface Account {
  readonly profile: string;
  readonly profileId: string;
  /** The client that acts, if the profile has client credentials. */
  readonly principal?: string | undefined;
  readonly region: string;
  readonly baseUrl: string;
  readonly organizationId: string | null;
  readonly serviceVersion: string;
  readonly service: Service;
  /** Resource id of the profile's own access key, if it is known. */
  readonly keyId?: string;
  /** How a new client of this account is proven; null: the profile knows no token endpoint. */
  readonly proof: ClientProof | null;
  /** How the secret of a new key of this account is proven; null: the profile knows no way. */
  readonly keyExchange: KeyExchange | null;
  /** One exchange of a key's secret for a token; nothing if the profile has no command any more that is to make it. */
  readonly exchangeKey: (secret: string, way: KeyExchange) => Promise<Attempt<unknown> | undefined>;
  /** One token exchange as a given client, at the endpoint given; throws if it is refused. */
  readonly proveClient: (client: { clientId: string; secret: string }, at: ClientProof) => Promise<void>;
}

/** How a change reports what continues. Nothing of it is a result. */
export interface Tell {
  note(text: string): void;
  warn(text: string): void;
  /** A wait begins; the returned function ends it. */
  waiting(label: string, ms: number): () => void;
  /** Something of unknown length is under way; the returned function ends it. */
  busy(label: string): () => void;
}

/** Time, and its end. */
export interface Clock {
  /** Milliseconds since 1970: what the time is, for dates. It may be set to another one at any moment. */
  now(): number;
  /** Milliseconds since a moment of this process: how long something takes, whatever the clock is set to. */
  elapsed(): number;
  /** Any length; ends early, with the interruption's `Failure`, when the person interrupts. */
  sleep(ms: number): Promise<void>;
  /** 0 ≤ x < 1, for jitter. */
  random(): number;
  /** Aborted by the first Ctrl-C or SIGTERM, its reason the `Failure` to end with: no new work is started after it. */
  readonly interruption: AbortSignal;
  /**
   * Runs work whose answer must not be thrown away: after the first Ctrl-C an exchange under way gets a few seconds
   * more, after the second one none.
   */
  finishing<T>(work: () => Promise<T>): Promise<T>;
}

/** Where secrets of unfinished work are looked for, and kept if a destination fails. */
export interface SecretKeeping {
  /** Finishes a delivery that a crash interrupted. @returns true if the secret is at the destination now */
  completeDelivery(record: SingleRecord, facts: { clientId?: string; id?: string }): Promise<boolean>;
  /**
   * Releases what was reserved at that destination for an entry. A whole secret stays, unless `isKept`: it is safe
   * elsewhere. Safe to repeat.
   */
  removeReserve(record: SingleRecord, entry: string, options?: { readonly isKept?: boolean }): Promise<void>;
  /** The secret that a finished delivery left readable (a file, a profile), for a proof after a crash. */
  reread(record: SingleRecord): Promise<string | undefined>;
  /** The machine and the folder where secrets are kept until they are claimed. */
  readonly place: string;
  /** Reserves space for the secret before it exists, so that a disk that fills up later cannot lose it. */
  reserve(entry: string): Promise<void>;
  keep(entry: string, secret: OneTimeSecret): Promise<void>;
  /** Encrypts the secret for the team's journal, if that was asked for. @returns whether it is there now */
  escrow(entry: string, secret: OneTimeSecret): Promise<boolean>;
  isKept(entry: string): boolean;
  /** The kept secret; throws `failed` if none is kept or what is kept is damaged. */
  readKept(entry: string): Promise<OneTimeSecret>;
  /**
   * Removes the kept copy of a secret that was delivered. Safe to repeat.
   * @param options.keepsProof what recognises the delivered secret stays: the work that it belongs to is not over
   */
  destroyKept(entry: string, options: { readonly keepsProof: boolean }): Promise<void>;
  /** Releases an empty reserve; a kept secret stays. */
  release(entry: string): Promise<void>;
}

export interface Workbench {
  readonly account: Account;
  readonly journal: Journal;
  readonly secrets: SecretKeeping;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly disk: DiskHealth;
  /** How long to keep retrying altogether, milliseconds; 0 is one attempt. */
  readonly retryForMs: number;
}

/**
 * Whether this process may still believe its disk. After a write or a sync that failed, no one knows what of it reached
 * the disk, and a later one that succeeds says nothing about it: no further change is sent, and a later process resumes.
 */
export class DiskHealth {
  #failure: string | undefined;

  /** Something that should be on the disk, or removed from it, may not be so. @param why as the disk said it */
  markFailed(why: string): void {
    this.#failure ??= why;
  }

  /** Called before every request that changes something. @throws Failure `failed` after a failed write */
  assertHealthy(): void {
    if (this.#failure === undefined) return;
    throw new Failure("failed", `The disk failed during the command, and nothing more is sent: ${this.#failure}`, {
      hint: "Check the disk, then finish what was started.",
      nextCommand: shell`integ journal recover`,
    });
  }
}

type MadeFor = Pick<
  Intent,
  "profile" | "profile_id" | "principal" | "organization_id" | "region" | "base_url" | "service_version"
>;

/** The part of an intent that the account decides: of work that begins. */
export function madeFor(account: Account): MadeFor {
  return {
    profile: account.profile,
    profile_id: account.profileId,
    principal: account.principal,
    organization_id: account.organizationId,
    region: account.region,
    base_url: account.baseUrl,
    service_version: account.serviceVersion,
  };
}

/** The same part of an intent that continues an entry's work: whatever is active now, it stays as it was started. */
export function madeAs(entry: Entry): MadeFor {
  const { profile, profile_id, principal, organization_id, region, base_url, service_version } = entry;
  return { profile, profile_id, principal, organization_id, region, base_url, service_version };
}

/** Where the clocks of this machine and the service agree, they differ by this much at most. */
export const clockSkewMs = 5 * 60_000;

/** What the time is by the service's clock, as far as that is known. */
export function serviceTime({ clock, account }: Workbench): number {
  return clock.now() + (account.service.clockOffset() ?? 0);
}

/** When an entry was written, by the service's clock as far as that is known, milliseconds since 1970. */
export function beganAt({ created_at, clock_offset_ms }: Entry): number {
  return Date.parse(created_at) + (clock_offset_ms ?? 0);
}

/** What an attempt that is about to leave this machine adds to its entry: a crash may leave its secret here and say so nowhere. */
export function attemptedHere({ secrets }: Workbench, { detail }: Entry): Entry["detail"] {
  const { attempted_at = [] } = detail;
  return attempted_at.includes(secrets.place) ? detail : { ...detail, attempted_at: [...attempted_at, secrets.place] };
}

/** Where else than here a secret of the entry may be kept: machines and folders. */
export function otherPlaces({ detail }: Entry, here: string): string[] {
  return (detail.attempted_at ?? []).filter((place) => place !== here);
}

/** Leases of which this process has sent the first request: what an answer says of the clock holds for their beginning. */
const begunHere = new WeakSet<EntryLease>();

/**
 * One exchange that may change something: its answer must not be thrown away, also after a Ctrl-C; a person sees that it is
 * waited for. What the answer says of itself and of the time goes into the entry with the next step.
 */
export async function exchanged<T>(
  { clock, tell, account }: Workbench,
  lease: EntryLease,
  send: () => Promise<Attempt<T>>,
): Promise<Attempt<T>> {
  if (lease.entry.attempts === 1) begunHere.add(lease);
  const done = tell.busy("Waiting for the service");
  const answer = await clock.finishing(send).finally(done);
  const { request_ids, clock_offset_ms } = lease.entry;
  const id = requestIdOf(answer);
  const offset = begunHere.has(lease) ? account.service.clockOffset() : undefined;
  lease.note({
    request_ids: id === undefined ? request_ids : [...request_ids, id].slice(-mostRequestIds),
    clock_offset_ms: clock_offset_ms ?? offset ?? null,
  });
  return answer;
}

const mostRequestIds = 100;

/** A read repeated until it is answered. @throws Failure of the last attempt */
export async function readUntilAnswered<T>(
  bench: Pick<Workbench, "clock" | "retryForMs">,
  read: () => Promise<Attempt<T>>,
  about: { readonly what: string; readonly where?: string },
): Promise<T> {
  const { clock, retryForMs } = bench;
  const options = { ...about, retryForMs, clock, random: () => clock.random(), signal: clock.interruption };
  return (await retryRead(read, options)).value;
}

/** Reasons that a repetition cannot change: a name, a certificate or a proxy stays wrong, and nothing to send stays nothing. */
const lasting: ReadonlySet<string> = new Set(["dns", "tls", "proxy", "redirect", "interrupted", "unsendable"]);

/**
 * Milliseconds until the same request goes out again, or null if it does not: `--retry-for` is over, or no repetition
 * can help. Whether repeating is safe at all is the caller's to know.
 * @param at `attempt` counts from 1; `startedAt` is what had elapsed at the first one
 */
export function delayBeforeNext(
  bench: Workbench,
  answer: Attempt<unknown>,
  at: { readonly attempt: number; readonly startedAt: number },
): number | null {
  if (answer.kind === "refused" && answer.status !== 429) return null;
  const isTemporary = answer.kind === "not_sent" && answer.temporary === true;
  if ((answer.kind === "unknown" || answer.kind === "not_sent") && lasting.has(answer.reason) && !isTemporary)
    return null;
  return nextDelay({
    attempt: at.attempt,
    elapsedMs: bench.clock.elapsed() - at.startedAt,
    retryForMs: bench.retryForMs,
    retryAfterSeconds: retryAfterOf(answer),
    random: () => bench.clock.random(),
  });
}

/** Waits, and says for what; Ctrl-C ends it with a Failure. */
export async function wait(bench: Workbench, ms: number, label: string): Promise<void> {
  const done = bench.tell.waiting(label, ms);
  try {
    await bench.clock.sleep(ms);
  } finally {
    done();
  }
}

/**
 * Records what happened after something was sent. The change has happened whatever the disk does: a journal that cannot
 * be written is reported, and the result still reaches the person (a replay is safe).
 */
export async function recordAfterwards(
  bench: Workbench,
  lease: EntryLease,
  change: Partial<EntryProgress>,
): Promise<void> {
  // What is kept here is not there for a later process elsewhere, and not lost for that.
  const { detail = lease.entry.detail } = change;
  const where = change.state === "undelivered" ? { detail: { ...detail, kept_at: bench.secrets.place } } : {};
  try {
    await lease.record({ ...change, ...where });
  } catch (error) {
    const why = reasonOf(error);
    bench.disk.markFailed(why);
    // What was learned stays known; only the state is what the journal says.
    const { state: _, ...learned } = change;
    lease.note(learned);
    const { id, idempotency_key } = lease.entry;
    const isThere = await bench.journal.find(id).then(
      () => true,
      () => false,
    );
    const left = isThere
      ? `It still has the entry ${id}: "integ journal recover ${id}" is safe.`
      : `It no longer has the entry ${id}${idempotency_key === null ? "" : ` (idempotency key ${idempotency_key})`}: note what is printed here.`;
    bench.tell.warn(`The journal could not be updated. ${why} ${left}`);
  }
}

/**
 * Releases what was reserved for a secret. It is tidying up: how the work ended stays what it is, whatever the disk does;
 * what could not be released is reported, and `journal recover` releases it later.
 */
export async function releaseReserved(
  { secrets, disk, tell }: Workbench,
  { id, state, parent }: Pick<Entry, "id" | "state" | "parent">,
  destination?: Destination,
): Promise<void> {
  const works = [
    async () => destination?.release(),
    async () => {
      if (secrets.isKept(id)) return;
      // The digest that recognizes a delivered file is needed until the entry is settled.
      await (isSettled(state) ? secrets.destroyKept(id, { keepsProof: parent !== null }) : secrets.release(id));
    },
  ];
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      const why = reasonOf(error);
      disk.markFailed(why);
      tell.warn(`Space that was reserved for the secret could not be released (${why})`);
    }
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Adds where it happened and which entry keeps it to a failure's details. */
export function detailsOf(entry: Entry, details: FailureDetails = {}): FailureDetails {
  const here = { where: `profile ${entry.profile} (${entry.region})`, request: requestOf(entry, details) };
  return { ...details, ...(details.where === undefined ? here : {}), entry: entry.id };
}

/** The request is named only where it, or an earlier attempt at it, may have left this machine. */
function requestOf(entry: Entry, { unsent = false }: FailureDetails): string | undefined {
  return unsent || entry.attempts === 0 ? undefined : `${entry.method} ${entry.path}`;
}

/** The failure with the id of the answer that it followed from, if it has none of its own. */
export function withRequestId(failure: Failure, requestId: string | undefined): Failure {
  const { kind, message, details } = failure;
  if (requestId === undefined || details.problem?.request_id !== undefined) return failure;
  return new Failure(kind, message, { ...details, problem: { ...details.problem, request_id: requestId } });
}

/** True of a failure that a person reads as "nothing was done": in the middle of larger work that is not so. */
export function saysNothingWasDone({ kind }: Failure): boolean {
  return kind === "usage" || kind === "failed" || kind === "unreachable";
}

/** True of Ctrl-C and SIGTERM. */
export function isInterruption({ kind }: Failure): boolean {
  return kind === "interrupted" || kind === "terminated";
}

/** What has to be fixed on this machine before any next step can help. */
export function prerequisite({ kind, details }: Failure): string {
  const isLocal = (kind === "usage" || kind === "failed") && details.problem === undefined;
  const { hint, nextCommand, recovers } = details;
  if (recovers !== undefined || !isLocal) return "";
  if (hint !== undefined) return ` First: ${hint}`;
  return typeof nextCommand === "string" ? ` First: ${nextCommand}` : "";
}

/** A step that recovers an entry, and which one. */
type RecoveryStep = Pick<FailureDetails, "hint" | "nextCommand" | "recovers">;

/** The next step "recover this entry", with what the recovery needs. */
export function recoveryStep(entry: string, flags: readonly string[] = []): RecoveryStep {
  return { hint: undefined, nextCommand: shell`integ journal recover ${entry} ${flags}`, recovers: entry };
}

/** The recovery that a failure asks for itself, with what it needs. */
export function recoveryIn({ hint, nextCommand, recovers }: FailureDetails): RecoveryStep | undefined {
  return recovers === undefined ? undefined : { hint, nextCommand, recovers };
}

/** The failure of a change whose outcome no one knows (exit 7). */
export function outcomeUnknown(entry: Entry, because: Failure): Failure {
  return new Failure(
    "outcome_unknown",
    because.kind === "outcome_unknown" ? because.message : `${because.message} An earlier attempt may have arrived.`,
    detailsOf(entry, {
      ...because.details,
      // An earlier attempt was.
      unsent: false,
      meaning: `${whatUnknownMeans(entry)}${prerequisite(because)}`,
      ...(recoveryIn(because.details) ?? recoveryStep(entry.id)),
    }),
  );
}

function whatUnknownMeans({ operation, idempotency_key, attempts }: Entry): string {
  if (idempotency_key !== null)
    return "The client may or may not exist. The request and its idempotency key are saved, so retrying cannot create a second one.";
  if (!operation.endsWith(".revoke"))
    return "The change may or may not have happened. It is not sent again automatically.";
  const noun = operation === "access_key.revoke" ? "key" : "client";
  const sent = attempts === 1 ? "once" : `${attempts} times`;
  return `The ${noun} may or may not be revoked. The request was sent ${sent}; it is safe to send it again.`;
}

/** What the journal keeps of a failure. */
export function lastErrorOf(failure: Failure): NonNullable<Entry["last_error"]> {
  const { status, code, request_id } = failure.details.problem ?? {};
  return { kind: failure.kind, message: failure.message, status, code, request_id };
}
