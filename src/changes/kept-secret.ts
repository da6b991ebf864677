// Owns: what a secret that is kept on this machine belongs to, and what its entry becomes once it was claimed. Pure.
// Must not know: where it is kept, flags, terminals, files. Design: journal.md «Commands», cli.md §4 (exit 12).
import type { Entry } from "../journal/entry.ts";
import type { OneTimeSecret } from "../secrets/destination.ts";

/** True where the entry does not say which client its secret opens: it came in an answer that was cut. */
export function isUnnamed(entry: Entry): boolean {
  return entry.operation === "oauth_client.create" && entry.resource_id === null;
}

/** True where a person has claimed the secret: it is not lost, wherever it went. */
export function wasClaimed(entry: Entry): boolean {
  return entry.detail.secret_claimed === true;
}

/**
 * The kept secret with all that is known of what it opens. What came with it is its receipt where that is an object with
 * the secret at its top level; a text that was cut is none, and never stands between a secret and its place.
 */
export function belonging(kept: OneTimeSecret, entry: Entry): OneTimeSecret {
  const id = entry.resource_id ?? kept.id;
  const known = typeof entry.detail.client_id === "string" ? entry.detail.client_id : kept.clientId;
  const named = { ...kept, id, ...(known === undefined ? {} : { clientId: known }) };
  const field = secretFieldOf(kept);
  if (objectOf(kept.receipt)[field] === kept.secret) return named;
  const ids = kept.kind === "oauth_client" ? { client_id: known ?? null } : {};
  return { ...named, receipt: JSON.stringify({ id: id || null, ...ids, [field]: kept.secret }) };
}

/** The field of an answer that holds the secret (§2.3, §2.4). */
export function secretFieldOf({ kind }: OneTimeSecret): "client_secret" | "secret" {
  return kind === "oauth_client" ? "client_secret" : "secret";
}

/** What a claimed entry becomes: done, or unknown where a receipt has still to name its client. */
export function afterClaim(entry: Entry): Pick<Entry, "state" | "last_error" | "detail"> {
  const detail = { ...entry.detail, secret_claimed: true };
  return isUnnamed(entry)
    ? { state: "unknown", last_error: entry.last_error, detail }
    : { state: "done", last_error: null, detail };
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
