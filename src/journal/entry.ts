// Owns: an entry of the journal as data, its states, and which of them are settled. Pure.
// Must not know: files, locks, the API, a secret.

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

const unsettled: ReadonlySet<EntryState> = new Set(["open", "unknown", "pending", "secret_lost", "undelivered"]);

export function isSettled(state: EntryState): boolean {
  return !unsettled.has(state);
}
