import { type Answer, type Call, Problem, type V1Caller, headerOf, invalidRequest, isOwn, notFound } from "./call.ts";
import { randomName, requirePermission } from "./credentials.ts";
import { clientAnswer, complete, inspect, management, requireOAuth } from "./oauth-clients.ts";
import { OAuthClientCreation, readBody } from "./request-bodies.ts";
import { byId, type OAuthClientRecord, type Receipt, usedSlots } from "./state.ts";

const maxClients = 20;

type Identity = Omit<Receipt, "oauthClientId">;

function idempotencyKeyOf(call: Call): string {
  const key = headerOf(call, "idempotency-key");
  if (key === undefined) throw invalidRequest("The header Idempotency-Key must be given.", "Idempotency-Key");
  if (!/^[\x21-\x7E]{1,255}$/.test(key))
    throw invalidRequest(
      "Idempotency-Key must be 1 to 255 visible ASCII characters without spaces.",
      "Idempotency-Key",
    );
  return key;
}

/** @assumed scopes are a set, which §4.2 rule 2 does not say: order and repetition do not matter (RFC 6749 §3.3) */
function identityOf(call: Call, caller: V1Caller): Identity {
  const body = readBody(call, OAuthClientCreation);
  return {
    idempotencyKey: idempotencyKeyOf(call),
    serviceAccountId: body.service_account_id,
    scopes: [...new Set(body.scopes)],
    managementPrincipal: caller.account.id,
    version: caller.version,
  };
}

/** @assumed another principal or API version makes another request, so 409 (§4.2 rule 2 defines only a replay) */
function isSame(receipt: Identity, identity: Identity): boolean {
  return (
    receipt.serviceAccountId === identity.serviceAccountId &&
    receipt.managementPrincipal === identity.managementPrincipal &&
    receipt.version === identity.version &&
    receipt.scopes.toSorted().join(" ") === identity.scopes.toSorted().join(" ")
  );
}

function conflict(detail: string, param?: string): Problem {
  return new Problem(409, "invalid_request", detail, param === undefined ? {} : { param });
}

/**
 * @assumed an unknown target is 404 (§7 "resource not owned by the caller"); no account has a permission for a scope
 * that §5.1 rule 6 does not show
 */
function refusalOfTarget(call: Call, given: { caller: V1Caller; identity: Identity }): Problem | undefined {
  const { caller, identity } = given;
  const id = identity.serviceAccountId;
  const target = byId(call.here.serviceAccounts, id);
  if (!target || !isOwn(call, { caller, id })) return notFound("No service account of this organization has this id.");
  if (target.status !== "active") return conflict(`The service account is ${target.status}.`, "service_account_id");
  const missing = identity.scopes.filter((scope) => !target.permissions.includes(scope));
  if (missing.length > 0) {
    const granted = target.permissions.join(", ") || "no permission";
    return conflict(`The service account does not have ${missing.join(", ")}. It has ${granted}.`, "scopes");
  }
  if (usedSlots(call.here, { serviceAccountId: id, now: call.now }) >= maxClients)
    return conflict(`The service account has ${maxClients} clients, unresolved creations and cleanups included.`);
  return undefined;
}

function make(call: Call, identity: Identity): { client: OAuthClientRecord; secret: string | null } {
  const client: OAuthClientRecord = {
    id: randomName(`oac_${call.region}_`),
    serviceAccountId: identity.serviceAccountId,
    scopes: identity.scopes,
    createdAt: call.now,
    clientId: null,
    secretHash: null,
    status: "pending",
    pending: null,
    cleanup: null,
  };
  const { pending, secret, effect, clientId } = call.effects;
  if (clientId === "early") client.clientId = randomName(`cid_${call.region}_`);
  if (effect === "uncertain") return { client, secret: null };
  if (pending !== undefined) {
    client.pending = { inspectionsLeft: pending, completedBy: secret === "replay" ? "replay" : "itself" };
    return { client, secret: null };
  }
  const issuedSecret = complete(client, call.region);
  return { client, secret: secret === "withheld" ? null : issuedSecret };
}

/**
 * @assumed which refusals reserve the key (§3.1 names a creation that failed before provider work began, §4.2 names
 * none): only those because of the target account, not those of a malformed or forbidden request
 */
export function createOAuthClient(call: Call, caller: V1Caller): Answer | Problem {
  requireOAuth(call);
  const identity = identityOf(call, caller);
  requirePermission(caller, management);
  for (const scope of identity.scopes) requirePermission(caller, scope);
  const { oauthClients, receipts } = call.here;
  let receipt = receipts.find(
    ({ idempotencyKey, managementPrincipal }) =>
      idempotencyKey === identity.idempotencyKey && isOwn(call, { caller, id: managementPrincipal }),
  );
  if (receipt && !isSame(receipt, identity))
    throw new Problem(409, "idempotency_key_reuse", "This Idempotency-Key was used for another request.");
  const existing = byId(oauthClients, receipt?.oauthClientId);
  if (existing) return clientAnswer(201, existing, inspect(existing, { by: "replay", region: call.region }));
  if (!receipt) {
    receipt = { ...identity, oauthClientId: null };
    receipts.push(receipt);
  }
  const refusal = refusalOfTarget(call, { caller, identity });
  if (refusal !== undefined) return refusal;
  if (call.effects.effect === "abandoned") {
    // §3.1: the abandoned creation uses no slot and keeps its key reserved.
    return { status: 503 };
  }
  const creation = make(call, identity);
  oauthClients.push(creation.client);
  receipt.oauthClientId = creation.client.id;
  return clientAnswer(201, creation.client, creation.secret);
}
