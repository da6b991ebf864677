import { type Answer, type Call, headerOf, jsonAnswer } from "./call.ts";
import { basicPair, hashOf, lifetimeOf, oauthToken } from "./credentials.ts";
import { requireOAuth } from "./oauth-clients.ts";
import { byId, type OAuthClientRecord, type Region } from "./state.ts";
import { mediaTypeOf } from "./request-bodies.ts";

// @assumed the whole exchange (§5.2 rule 7 "not shown"), and the address of the issuer's metadata (§5.2 rule 3): RFC
// 8414. An audience that is not this service's is refused; the default is this service's.

export function audienceOf(region: Region): string {
  return `urn:integ-sandbox:${region}`;
}

export const tokenPath = "/oauth/token";
/** RFC 8414 §3: the issuer is the base URL. */
export const issuerPath = "/.well-known/oauth-authorization-server";
const noStore = { "Cache-Control": "no-store", Pragma: "no-cache" };

class Refusal extends Error {
  readonly error: string;
  readonly status: number;

  constructor(error: string, description: string, status = 400) {
    super(description);
    this.error = error;
    this.status = status;
  }
}

function formOf(call: Call): URLSearchParams {
  if (mediaTypeOf(call) !== "application/x-www-form-urlencoded")
    throw new Refusal("invalid_request", "The body must be sent as application/x-www-form-urlencoded.");
  const form = new URLSearchParams(call.body.toString("utf8"));
  const names = [...form.keys()];
  if (new Set(names).size !== names.length) throw new Refusal("invalid_request", "A parameter is given twice.");
  return form;
}

/** RFC 6749 §2.3.1: both parts of Basic are form-encoded. */
function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Refusal("invalid_request", "The Authorization header is not form-encoded.");
  }
}

function credentialsOf(call: Call, form: URLSearchParams): { id: string; secret: string } {
  const header = headerOf(call, "authorization");
  const posted = form.get("client_secret");
  if (header === undefined) {
    if (posted === null) throw new Refusal("invalid_client", "The client does not authenticate.", 401);
    return { id: form.get("client_id") ?? "", secret: posted };
  }
  if (posted !== null) throw new Refusal("invalid_request", "The client authenticates in two ways.");
  const pair = basicPair(header);
  if (!pair) throw new Refusal("invalid_client", "The Authorization header is not Basic.", 401);
  return { id: formDecoded(pair.user), secret: formDecoded(pair.password) };
}

function clientOf(call: Call, given: { id: string; secret: string }): OAuthClientRecord {
  const hash = hashOf(given.secret);
  const client = call.here.oauthClients.find(({ clientId }) => clientId === given.id);
  const account = byId(call.here.serviceAccounts, client?.serviceAccountId);
  if (!client || client.secretHash !== hash || client.status !== "active" || account?.status !== "active")
    throw new Refusal("invalid_client", "The client is unknown, its secret is wrong, or it is not active.", 401);
  return client;
}

/** §5.2 rule 4: without requested scopes, those that both client and account have. */
function grantedScopes(call: Call, given: { client: OAuthClientRecord; requested: string | null }): string[] {
  const account = byId(call.here.serviceAccounts, given.client.serviceAccountId)!;
  const allowed = given.client.scopes.filter((scope) => account.permissions.includes(scope));
  const requested = given.requested === null ? allowed : given.requested.split(" ");
  if (requested.length === 0 || requested.some((scope) => !allowed.includes(scope)))
    throw new Refusal("invalid_scope", "The client may not have the requested scope.");
  return requested;
}

function exchange(call: Call): Answer {
  const form = formOf(call);
  const grant = form.get("grant_type");
  if (grant === null) throw new Refusal("invalid_request", "grant_type must be given.");
  const client = clientOf(call, credentialsOf(call, form));
  const audience = form.get("audience") ?? audienceOf(call.region);
  if (audience !== audienceOf(call.region)) throw new Refusal("invalid_target", "The audience is not this service's.");
  if (grant !== "client_credentials")
    throw new Refusal("unsupported_grant_type", "Only client_credentials is offered.");
  const scopes = grantedScopes(call, { client, requested: form.get("scope") });
  const token = {
    access_token: oauthToken(call.here, { client, scopes, now: call.now, seconds: lifetimeOf(call) }),
    token_type: "Bearer",
    expires_in: lifetimeOf(call),
    scope: scopes.join(" "),
  };
  return jsonAnswer(200, token, noStore);
}

export function publishIssuer(call: Call): Answer {
  requireOAuth(call);
  return jsonAnswer(200, {
    issuer: call.baseUrl,
    token_endpoint: `${call.baseUrl}${tokenPath}`,
    token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
    grant_types_supported: ["client_credentials"],
    response_types_supported: [],
  });
}

export function issueToken(call: Call): Answer {
  requireOAuth(call);
  try {
    return exchange(call);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const challenge: Record<string, string> =
      error.status === 401 ? { "WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"' } : {};
    return jsonAnswer(
      error.status,
      { error: error.error, error_description: error.message },
      { ...noStore, ...challenge },
    );
  }
}
