// Defines what a change needs: account, journal, secrets and clock, with helpers for records and failures.
import type { Service } from "../api/connect.ts";
import type { Attempt } from "../api/call/attempt.ts";
import type { ReadClock } from "../api/call/retry.ts";
import { Failure, type FailureDetails, type FailureKind, reasonOf } from "../errors.ts";
import { startedAt, clockSkewMs } from "../journal/entry.ts";
import type { ClientProof, Entry, EntryProgress, KeyExchange } from "../journal/entry.ts";
import type { DiskHealth } from "../disk/disk-health.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import { type Advice, flags, needsForce, shell } from "../next-step.ts";
import { roundedDuration } from "../output/relative-time.ts";
import type { SecretKeeping } from "../secrets/kept.ts";

export interface Account {
  readonly profile: string;
  readonly profileId: string;
  readonly principal?: string | undefined;
  readonly region: string;
  readonly baseUrl: string;
  readonly organizationId: string | null;
  readonly serviceVersion: string;
  readonly service: Service;
  /** An HMAC of the text, keyed by the API key or client id. @throws Failure if there is no credential */
  readonly credentialDigest: (text: string) => Promise<string>;
  readonly keyId?: string;
  /** Null if the profile has no token endpoint to prove new clients. */
  readonly proof: ClientProof | null;
  /** Null if the profile has no exchange to prove the secrets of new keys. */
  readonly keyExchange: KeyExchange | null;
  /** One token exchange for a key's secret; undefined if the profile no longer has the exchange's command. */
  readonly exchangeKey: (secret: string, way: KeyExchange) => Promise<Attempt<unknown> | undefined>;
  /** Proves a client's secret by a token exchange, with retries. @throws Failure after a refusal or without a response */
  readonly proveClient: (client: { clientId: string; secret: string }, at: ClientProof) => Promise<void>;
}

export interface Tell {
  note(text: string): void;
  warn(text: string): void;
  /** Shows a rotation's receipt before the old credential is revoked. @param dueAt the end of the overlap, if it is not over */
  showReceipt?(receipt: string, dueAt?: string): Promise<void>;
  waiting(label: string, ms: number): () => void;
  busy(label: string): () => void;
}

/** An interruption makes `sleep` reject early, with the interruption's `Failure`. */
export interface Clock extends ReadClock {
  /** Milliseconds since 1970. The clock may be set at any moment. */
  now(): number;
  random(): number;
  /** Aborted by the first Ctrl-C, SIGTERM or SIGHUP, after which no new work starts. Its reason is the `Failure` to report. */
  readonly interruption: AbortSignal;
  /** Runs work whose result must not be lost: the first signal leaves the work a few more seconds, a second signal none. */
  finishing<T>(work: () => Promise<T>): Promise<T>;
}

/** A delivery sends no request to the service, so it needs no account. */
export interface DeliveryBench {
  readonly journal: Journal;
  readonly secrets: SecretKeeping;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly disk: DiskHealth;
}

export interface Workbench extends DeliveryBench {
  readonly account: Account;
  /** Total ms for retries; 0 means one attempt. */
  readonly retryForMs: number;
}

/** A step of larger work uses the account of the entry that it belongs to. */
export function accountFields(account: Account | Entry) {
  if ("base_url" in account) {
    const { profile, profile_id, principal, organization_id, region, base_url, service_version } = account;
    return { profile, profile_id, principal, organization_id, region, base_url, service_version };
  }
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

export function isoTime(ms: number): string {
  return new Date(Math.min(ms, 8.64e15)).toISOString();
}

export function noteOtherEndpoint({ account, tell }: Workbench, recorded: string | undefined, now: string): void {
  if (recorded === undefined || recorded === now) return;
  tell.note(
    `Profile ${account.profile} gets tokens from ${now} now, and got them from ${recorded} when this began: ${now} is used.`,
  );
}

export function serviceTime({ clock, account }: Workbench): number {
  return clock.now() + (account.service.clockOffset() ?? 0);
}

/** @returns how this machine's wrong clock changed the requested lifetime (`in 90d`); undefined if it did not */
export function lifetimeDifference(entry: Entry, expiresAt: string | undefined): string | undefined {
  const [, asked] = /^in (\d+) ms$/.exec(entry.detail.expiry ?? "") ?? [];
  const offset = entry.clock_offset_ms ?? 0;
  if (asked === undefined || expiresAt === undefined || Math.abs(offset) <= clockSkewMs) return undefined;
  const laterMs = Date.parse(expiresAt) - startedAt(entry) - Number(asked);
  if (Math.abs(laterMs) <= clockSkewMs) return undefined;
  return `its lifetime is ${roundedDuration(Math.abs(laterMs))} ${laterMs > 0 ? "longer" : "shorter"} than requested, because the clock of this machine is ${offset < 0 ? "ahead of" : "behind"} the service's`;
}

export async function withLease<T>(lease: EntryLease, work: (lease: EntryLease) => Promise<T>): Promise<T> {
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

/** A failure is only a warning, so that the result reaches the user. @returns true if the change was recorded */
export async function recordOrWarn(
  bench: DeliveryBench,
  lease: EntryLease,
  change: Partial<EntryProgress>,
): Promise<boolean> {
  // Other machines cannot see which state folder keeps the secret, so the record names the folder.
  const { detail = lease.entry.detail } = change;
  const where = change.state === "undelivered" ? { detail: { ...detail, kept_at: bench.secrets.place } } : {};
  try {
    await lease.record({ ...change, ...where });
    return true;
  } catch (error) {
    const why = reasonOf(error);
    bench.disk.markFailed(why);
    const { state: _, ...learned } = change;
    const { in_flight } = lease.entry.detail;
    lease.note({ ...learned, detail: { ...detail, in_flight } });
    const { id, idempotency_key } = lease.entry;
    const found = await bench.journal.find(id).catch(() => undefined);
    const left = found
      ? `It still has the entry ${id}. Next: integ journal recover ${id}`
      : `It no longer has the entry ${id}${idempotency_key === null ? "" : ` (idempotency key ${idempotency_key})`}: copy this output.`;
    bench.tell.warn(`The journal could not be updated. ${why} ${left}`);
    return false;
  }
}

export function entryFailure(entry: Entry, kind: FailureKind, message: string, details: FailureDetails = {}): Failure {
  const wasSent = details.unsent !== true && entry.attempts > 0;
  const request = wasSent ? `${entry.method} ${entry.path}` : undefined;
  const here = { where: `profile ${entry.profile} (${entry.region})`, request };
  return new Failure(kind, message, { ...details, ...(details.where === undefined ? here : {}), entry: entry.id });
}

/** @returns what a person must fix on this machine before the next step, or an empty text */
export function prerequisite({ kind, details }: Failure): string {
  const isLocal = (kind === "usage" || kind === "failed") && details.problem === undefined;
  const { hint, nextCommand, recovers } = details;
  if (recovers !== undefined || !isLocal) return "";
  if (hint !== undefined) return ` First: ${hint}`;
  return typeof nextCommand === "string" ? ` First: ${nextCommand}` : "";
}

export type RecoveryStep = Pick<FailureDetails, "hint" | "nextCommand" | "recovers">;

export function recoveryStep(entry: string, flags: readonly string[] = []): RecoveryStep {
  return { hint: undefined, nextCommand: shell`integ journal recover ${entry} ${flags}`, recovers: entry };
}

export function recoveryIn({ hint, nextCommand, recovers }: FailureDetails): RecoveryStep | undefined {
  return recovers === undefined ? undefined : { hint, nextCommand, recovers };
}

export function outcomeUnknown(entry: Entry, because: Failure, more: FailureDetails = {}): Failure {
  const isEarlier = entry.attempts > 1 || because.details.unsent === true;
  const which = isEarlier ? "An earlier attempt" : "The request";
  const message =
    because.kind === "outcome_unknown" ? because.message : `${because.message} ${which} may have arrived.`;
  return entryFailure(entry, "outcome_unknown", message, {
    ...because.details,
    // An earlier attempt was sent, even if `because` is about an unsent one.
    unsent: false,
    meaning: `${unknownOutcomeMeaning(entry)}${because.details.hint === undefined ? prerequisite(because) : ""}`,
    ...(recoveryIn(because.details) ?? recoveryAfter(because, entry.id)),
    ...more,
  });
}

/** The step includes the fix or consent without which the recovery would fail again. */
export function recoveryAfter(because: Failure, entry: string): RecoveryStep {
  const { hint, nextCommand } = because.details;
  if (needsForce(because.details)) return { ...recoveryStep(entry, [flags.force]), hint };
  const isPermanent = isPermanentFailure(because);
  const first = isPermanent && typeof nextCommand === "string" ? nextCommand : undefined;
  const isNeeded = isPermanent || prerequisite(because) !== "";
  if (!isNeeded || (hint === undefined && first === undefined)) return recoveryStep(entry);
  const run = `integ journal recover ${entry}`;
  const words: Advice = hint === undefined ? `Run ${run} afterwards.` : `${hint} Then run ${run}.`;
  return { nextCommand: first, hint: words, recovers: entry };
}

/** True if the failure repeats until a person acts: some refusals, an untrusted entry, or a missing credential. */
export function isPermanentFailure({ kind, details: { problem, unsent, nextCommand } }: Failure): boolean {
  const isUntrusted = typeof nextCommand === "string" && nextCommand.startsWith("integ journal trust ");
  if (kind === "auth" && (unsent === true || isUntrusted)) return true;
  return problem !== undefined && (kind === "auth" || kind === "not_found" || kind === "conflict");
}

function unknownOutcomeMeaning({ operation, idempotency_key, attempts }: Entry): string {
  if (idempotency_key !== null)
    return "The client may or may not exist. The request and its idempotency key are saved, so retrying cannot create a second one.";
  if (!operation.endsWith(".revoke"))
    return "The change may or may not have happened. The request is not sent again automatically.";
  const noun = operation === "access_key.revoke" ? "key" : "client";
  const sent = attempts === 1 ? "once" : `${attempts} times`;
  return `The ${noun} may or may not be revoked. The request was sent ${sent}; it is safe to send it again.`;
}
