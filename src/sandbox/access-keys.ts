import {
  type Answer,
  type Call,
  type LegacyCaller,
  Problem,
  headerOf,
  invalidRequest,
  jsonAnswer,
  notFound,
  timestamp,
} from "./call.ts";
import { hashOf, legacyToken, lifetimeOf, randomName } from "./credentials.ts";
import { AccessKeyCreation, AccessKeyRotation, SecretExchange, isEmptyBody, readBody } from "./request-bodies.ts";
import { serviceEmail } from "./seed.ts";
import { type AccessKeyRecord, byId } from "./state.ts";

// @assumed everything about access keys except the creation's request and response (§4.4 "not shown"); a rotated key
// stays active, and a revoked key stays revoked (§3.2 "not shown")

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const noStore = { "Cache-Control": "no-store" };

/**
 * A key for push data ingestion may do nothing else (§5.3 rule 3).
 * @assumed all legacy operations require the organization header, which §4.4 names for creation only
 */
export function requireAccess(call: Call, caller: LegacyCaller): void {
  const id = headerOf(call, "x-organization-id");
  if (id === undefined || !uuid.test(id))
    throw invalidRequest("The header x-organization-id must be given, as a UUID.", "x-organization-id");
  if (id.toLowerCase() !== call.here.organizationId)
    throw new Problem(403, "permission_denied", "The access key belongs to another organization.");
  if (!caller.accessKey.scopes.includes("*"))
    throw new Problem(403, "permission_denied", "The access key is for push data ingestion only.");
}

function resourceOf(key: AccessKeyRecord): Record<string, unknown> {
  const timeOrNull = (time: number | null) => (time === null ? null : timestamp(time));
  return {
    id: key.id,
    name: key.name,
    keyType: key.keyType,
    boundEmail: key.boundEmail,
    status: key.status,
    lastUsedAt: timeOrNull(key.lastUsedAt),
    expiresAt: timeOrNull(key.expiresAt),
    createdAt: timestamp(key.createdAt),
    createdByUserId: key.createdByUserId,
    scopes: key.scopes,
  };
}

/** @assumed an expiry in the past is refused; an expired key stays `active` (§3.2 has no other, §4.4 "not shown") */
function expiryOf(call: Call, given: string | null | undefined): number | null {
  if (given === null || given === undefined) return null;
  const expiresAt = Date.parse(given);
  if (expiresAt <= call.now) throw invalidRequest("expiresAt must lie in the future.", "expiresAt");
  return expiresAt;
}

export function createAccessKey(call: Call, caller: LegacyCaller): Answer {
  requireAccess(call, caller);
  const body = readBody(call, AccessKeyCreation);
  const secret = randomName(`sbx_${call.region}_aks_`);
  const keyType = body.keyType ?? "user_bound";
  const key: AccessKeyRecord = {
    id: randomName(`ak_${call.region}_`),
    name: body.name,
    keyType,
    boundEmail: keyType === "user_bound" ? caller.accessKey.boundEmail : serviceEmail(call.region),
    createdByUserId: caller.accessKey.createdByUserId,
    scopes: [...new Set(body.scopes ?? ["*"])],
    createdAt: call.now,
    status: "active",
    lastUsedAt: null,
    expiresAt: expiryOf(call, body.expiresAt),
    secretHash: hashOf(secret),
    generation: 0,
  };
  call.here.accessKeys.push(key);
  return jsonAnswer(201, { ...resourceOf(key), secret }, noStore);
}

export function listAccessKeys(call: Call, caller: LegacyCaller): Answer {
  requireAccess(call, caller);
  const keys = call.here.accessKeys.toSorted((a, b) => b.createdAt - a.createdAt);
  return jsonAnswer(200, { data: keys.map(resourceOf) });
}

function keyOf(call: Call): AccessKeyRecord {
  const key = byId(call.here.accessKeys, call.parts.id);
  if (!key) throw notFound("No access key of this organization has this id.");
  return key;
}

/** The old secret and its tokens stop working immediately. */
export function rotateAccessKey(call: Call, caller: LegacyCaller): Answer {
  requireAccess(call, caller);
  if (!isEmptyBody(call)) readBody(call, AccessKeyRotation);
  const key = keyOf(call);
  const isOver = key.expiresAt !== null && key.expiresAt <= call.now;
  if (key.status === "revoked" || isOver)
    throw new Problem(409, "invalid_request", `The access key is ${isOver ? "expired" : "revoked"}.`);
  const secret = randomName(`sbx_${call.region}_aks_`);
  key.secretHash = hashOf(secret);
  key.generation += 1;
  const { seeded } = call.here;
  if (key.id === seeded.accessKeyId) seeded.accessKeySecret = secret;
  return jsonAnswer(200, { ...resourceOf(key), secret }, noStore);
}

export function revokeAccessKey(call: Call, caller: LegacyCaller): Answer {
  requireAccess(call, caller);
  const key = keyOf(call);
  key.status = "revoked";
  return jsonAnswer(200, resourceOf(key));
}

export function exchangeSecret(call: Call): Answer {
  const hash = hashOf(readBody(call, SecretExchange).secret);
  const key = call.here.accessKeys.find(({ secretHash }) => secretHash === hash);
  if (!key || key.status !== "active" || (key.expiresAt !== null && key.expiresAt <= call.now))
    throw new Problem(401, "unauthenticated", "The secret is not one of an active access key of this region.", {
      headers: { "WWW-Authenticate": 'Bearer realm="api"' },
    });
  key.lastUsedAt = call.now;
  const seconds = lifetimeOf(call);
  const token = {
    access_token: legacyToken(call.here, { id: key.id, generation: key.generation, now: call.now, seconds }),
    token_type: "Bearer",
    expires_in: seconds,
  };
  return jsonAnswer(200, token, noStore);
}
