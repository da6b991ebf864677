import { type Answer, type Call, type V1Caller, isOwn, jsonAnswer, notFound, timestamp } from "./call.ts";
import { hashOf, randomName, requirePermission } from "./credentials.ts";
import { byId, type OAuthClientRecord, type Region } from "./state.ts";

export const management = "service_account:manage";
const noStore = { "Cache-Control": "no-store" };

/** Without OAuth access, the service responds with 404 (§4.2 rule 5, §7). */
export function requireOAuth(call: Call): void {
  if (!call.here.oauthEnabled) throw notFound("OAuth access is not enabled for this organization.");
}

/** @param secret undefined in retrievals and revocations, which never have one (§2.3) */
export function clientAnswer(status: number, client: OAuthClientRecord, secret?: string | null): Answer {
  const resource = {
    object: "oauth_client",
    id: client.id,
    service_account_id: client.serviceAccountId,
    client_id: client.clientId,
    scopes: client.scopes,
    status: client.status,
    created_at: timestamp(client.createdAt),
    ...(secret === undefined ? {} : { client_secret: secret }),
  };
  return jsonAnswer(status, resource, noStore);
}

export function complete(client: OAuthClientRecord, region: Region): string {
  const secret = randomName(`sbx_${region}_cs_`);
  client.status = "active";
  client.clientId ??= randomName(`cid_${region}_`);
  client.secretHash = hashOf(secret);
  client.pending = null;
  return secret;
}

/**
 * Each inspection counts down. After zero, the next inspection, or only the next replayed creation, completes the
 * client.
 * @returns the secret if a replayed creation completes the client (§2.3), else null
 * @assumed what completes a pending creation (§3.1 "not shown"); if the client completes by itself, its secret is lost
 */
export function inspect(
  client: OAuthClientRecord,
  seen: { by: "retrieval" | "replay"; region: Region },
): string | null {
  const { pending } = client;
  if (client.status !== "pending" || pending === null) return null;
  if (pending.inspectionsLeft > 0) {
    pending.inspectionsLeft -= 1;
    return null;
  }
  if (pending.completedBy === "itself") {
    complete(client, seen.region);
    return null;
  }
  return seen.by === "replay" ? complete(client, seen.region) : null;
}

function clientOf(call: Call, caller: V1Caller): OAuthClientRecord {
  const client = byId(call.here.oauthClients, call.parts.id);
  if (!client || !isOwn(call, { caller, id: client.serviceAccountId }))
    throw notFound("No OAuth client of this organization has this id.");
  return client;
}

/** Inspecting a pending client changes the state. */
export function retrievalChanges(call: Call): boolean {
  return (byId(call.here.oauthClients, call.parts.id)?.pending ?? null) !== null;
}

/** @assumed retrieval needs `service_account:manage` (§4.2 names it for creation) */
export function getOAuthClient(call: Call, caller: V1Caller): Answer {
  requireOAuth(call);
  requirePermission(caller, management);
  const client = clientOf(call, caller);
  inspect(client, { by: "retrieval", region: call.region });
  return clientAnswer(200, client);
}

/**
 * A revocation takes effect immediately and is safe to repeat (§3.1).
 * @assumed a disabled or expired client can be revoked too (§3.1 names active and pending); remote cleanup is confirmed
 * immediately unless a fault delays it
 */
export function revokeOAuthClient(call: Call, caller: V1Caller): Answer {
  requireOAuth(call);
  requirePermission(caller, management);
  const client = clientOf(call, caller);
  if (client.status !== "revoked") {
    const { cleanup } = call.effects;
    client.status = "revoked";
    client.pending = null;
    client.cleanup = cleanup === "open" ? "open" : call.now + (cleanup ?? 0);
  }
  return clientAnswer(200, client);
}
