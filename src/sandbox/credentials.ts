import { createHmac, hash, randomFillSync, timingSafeEqual } from "node:crypto";
import { type Call, type LegacyCaller, Problem, type V1Caller, headerOf, invalidRequest } from "./call.ts";
import { type ApiKey, byId, type OAuthClientRecord, type RegionState, type ServiceAccount } from "./state.ts";

/** Random bytes for several names: a call costs about the same for 16 and 4096 bytes. */
const unused = Buffer.alloc(4096);
let usedUpTo = unused.length;

export function randomName(prefix: string): string {
  if (usedUpTo === unused.length) {
    randomFillSync(unused);
    usedUpTo = 0;
  }
  const digits = unused.toString("hex", usedUpTo, usedUpTo + 16);
  usedUpTo += 16;
  return prefix + digits;
}

/** The state keeps secrets as hashes, except the seeded ones. */
export function hashOf(secret: string): string {
  return hash("sha256", secret, "hex");
}

function signature(key: string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest().subarray(0, 18);
}

/** An opaque token of two base64url parts. `binding` is signed but not included: `unseal` needs the same. */
export function seal(key: string, sealed: { text: string; binding: string }): string {
  const mac = signature(key, `${sealed.binding}\n${sealed.text}`);
  return `${Buffer.from(sealed.text).toString("base64url")}.${mac.toString("base64url")}`;
}

export function unseal(key: string, sealed: { token: string; binding: string }): string | undefined {
  const parts = sealed.token.split(".");
  if (parts.length !== 2) return undefined;
  const text = Buffer.from(parts[0]!, "base64url").toString();
  const given = Buffer.from(parts[1]!, "base64url");
  const expected = signature(key, `${sealed.binding}\n${text}`);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  // Several base64url texts stand for the same bytes. Only the issued one is valid.
  return seal(key, { text, binding: sealed.binding }) === sealed.token ? text : undefined;
}

/** @assumed lifetime of an OAuth access token and of a legacy bearer token ("short-lived", §5.3) */
const accessTokenSeconds = 900;

export function lifetimeOf(call: Pick<Call, "effects">): number {
  const { lifetime } = call.effects;
  return lifetime === undefined ? accessTokenSeconds : Math.max(1, Math.round(lifetime / 1000));
}

const challenges = 'Basic realm="v1", charset="UTF-8", Bearer realm="v1"';

function unauthenticated(detail: string, challenge = challenges): Problem {
  return new Problem(401, "unauthenticated", detail, { headers: { "WWW-Authenticate": challenge } });
}

export function basicPair(header: string): { user: string; password: string } | undefined {
  const match = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header);
  if (!match) return undefined;
  const text = Buffer.from(match[1]!, "base64").toString();
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

function bearerOf(header: string): string | undefined {
  return /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1];
}

function accountOf(here: RegionState, id: string): ServiceAccount {
  const account = byId(here.serviceAccounts, id)!;
  if (account.status !== "active")
    throw new Problem(403, "permission_denied", `The service account ${id} is disabled.`);
  return account;
}

function limitedTo(permissions: readonly string[], scopes: readonly string[] | null): Set<string> {
  return new Set(scopes === null ? permissions : permissions.filter((permission) => scopes.includes(permission)));
}

export function v1Caller(call: Call): V1Caller {
  const header = headerOf(call, "authorization");
  if (header === undefined) throw unauthenticated("The request carries no Authorization header.");
  const pair = basicPair(header);
  const authenticated = pair ? byApiKey(call, pair) : byOAuthToken(call, bearerOf(header));
  return { ...authenticated, version: contractVersion(call, authenticated.account) };
}

type Authenticated = Omit<V1Caller, "version">;

function byApiKey(call: Call, pair: { user: string; password: string }): Authenticated {
  const given = pair.user === "apikey" ? pair.password : pair.password === "" ? pair.user : "";
  const hash = hashOf(given);
  const apiKey = call.here.apiKeys.find(({ keyHash }) => keyHash === hash) ?? accessKeyOf(call, hash);
  if (given === "" || !apiKey) throw unauthenticated(`The API key is not one of the ${call.region} region.`);
  if (apiKey.status !== "active") throw unauthenticated(`The API key is ${apiKey.status}.`);
  if (apiKey.expiresAt !== null && apiKey.expiresAt <= call.now) throw unauthenticated("The API key has expired.");
  const account = accountOf(call.here, apiKey.serviceAccountId);
  return { account, permissions: limitedTo(account.permissions, apiKey.scopes) };
}

/**
 * @assumed §5.1 does not define API keys: an access key's secret is one; with the scope `*`, it has the rights of the
 * account `sa_<region>_admin`, else none
 */
function accessKeyOf(call: Call, hash: string): Omit<ApiKey, "id" | "keyHash"> | undefined {
  const key = call.here.accessKeys.find(({ secretHash }) => secretHash === hash);
  if (!key) return undefined;
  const { status, expiresAt } = key;
  const scopes = key.scopes.includes("*") ? null : [];
  return { status, expiresAt, scopes, serviceAccountId: `sa_${call.region}_admin` };
}

interface OAuthTokenFacts {
  readonly client: string;
  readonly scopes: string[];
  readonly expires: number;
}

export function oauthToken(
  here: RegionState,
  issued: { client: OAuthClientRecord; scopes: string[]; now: number; seconds: number },
): string {
  const facts: OAuthTokenFacts = {
    client: issued.client.id,
    scopes: issued.scopes,
    expires: issued.now + issued.seconds * 1000,
  };
  return seal(here.signingKey, { text: JSON.stringify(facts), binding: "oauth" });
}

function byOAuthToken(call: Call, token: string | undefined): Authenticated {
  if (token === undefined)
    throw unauthenticated("The Authorization header is neither Basic nor Bearer as this service takes it.");
  const text = unseal(call.here.signingKey, { token, binding: "oauth" });
  if (text === undefined) throw unauthenticated(`The access token is not one of the ${call.region} region's.`);
  const facts: OAuthTokenFacts = JSON.parse(text);
  if (facts.expires <= call.now) throw unauthenticated("The access token has expired.");
  const client = byId(call.here.oauthClients, facts.client);
  if (client?.status !== "active" || !call.here.oauthEnabled)
    throw unauthenticated(
      `The OAuth client of this token is ${client?.status === "active" ? "not enabled" : (client?.status ?? "unknown")}.`,
    );
  // @assumed the caller's account limits a client only when the client is created; the client's own account limits it
  // always (§4.2 rule 4 names both limits, §5.2 rule 4 only the own account's permissions)
  const account = accountOf(call.here, client.serviceAccountId);
  return { account, permissions: limitedTo(account.permissions, facts.scopes) };
}

function contractVersion(call: Call, account: ServiceAccount): string {
  const pinned = headerOf(call, "service-version");
  if (pinned === undefined) return account.assignedVersion;
  if (!call.contractVersions.includes(pinned)) {
    const supported = call.contractVersions.join(", ");
    throw invalidRequest(
      `Service-Version is not a supported contract version (supported: ${supported}).`,
      "Service-Version",
    );
  }
  return pinned;
}

/**
 * @assumed 403 means a missing permission, 404 an unknown resource or one of another organization (§7 "not shown beyond
 * status"): the permission is checked first, so that a caller without it never gets 404
 */
export function requirePermission(caller: V1Caller, permission: string): void {
  if (caller.permissions.has(permission)) return;
  const granted = [...caller.permissions].sort().join(", ") || "no permission";
  const detail = `The credential does not have the permission ${permission}. It has ${granted}.`;
  throw new Problem(403, "permission_denied", detail);
}

interface LegacyTokenFacts {
  readonly key: string;
  readonly generation: number;
  readonly expires: number;
}

export function legacyToken(
  here: RegionState,
  issued: { id: string; generation: number; now: number; seconds?: number },
): string {
  const facts: LegacyTokenFacts = {
    key: issued.id,
    generation: issued.generation,
    expires: issued.now + (issued.seconds ?? accessTokenSeconds) * 1000,
  };
  return seal(here.signingKey, { text: JSON.stringify(facts), binding: "legacy" });
}

export function legacyCaller(call: Call): LegacyCaller {
  const refused = (detail: string) => unauthenticated(detail, 'Bearer realm="api"');
  const header = headerOf(call, "authorization");
  if (header === undefined) throw refused("The request carries no Authorization header.");
  const token = bearerOf(header);
  if (token === undefined)
    throw refused("The Authorization header is not Bearer, which is all that this contract takes.");
  const text = unseal(call.here.signingKey, { token, binding: "legacy" });
  if (text === undefined) throw refused(`The bearer token is not one of the ${call.region} region's.`);
  const facts: LegacyTokenFacts = JSON.parse(text);
  if (facts.expires <= call.now) throw refused("The bearer token has expired.");
  const accessKey = byId(call.here.accessKeys, facts.key);
  if (!accessKey || accessKey.status !== "active") throw refused("The access key of this token is revoked.");
  if (accessKey.generation !== facts.generation) throw refused("The access key of this token was rotated.");
  if (accessKey.expiresAt !== null && accessKey.expiresAt <= call.now)
    throw refused("The access key of this token has expired.");
  return { accessKey };
}
