// Owns: what the journal's entries tell of OAuth clients, service accounts and scopes at one address: the API has no list
// of them (§4.2). Pure. Must not know: the service, how they are shown or asked for.
import type { Entry } from "../../journal/entry.ts";

export interface KnownClient {
  readonly id: string;
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly client_id: string | null;
  /** As last seen: `active`, `pending` or `revoked`. */
  readonly status: string;
  readonly created_at: string;
}

/** What one creation asked for. */
export interface KnownRequest {
  readonly service_account_id: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
}

function requestOf(entry: Entry): KnownRequest {
  const { service_account_id, scopes } = JSON.parse(entry.request_text) as Omit<KnownRequest, "created_at">;
  return { service_account_id, scopes, created_at: entry.created_at };
}

function creationsAt(entries: readonly Entry[], baseUrl: string): Entry[] {
  return entries.filter((entry) => entry.operation === "oauth_client.create" && entry.base_url === baseUrl);
}

/** The clients that creations at this address made, newest first; a revocation since is remembered. */
export function clientsIn(entries: readonly Entry[], baseUrl: string): KnownClient[] {
  const gone = new Set(
    entries
      .filter(({ operation, state }) => operation === "oauth_client.revoke" && state === "done")
      .filter(({ base_url }) => base_url === baseUrl)
      .map((entry) => entry.resource_id),
  );
  const seen = new Set<string>();
  return creationsAt(entries, baseUrl).flatMap((entry) => {
    const id = entry.resource_id;
    if (id === null || seen.has(id)) return [];
    seen.add(id);
    const client_id = typeof entry.detail.client_id === "string" ? entry.detail.client_id : null;
    const revoked =
      gone.has(id) || entry.state === "replaced" || entry.state === "unusable" || entry.detail.revoked === true;
    const status = revoked ? "revoked" : entry.state === "pending" ? "pending" : "active";
    const { service_account_id, scopes, created_at } = requestOf(entry);
    return [{ id, service_account_id, scopes, client_id, status, created_at }];
  });
}

/**
 * What was asked for at this address, newest first. A creation that was refused is left out: its service account or a scope
 * may have been mistyped, and would be offered for ever.
 */
export function requestsIn(entries: readonly Entry[], baseUrl: string): KnownRequest[] {
  return creationsAt(entries, baseUrl)
    .filter(({ state }) => state !== "refused")
    .map(requestOf);
}
