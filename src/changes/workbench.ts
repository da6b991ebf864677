// Owns: what every change works with: the account, the journal, the clock, and how it tells a person what it does.
// Must not know: flags, terminals, files.
import type { Service } from "../api/connect.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { Destination, DestinationRecord, OneTimeSecret } from "../secrets/destination.ts";
import { Failure, type FailureDetails } from "../errors.ts";
import type { DiskTrust } from "./disk-trust.ts";

/** Whose account is changed. `service` sends as this profile, and to nowhere else. */
export interface Account {
  readonly profile: string;
  readonly profileId: string;
  readonly region: string;
  readonly baseUrl: string;
  readonly organizationId: string | null;
  readonly serviceVersion: string;
  readonly service: Service;
  /** Resource id of the profile's own access key, where it is known. */
  readonly keyId?: string;
  /** One token exchange as a given client, where the profile knows the token endpoint; throws where it is refused. */
  readonly proveClient?: (client: { clientId: string; secret: string }) => Promise<void>;
}

/** How a change tells what goes on. Nothing of it is a result. */
export interface Tell {
  note(text: string): void;
  warn(text: string): void;
  /** A wait begins; the returned function ends it. */
  waiting(label: string, ms: number): () => void;
  /** Something of unknown length is under way; the returned function ends it. */
  busy(label: string): () => void;
}

/** The part of the clock that a change needs (see context.ts). */
export interface WorkClock {
  now(): number;
  sleep(ms: number): Promise<void>;
  random(): number;
  readonly interruption: AbortSignal;
  finishing<T>(work: () => Promise<T>): Promise<T>;
}

/** Where secrets of unfinished work are looked for, and kept where a destination broke. */
export interface SecretKeeping {
  /** True where the secret reached the place that the journal remembers; completes a delivery that a crash cut short. */
  wasDelivered(record: DestinationRecord, facts: { clientId?: string; id?: string }): Promise<boolean>;
  /**
   * Gives back what was reserved at that place for an entry. A whole secret stays, unless `isKept`: it is safe elsewhere.
   * Safe to repeat.
   */
  removeReserve(record: DestinationRecord, entry: string, options?: { readonly isKept?: boolean }): Promise<void>;
  /** The secret that a finished delivery left readable (a file, a profile), for a proof after a crash. */
  reread(record: DestinationRecord): Promise<string | undefined>;
  /** Makes room for the secret before it exists, so that a disk that fills up later cannot lose it. */
  reserve(entry: string): Promise<void>;
  keep(entry: string, secret: OneTimeSecret): Promise<void>;
  isKept(entry: string): boolean;
  /** The kept secret; throws `failed` where none is kept or what is kept is damaged. */
  readKept(entry: string): Promise<OneTimeSecret>;
  /** Removes the kept copy of a secret that was delivered. Safe to repeat. */
  destroyKept(entry: string): Promise<void>;
  /** Gives back an empty reserve; a kept secret stays. */
  release(entry: string): Promise<void>;
}

export interface Workbench {
  readonly account: Account;
  readonly journal: Journal;
  readonly secrets: SecretKeeping;
  readonly clock: WorkClock;
  readonly tell: Tell;
  readonly disk: DiskTrust;
  /** How long to keep retrying altogether, milliseconds; 0 is one attempt. */
  readonly retryForMs: number;
}

/** One exchange whose answer must not be thrown away, also after a Ctrl-C; a person sees that it is waited for. */
export async function exchanged<T>(
  { clock, tell }: Pick<Workbench, "clock" | "tell">,
  send: () => Promise<T>,
): Promise<T> {
  const done = tell.busy("Waiting for the service");
  try {
    return await clock.finishing(send);
  } finally {
    done();
  }
}

/** The part of an intent that the account decides. */
export function madeFor(
  account: Account,
): Pick<Intent, "profile" | "profile_id" | "organization_id" | "region" | "base_url" | "service_version"> {
  return {
    profile: account.profile,
    profile_id: account.profileId,
    organization_id: account.organizationId,
    region: account.region,
    base_url: account.baseUrl,
    service_version: account.serviceVersion,
  };
}

/**
 * Records what happened after something was sent. The change has happened whatever the disk does: a journal that
 * cannot be written is told and the result still reaches the person (a replay is safe).
 */
export async function recordAfterwards(
  bench: Workbench,
  drive: EntryLease,
  change: Parameters<EntryLease["record"]>[0],
): Promise<void> {
  try {
    await drive.record(change);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    bench.disk.lose(why);
    bench.tell.warn(
      `The journal could not be updated. ${why} It still holds the entry ${drive.entry.id}: "integ journal recover ${drive.entry.id}" is safe.`,
    );
  }
}

/**
 * Gives back what was reserved for a secret. It is tidying up: how the work ended stays what it is, whatever the disk does;
 * what could not be given back is told, and `journal recover` gives it back later.
 */
export async function giveBack(bench: Workbench, entry: string, destination?: Destination): Promise<void> {
  const works = [
    async () => destination?.release(),
    async () => (bench.secrets.isKept(entry) ? undefined : bench.secrets.release(entry)),
  ];
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      bench.disk.lose(why);
      bench.tell.warn(`Room that was reserved for the secret could not be given back (${why})`);
    }
  }
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

/** The failure with the id of the answer that it followed from, where it has none of its own. */
export function withRequestId(failure: Failure, requestId: string | undefined): Failure {
  const { kind, message, details } = failure;
  if (requestId === undefined || details.problem?.request_id !== undefined) return failure;
  return new Failure(kind, message, { ...details, problem: { ...details.problem, request_id: requestId } });
}

/** True of a failure that a person reads as «nothing was done»: in the middle of larger work that is not so. */
export function saysNothingWasDone({ kind }: Failure): boolean {
  return kind === "usage" || kind === "failed" || kind === "unreachable";
}

/** True of Ctrl-C and SIGTERM. */
export function isInterruption({ kind }: Failure): boolean {
  return kind === "interrupted" || kind === "terminated";
}

/** What has to be mended on this machine before any next step can help. */
export function mendFirst({ kind, details }: Failure): string {
  if (details.hint === undefined || recoveryIn(details) || (kind !== "usage" && kind !== "failed") || details.problem)
    return "";
  return ` First: ${details.hint.replace(/\.$/, "")}.`;
}

/** The failure of a change whose outcome nobody knows (exit 7). */
export function outcomeUnknown(entry: Entry, because: Failure): Failure {
  const known = entry.idempotency_key
    ? "The change may or may not have happened. The idempotency key is saved, so nothing can be done twice."
    : "The change may or may not have happened. It is not sent again by itself.";
  return new Failure(
    "outcome_unknown",
    because.kind === "outcome_unknown" ? because.message : `${because.message} An earlier attempt may have arrived.`,
    detailsOf(entry, {
      ...because.details,
      // An earlier attempt was.
      unsent: false,
      meaning: `${known}${mendFirst(because)}`,
      hint: recoveryIn(because.details) ?? `integ journal recover ${entry.id}`,
    }),
  );
}

/** The recovery that a failure asks for itself, with what it has to be told. */
export function recoveryIn({ hint }: FailureDetails): string | undefined {
  return hint?.startsWith("integ journal recover ") ? hint : undefined;
}

/** What the journal keeps of a failure. */
export function lastErrorOf(failure: Failure): NonNullable<Entry["last_error"]> {
  const { status, code, request_id } = failure.details.problem ?? {};
  return { kind: failure.kind, message: failure.message, status, code, request_id };
}
