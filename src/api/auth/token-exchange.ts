// Exchanges credentials for tokens (§5.2, §5.3), and compares the issuer's metadata with the profile.
import { Failure, invalidValue } from "../../errors.ts";
import type { Attempt } from "../call/attempt.ts";
import { type Answer, jsonOf, toAttempt } from "../call/caller.ts";
import type { Exchange, Transport } from "../http/exchange.ts";
import { BrokenBody, type JsonObject, parseJson } from "../json/json-text.ts";
import type { Authenticated, AuthenticatedBy } from "./client-assertion.ts";
import type { ClientProof, LegacyCredential, TokenEndpoint, TokenGrant } from "./credential.ts";
import { isObject } from "../../json.ts";

export interface Tokens {
  /**
   * The client credentials grant (RFC 6749 §4.4).
   * @returns undefined if `at` is absent and the profile has no token endpoint
   * @throws Failure as `exchangeClientCredentials`
   */
  exchangeClient(
    client: ClientProof & {
      readonly clientId: string;
      readonly at?: TokenEndpoint;
      /** Default: the `scope` of `at`. */
      readonly scopes?: readonly string[] | undefined;
    },
  ): Promise<Attempt<TokenGrant> | undefined>;
  /**
   * @param endpoint default: the profile's exchange command or endpoint
   * @returns undefined if the profile has a token instead of an exchange
   * @throws Failure `usage` if the endpoint is not an address; a Failure of the profile's credential or command
   */
  exchangeAccessKey(secret: string, endpoint?: string): Promise<Attempt<TokenGrant> | undefined>;
  compareIssuer(): Promise<Attempt<readonly IssuerDifference[]> | undefined>;
}

export interface TokensOptions extends ExchangeOptions {
  readonly tokenEndpoint?: TokenEndpoint;
  readonly legacyCredential: () => Promise<LegacyCredential>;
}

export function createTokens(options: TokensOptions): Tokens {
  return {
    async exchangeClient({ at = options.tokenEndpoint, ...client }) {
      return at && exchangeClientCredentials({ ...at, ...client }, options);
    },
    async exchangeAccessKey(secret, endpoint) {
      if (endpoint !== undefined) return exchangeAtEndpoint({ endpoint, secret }, options);
      const access = await options.legacyCredential();
      if (access.kind === "access_token") return undefined;
      if (access.kind === "exchange_endpoint") return exchangeAtEndpoint({ endpoint: access.url, secret }, options);
      const token = await access.run(secret);
      return { kind: "answered", status: 200, value: { token, expiresInSeconds: undefined }, body: Buffer.from(token) };
    },
    async compareIssuer() {
      const { tokenEndpoint } = options;
      if (tokenEndpoint?.issuer === undefined) return undefined;
      return compareIssuer({ ...tokenEndpoint, issuer: tokenEndpoint.issuer }, options);
    },
  };
}

export type ClientCredentialsRequest = TokenEndpoint &
  ClientProof & {
    readonly clientId: string;
    readonly scopes?: readonly string[] | undefined;
  };

export interface ExchangeOptions {
  readonly transport: Transport;
  readonly now: () => number;
}

/**
 * @assumed §5.2 rule 7 shows neither request nor response: RFC 6749 §4.4, with the parameters `audience` if set, and
 * `scope` (RFC 6749 §3.3) if requested or set in the profile.
 * @throws Failure `usage` if the endpoint is not an address, `auth` for an empty id or an unusable secret, assertion or
 * key
 */
export async function exchangeClientCredentials(
  request: ClientCredentialsRequest,
  options: ExchangeOptions,
): Promise<Attempt<TokenGrant> & Pick<Authenticated, "claims">> {
  if (request.clientId === "" || ("clientSecret" in request && request.clientSecret === ""))
    throw new Failure("auth", "The client id or the client secret is empty.");
  const oauth = await import("oauth4webapi");
  const { exchange, claims } = await sendGrantRequest(oauth, request, options);
  const attempt = await readByLibrary(
    exchange,
    { now: options.now, otherwise: "the response is not a token response" },
    async (response) => {
      const { access_token, token_type, expires_in } = await oauth.processClientCredentialsResponse(
        serverOf(request),
        { client_id: request.clientId },
        response,
      );
      if (token_type.toLowerCase() !== "bearer") throw new BrokenBody("the token is not a bearer token");
      checkToken(access_token);
      return { token: access_token, expiresInSeconds: expires_in };
    },
  );
  return claims === undefined ? attempt : { ...attempt, claims };
}

async function sendGrantRequest(
  oauth: typeof import("oauth4webapi"),
  request: ClientCredentialsRequest,
  { transport, now }: ExchangeOptions,
): Promise<{ readonly exchange: Exchange } & Pick<Authenticated, "claims">> {
  const { tokenEndpoint, clientId, audience, scopes } = request;
  const scope = scopes?.join(" ") ?? request.scope;
  const { by, secret, claims } = await authenticationOf(oauth, request, now);
  const parameters = { ...(audience !== undefined && { audience }), ...(scope !== undefined && { scope }) };
  let exchange: Exchange | undefined;
  await oauth
    .clientCredentialsGrantRequest(serverOf(request), { client_id: clientId }, by, parameters, {
      async [oauth.customFetch](_: string, { headers, body }: { headers: Record<string, string>; body: unknown }) {
        exchange = await transport.exchange({
          method: "POST",
          ...splitAddress(tokenEndpoint),
          headers,
          body: String(body),
          // Also masks an assertion that integ signed.
          secrets: [secret ?? new URLSearchParams(String(body)).get("client_assertion") ?? ""],
        });
        // The library requires a response. `readByLibrary` parses the service's response later.
        return new Response();
      },
    })
    .catch((error: unknown) => {
      if (exchange === undefined) throw error;
    });
  return { exchange: exchange!, claims };
}

async function authenticationOf(
  oauth: typeof import("oauth4webapi"),
  request: ClientCredentialsRequest,
  now: () => number,
): Promise<AuthenticatedBy> {
  if ("clientSecret" in request) {
    const { clientAuth, clientSecret: secret } = request;
    return {
      by: clientAuth === "client_secret_post" ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret),
      secret,
    };
  }
  const { assertionAuthentication, keyAuthentication } = await import("./client-assertion.ts");
  return "assertion" in request
    ? assertionAuthentication(await request.assertion(), { ...request, nowMs: now() })
    : keyAuthentication(oauth, request);
}

/** The token endpoint is a placeholder, because only the transport resolves logical addresses. */
function serverOf({ issuer }: ClientCredentialsRequest): { issuer: string; token_endpoint: string } {
  return { issuer: issuer ?? placeholder, token_endpoint: placeholder };
}

const placeholder = "https://token-endpoint.invalid/";

/** @param otherwise the attempt's detail if the library refuses the response */
async function readByLibrary<T>(
  exchange: Exchange,
  { now, otherwise }: { readonly now: () => number; readonly otherwise: string },
  read: (response: Response) => Promise<T>,
): Promise<Attempt<T>> {
  const attempt = toAttempt(exchange, { success: [200], read: (answer) => answer, now });
  if (attempt.kind !== "answered") return attempt;
  const { body, headers } = attempt.value;
  try {
    parseJson(body);
    const type = { "content-type": headers["content-type"] ?? "application/json" };
    return { ...attempt, value: await read(new Response(new Uint8Array(body), { headers: type })) };
  } catch (error) {
    const detail = error instanceof BrokenBody ? error.message : otherwise;
    return { kind: "unknown", status: attempt.status, reason: "malformed", detail };
  }
}

export function checkToken(token: string): void {
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) throw new BrokenBody("the token cannot be sent in a header");
}

/**
 * @assumed §5.3 rule 2 does not show the exchange. Default request: `POST` with the JSON body `{"secret":"<secret>"}`.
 * Default response: 200 or 201, JSON with `access_token`, `accessToken` or `token`, and `expires_in` or `expiresIn` in
 * seconds or `expires_at` or `expiresAt` as a time. For any other exchange, the profile has a command.
 * @throws Failure `usage` if the endpoint is not an address
 */
export async function exchangeAtEndpoint(
  { endpoint, secret }: { readonly endpoint: string; readonly secret: string },
  { transport, now }: ExchangeOptions,
): Promise<Attempt<TokenGrant>> {
  const exchange = await transport.exchange({
    method: "POST",
    ...splitAddress(endpoint),
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify({ secret }),
    secrets: [secret],
  });
  const read = (answer: Answer): TokenGrant => readLegacyGrant(jsonOf(answer).value, now());
  return toAttempt(exchange, { success: [200, 201], read, now });
}

function readLegacyGrant(value: unknown, nowMs: number): TokenGrant {
  const answer = isObject(value) ? value : {};
  const token = [answer.access_token, answer.accessToken, answer.token].find((found) => typeof found === "string");
  if (typeof token !== "string") throw new BrokenBody("the response has no token");
  checkToken(token);
  return { token, expiresInSeconds: lifetimeOf(answer, nowMs) };
}

function lifetimeOf(answer: JsonObject, nowMs: number): number | undefined {
  const seconds = answer.expires_in ?? answer.expiresIn;
  if (typeof seconds === "number" && seconds >= 0) return seconds;
  const at = answer.expires_at ?? answer.expiresAt;
  const ms = typeof at === "string" ? Date.parse(at) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, (ms - nowMs) / 1000);
}

type Metadata = import("oauth4webapi").AuthorizationServer;

export type IssuerDifference =
  | { readonly kind: "token_endpoint"; readonly published: string | undefined }
  | { readonly kind: "client_auth"; readonly published: readonly string[] };

/** The default of `token_endpoint_auth_methods_supported` (RFC 8414 §2). */
const impliedAuth = ["client_secret_basic"];

/**
 * Compares the profile with the issuer's metadata, read at the address of RFC 8414 or, if the service refuses that
 * request, of OpenID Connect Discovery.
 * @returns `unknown` if the metadata names another issuer
 * @assumed §5.2 rule 3 names an issuer without its purpose: its metadata names the token endpoint, as in RFC 8414
 * @throws Failure `usage` if the issuer is not an address
 */
async function compareIssuer(
  expected: TokenEndpoint & { readonly issuer: string },
  options: ExchangeOptions,
): Promise<Attempt<readonly IssuerDifference[]>> {
  if (!URL.canParse(expected.issuer) || !/^https?:/i.test(expected.issuer))
    throw invalidValue("issuer", undefined, {
      why: "it is not an address",
      hint: "Write it like https://auth.example.com.",
    });
  const own = await readMetadata(expected.issuer, { ...options, algorithm: "oauth2" });
  const attempt = own.kind === "refused" ? await readMetadata(expected.issuer, { ...options, algorithm: "oidc" }) : own;
  return attempt.kind === "answered" ? { ...attempt, value: differences(expected, attempt.value) } : attempt;
}

async function readMetadata(
  issuer: string,
  { transport, now, algorithm }: ExchangeOptions & { readonly algorithm: "oauth2" | "oidc" },
): Promise<Attempt<Metadata>> {
  const oauth = await import("oauth4webapi");
  let address = "";
  await oauth.discoveryRequest(new URL(issuer), {
    algorithm,
    // The transport decides whether plain http is allowed.
    [oauth.allowInsecureRequests]: true,
    async [oauth.customFetch](url: string) {
      address = url;
      return new Response();
    },
  });
  const headers = { accept: "application/json" };
  const exchange = await transport.exchange({ method: "GET", ...splitAddress(address), headers });
  const otherwise = "it publishes the metadata of another issuer";
  return readByLibrary(exchange, { now, otherwise }, (response) =>
    oauth.processDiscoveryResponse(new URL(issuer), response),
  );
}

function differences({ tokenEndpoint, clientAuth }: TokenEndpoint, metadata: Metadata): IssuerDifference[] {
  const { token_endpoint: published, token_endpoint_auth_methods_supported: methods = impliedAuth } = metadata;
  return [
    ...(published === tokenEndpoint ? [] : [{ kind: "token_endpoint" as const, published }]),
    ...(methods.includes(clientAuth) ? [] : [{ kind: "client_auth" as const, published: methods }]),
  ];
}

function splitAddress(address: string): { readonly baseUrl: string; readonly path: string } {
  const match = /^([a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+)([^#\s]*)$/i.exec(address);
  if (!match)
    throw invalidValue("token endpoint", undefined, {
      why: "it is not an address",
      hint: "Write it like https://auth.example.com/oauth/token.",
    });
  const path = match[2]!;
  return { baseUrl: match[1]!, path: path.startsWith("/") ? path : `/${path}` };
}
