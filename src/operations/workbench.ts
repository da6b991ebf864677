// The tools of every change: account, journal, clock and disk, and helpers for reports and failures.
import type { Service } from "../api/connect.ts";
import type { Attempt } from "../api/call/attempt.ts";
import type { ReadClock } from "../api/call/retry.ts";
import { Failure, type FailureDetails, type FailureKind, reasonOf } from "../errors.ts";
import { beganAt, clockSkewMs } from "../journal/entry.ts";
import type { ClientProof, Entry, EntryProgress, KeyExchange } from "../journal/entry.ts";
import type { DiskHealth } from "../disk/disk-health.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import { type Advice, shell } from "../next-step.ts";
import { roundedDuration } from "../output/relative-time.ts";
import type { SecretKeeping } from "../secrets/kept.ts";

/** The account that is changed. `service` sends as this profile only. */
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
  /** An HMAC of a text under the credential of /v1: two credentials give two digests. @throws Failure if there is none */
  readonly credentialDigest: (text: string) => Promise<string>;
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

/** How a change reports what continues. None of it is a result. */
export interface Tell {
  note(text: string): void;
  warn(text: string): void;
  /** A rotation's receipt, before anything is waited for. @param dueAt when the old one is to be revoked, if an overlap runs */
  made?(receipt: string, dueAt?: string): Promise<void>;
  /** A wait begins; the returned function ends it. */
  waiting(label: string, ms: number): () => void;
  /** Something of unknown length is under way; the returned function ends it. */
  busy(label: string): () => void;
}

/** Time, and its end. `sleep` ends early, with the interruption's `Failure`, when the person interrupts. */
export interface Clock extends ReadClock {
  /** Milliseconds since 1970: what the time is, for dates. It may be set to another one at any moment. */
  now(): number;
  /** 0 ≤ x < 1, for jitter. */
  random(): number;
  /** Aborted by the first Ctrl-C or SIGTERM, its reason the `Failure` to end with: no new work is started after it. */
  readonly interruption: AbortSignal;
  /** Runs work whose response must not be thrown away: after one Ctrl-C it gets a few seconds more, after two none. */
  finishing<T>(work: () => Promise<T>): Promise<T>;
}

/** The tools of a delivery, which sends no request. */
export interface DeliveryBench {
  readonly journal: Journal;
  readonly secrets: SecretKeeping;
  readonly clock: Clock;
  readonly tell: Tell;
  readonly disk: DiskHealth;
}

export interface Workbench extends DeliveryBench {
  readonly account: Account;
  /** How long to keep retrying altogether, milliseconds; 0 is one attempt. */
  readonly retryForMs: number;
}

/** The part of an intent that the account decides. Work that continues an entry's stays as that was started. */
export function madeFor(account: Account | Entry) {
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

/** The last moment that a date can name is the end of a wait that is longer. */
export function isoTime(ms: number): string {
  return new Date(Math.min(ms, 8.64e15)).toISOString();
}

/** Notes that the profile's endpoint is used instead of the entry's. */
export function tellOtherEndpoint({ account, tell }: Workbench, begun: string | undefined, now: string): void {
  if (begun === undefined || begun === now) return;
  tell.note(
    `Profile ${account.profile} gets tokens from ${now} now, and got them from ${begun} when this began: ${now} is used.`,
  );
}

export function serviceTime({ clock, account }: Workbench): number {
  return clock.now() + (account.service.clockOffset() ?? 0);
}

/** How a lifetime that was asked for (`in 90d`), computed with a wrong clock of this machine, differs from the request's. */
export function lifetimeDifference(entry: Entry, expiresAt: string | undefined): string | undefined {
  const [, asked] = /^in (\d+) ms$/.exec(entry.detail.expiry ?? "") ?? [];
  const offset = entry.clock_offset_ms ?? 0;
  if (asked === undefined || expiresAt === undefined || Math.abs(offset) <= clockSkewMs) return undefined;
  const laterMs = Date.parse(expiresAt) - beganAt(entry) - Number(asked);
  if (Math.abs(laterMs) <= clockSkewMs) return undefined;
  return `its lifetime is ${roundedDuration(Math.abs(laterMs))} ${laterMs > 0 ? "longer" : "shorter"} than requested, because the clock of this machine is ${offset < 0 ? "ahead of" : "behind"} the service's`;
}

/** Works on an entry, then releases its lease. */
export async function holding<T>(lease: EntryLease, work: (lease: EntryLease) => Promise<T>): Promise<T> {
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

/** Records what has happened, whatever the disk does: the result still reaches the person. @returns whether it is recorded */
export async function recordAfterwards(
  bench: DeliveryBench,
  lease: EntryLease,
  change: Partial<EntryProgress>,
): Promise<boolean> {
  // A secret that is kept here is not lost, although another machine cannot see it.
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
      : `It no longer has the entry ${id}${idempotency_key === null ? "" : ` (idempotency key ${idempotency_key})`}: note what is printed here.`;
    bench.tell.warn(`The journal could not be updated. ${why} ${left}`);
    return false;
  }
}

/** A failure of an entry's work: where it happened, and the request if an attempt may have left this machine. */
export function entryFailure(entry: Entry, kind: FailureKind, message: string, details: FailureDetails = {}): Failure {
  const wasSent = details.unsent !== true && entry.attempts > 0;
  const request = wasSent ? `${entry.method} ${entry.path}` : undefined;
  const here = { where: `profile ${entry.profile} (${entry.region})`, request };
  return new Failure(kind, message, { ...details, ...(details.where === undefined ? here : {}), entry: entry.id });
}

/** The fix that this machine needs before any next step can help. */
export function prerequisite({ kind, details }: Failure): string {
  const isLocal = (kind === "usage" || kind === "failed") && details.problem === undefined;
  const { hint, nextCommand, recovers } = details;
  if (recovers !== undefined || !isLocal) return "";
  if (hint !== undefined) return ` First: ${hint}`;
  return typeof nextCommand === "string" ? ` First: ${nextCommand}` : "";
}

/** A step that recovers an entry, and which one. */
export type RecoveryStep = Pick<FailureDetails, "hint" | "nextCommand" | "recovers">;

/** The next step "recover this entry", with what the recovery needs. */
export function recoveryStep(entry: string, flags: readonly string[] = []): RecoveryStep {
  return { hint: undefined, nextCommand: shell`integ journal recover ${entry} ${flags}`, recovers: entry };
}

/** The recovery step of a failure that has one of its own. */
export function recoveryIn({ hint, nextCommand, recovers }: FailureDetails): RecoveryStep | undefined {
  return recovers === undefined ? undefined : { hint, nextCommand, recovers };
}

/** The failure of a change with an unknown outcome (exit 7). @param more replaces the standard details */
export function outcomeUnknown(entry: Entry, because: Failure, more: FailureDetails = {}): Failure {
  const message =
    because.kind === "outcome_unknown" ? because.message : `${because.message} An earlier attempt may have arrived.`;
  return entryFailure(entry, "outcome_unknown", message, {
    ...because.details,
    // An earlier attempt was.
    unsent: false,
    meaning: `${whatUnknownMeans(entry)}${because.details.hint === undefined ? prerequisite(because) : ""}`,
    ...(recoveryIn(because.details) ?? recoveryAfter(because, entry.id)),
    ...more,
  });
}

/** The recovery as a command, unless something has to be done first: alone it would end the same way again. */
export function recoveryAfter(because: Failure, entry: string): RecoveryStep {
  const { hint, nextCommand } = because.details;
  const isStanding = standsUntilChanged(because);
  const first = isStanding && typeof nextCommand === "string" ? nextCommand : undefined;
  const isNeeded = isStanding || prerequisite(because) !== "";
  if (!isNeeded || (hint === undefined && first === undefined)) return recoveryStep(entry);
  const words: Advice =
    hint === undefined
      ? `Run integ journal recover ${entry} afterwards.`
      : `${hint} Then run integ journal recover ${entry}.`;
  return { nextCommand: first, hint: words, recovers: entry };
}

/** True of a refusal, and of a credential that is missing here: it is so again until a person changes something. */
export function standsUntilChanged({ kind, details: { problem, unsent } }: Failure): boolean {
  if (kind === "auth" && unsent === true) return true;
  return problem !== undefined && (kind === "auth" || kind === "not_found" || kind === "conflict");
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
