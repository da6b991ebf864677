// A secret that is kept on this machine until a person claims it: what it opens, and what its entry becomes then.
import type { Entry } from "../journal/entry.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";
import { settledState } from "./secret-delivery.ts";

/** True if the entry does not say which client its secret opens: it came in an answer that was cut. */
export function isUnnamed(entry: Entry): boolean {
  return entry.operation === "oauth_client.create" && entry.resource_id === null;
}

/** True if a person has claimed the secret: it is not lost, wherever it went. */
export function wasClaimed(entry: Entry): boolean {
  return entry.detail.secret_claimed === true;
}

/** What a claimed entry becomes: done, or unknown if a receipt has still to name its client. */
export function afterClaim(entry: Entry): Pick<Entry, "state" | "last_error" | "detail"> {
  const detail = { ...entry.detail, secret_claimed: true };
  return isUnnamed(entry)
    ? { state: "unknown", last_error: entry.last_error, detail }
    : { state: settledState(detail), last_error: null, detail };
}

/**
 * The kept secret with all that is known of what it opens. What came with it is its receipt if that is an object with the
 * secret at its top level; a text that was cut is none, and never keeps a secret from its destination.
 */
export function belonging(kept: OneTimeSecret, entry: Entry): OneTimeSecret {
  const id = entry.resource_id ?? kept.id;
  const clientId = entry.detail.client_id ?? kept.clientId;
  const named = { ...kept, id, clientId };
  const field = secretFieldOf(kept);
  if (objectOf(kept.receipt)[field] === kept.secret) return named;
  const ids = kept.kind === "oauth_client" ? { client_id: clientId ?? null } : {};
  return { ...named, receipt: JSON.stringify({ id: id || null, ...ids, [field]: kept.secret }) };
}

/** The field of an answer that holds the secret (§2.3, §2.4). */
export function secretFieldOf({ kind }: OneTimeSecret): "client_secret" | "secret" {
  return kind === "oauth_client" ? "client_secret" : "secret";
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
