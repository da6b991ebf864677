// Owns: an entry of the journal as data: its states, which of them are settled, what to type next, its public form. Pure.
// Must not know: files, locks, the API, a secret (no field has room for one). design: journal.md «Entries».

export type Operation =
  | "oauth_client.create"
  | "oauth_client.revoke"
  | "oauth_client.rotate"
  | "access_key.create"
  | "access_key.rotate"
  | "access_key.revoke";

export type EntryState =
  | "open"
  | "unknown"
  | "pending"
  | "secret_lost"
  | "undelivered"
  | "done"
  | "refused"
  | "unusable"
  | "replaced"
  | "abandoned";

/** The states that want something done: what `journal list` shows without `--all`. */
export const unsettledStates = ["open", "unknown", "pending", "secret_lost", "undelivered"] as const;

const settled: ReadonlySet<string> = new Set<EntryState>(["done", "refused", "unusable", "replaced", "abandoned"]);

/** A state that a newer program invented counts as unsettled: better mentioned once too often than forgotten. */
export function isSettled(state: string): boolean {
  return settled.has(state);
}

/** The newest format of the journal that this program writes. A newer one is shown and never changed. */
export const formatVersion = 1;

type PlainObject = Readonly<Record<string, unknown>>;

/** What the last attempt met. `message` may hold the service's words: only `output/` may show it. */
export interface LastError {
  readonly kind: string;
  readonly message: string;
  readonly status?: number;
  readonly code?: string;
  readonly request_id?: string;
}

/** What never changes once an entry is admitted: the intent with its key and its exact request. */
export interface EntryIdentity {
  readonly id: string;
  readonly operation: Operation;
  /** null where the contract has no idempotency key. */
  readonly idempotency_key: string | null;
  /** Name of the profile at the time. */
  readonly profile: string;
  /** The profile's own id, which changes with what the profile is bound to. */
  readonly profile_id: string;
  readonly organization_id: string | null;
  readonly region: string;
  readonly base_url: string;
  readonly service_version: string;
  readonly method?: string;
  readonly path?: string;
  /** The request's body, character for character as it is sent; empty where there is none. */
  readonly request_text: string;
  /** Normal form of the request: the same text means the same request (scopes as a set, for example). */
  readonly twin: string;
  /** Entry whose client this one stands in for. */
  readonly replaces: string | null;
  /** Entry of the larger piece of work that this one belongs to. */
  readonly parent: string | null;
  /** ISO 8601 UTC, milliseconds. */
  readonly created_at: string;
}

/** What a step of the work may change. */
export interface EntryProgress {
  readonly state: EntryState;
  readonly resource_id: string | null;
  /** How often the request was sent. */
  readonly attempts: number;
  readonly last_error: LastError | null;
  /** Where the secret was to go, as `secrets/` describes it: no secret, nothing that opens one. */
  readonly destination: PlainObject | null;
  readonly replaced_by: string | null;
  /** What the work itself needs to go on: its step, the old client's id, when an overlap ends. */
  readonly detail: PlainObject;
}

export interface Entry extends EntryIdentity, EntryProgress {
  /** ISO 8601 UTC, milliseconds. */
  readonly updated_at: string;
  /** Format of the record it was read from; above `formatVersion` it is shown and never changed. */
  readonly format: number;
}

/**
 * The command that a person types next, or null where nothing is left to do (or only a newer program may do it).
 */
export function nextStep(entry: Pick<Entry, "id" | "state" | "format">): string | null {
  if (entry.format > formatVersion) return null;
  switch (entry.state) {
    case "open":
    case "unknown":
    case "pending":
      return `integ journal recover ${entry.id}`;
    case "secret_lost":
      return `integ journal recover ${entry.id} --replace-lost-secret`;
    case "undelivered":
      return `integ journal claim ${entry.id}`;
    default:
      return null;
  }
}

/** The request's own text where it is JSON (large integers and key order survive), else that text as a string. */
function requestJson(text: string): string {
  if (text === "") return "null";
  try {
    JSON.parse(text);
  } catch {
    return JSON.stringify(text);
  }
  return text;
}

/**
 * The entry as `journal list --json` shows it: JSON text with the keys of journal.md in that order, then `replaces`,
 * `replaced_by` and `parent` where they are set. `request` is the body as it was sent, not parsed and written again.
 */
export function publicEntry(entry: Entry): string {
  const before = {
    id: entry.id,
    object: "journal_entry",
    operation: entry.operation,
    state: entry.state,
    idempotency_key: entry.idempotency_key,
    profile: entry.profile,
    region: entry.region,
    base_url: entry.base_url,
    service_version: entry.service_version,
  };
  const after = {
    resource_id: entry.resource_id,
    attempts: entry.attempts,
    created_at: entry.created_at,
    updated_at: entry.updated_at,
    last_error: entry.last_error,
    next_step: nextStep(entry),
    ...(entry.replaces === null ? {} : { replaces: entry.replaces }),
    ...(entry.replaced_by === null ? {} : { replaced_by: entry.replaced_by }),
    ...(entry.parent === null ? {} : { parent: entry.parent }),
  };
  return `${JSON.stringify(before).slice(0, -1)},"request":${requestJson(entry.request_text)},${JSON.stringify(after).slice(1)}`;
}
