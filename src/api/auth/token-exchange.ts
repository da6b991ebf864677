// Owns: the client credentials exchange (§5.2; RFC 6749 §4.4), over our own transport: its limits, its timing, no redirect.
// Must not know: what the token is for, where it is kept.
import type { Answered, Attempt } from "../http/attempt.ts";
import { type Answer, toAttempt } from "../http/caller.ts";
import type { TokenEndpoint } from "./credential.ts";
import type { Exchange, Transport } from "../http/exchange.ts";
import { BrokenBody, parseJson } from "../json/json-body.ts";
import { Failure } from "../../errors.ts";

export interface ClientCredentialsRequest extends TokenEndpoint {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly signal?: AbortSignal;
}

/** What the token endpoint gave. The attempt's `text` is its own answer, with the token in it. */
export interface TokenGrant {
  readonly token: string;
  /** Nothing where the answer does not say. */
  readonly expiresInSeconds: number | undefined;
}

export interface ExchangeOptions {
  readonly transport: Transport;
  readonly now: () => number;
}

/**
 * Exchanges client id and secret for an access token, once. Repeating it changes nothing.
 * @assumed §5.2 rule 7 shows neither request nor response: RFC 6749 §4.4, with `audience` as a parameter where there is one.
 * @throws Failure `usage` where the endpoint is no address, `auth` for an empty id or secret
 */
export async function exchangeClientCredentials(
  request: ClientCredentialsRequest,
  options: ExchangeOptions,
): Promise<Attempt<TokenGrant>> {
  if (request.clientId === "" || request.clientSecret === "")
    throw new Failure("auth", "The client id or the client secret is empty.");
  const oauth = await import("oauth4webapi");
  const exchange = await ask(oauth, request, options);
  const attempt = toAttempt(exchange, { request: { success: [200] }, read: (answer) => answer, now: options.now });
  if (attempt.kind !== "answered") return attempt;
  return readGrant(attempt, async ({ body, headers }) => {
    const response = new Response(new Uint8Array(body), {
      headers: { "content-type": headers["content-type"] ?? "application/json" },
    });
    return oauth.processClientCredentialsResponse(serverOf(request), { client_id: request.clientId }, response);
  });
}

/** The library makes the request, our transport sends it. */
async function ask(
  oauth: typeof import("oauth4webapi"),
  request: ClientCredentialsRequest,
  { transport }: ExchangeOptions,
): Promise<Exchange> {
  const { tokenEndpoint, clientId, clientSecret, audience, clientAuth, signal } = request;
  const authentication =
    clientAuth === "client_secret_post" ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret);
  const parameters: Record<string, string> = audience === undefined ? {} : { audience };
  let exchange: Exchange | undefined;
  await oauth
    .clientCredentialsGrantRequest(serverOf(request), { client_id: clientId }, authentication, parameters, {
      async [oauth.customFetch](_: string, { headers, body }: { headers: Record<string, string>; body: unknown }) {
        exchange = await transport.exchange({
          method: "POST",
          ...splitAddress(tokenEndpoint),
          headers,
          body: String(body),
          signal,
        });
        // Nothing of the answer goes this way: what broke, and what is no 200, is told better by ourselves.
        return new Response();
      },
    })
    .catch((error: unknown) => {
      if (exchange === undefined) throw error;
    });
  return exchange!;
}

/** The library is given a name to talk to: only the transport knows addresses, and some of them are logical. */
function serverOf({ issuer }: ClientCredentialsRequest): { issuer: string; token_endpoint: string } {
  return { issuer: issuer ?? standIn, token_endpoint: standIn };
}

const standIn = "https://token-endpoint.invalid/";

/**
 * @param address of an endpoint, logical or real
 * @throws Failure `usage`
 */
export function splitAddress(address: string): { readonly baseUrl: string; readonly path: string } {
  const match = /^([a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+)([^#\s]*)$/i.exec(address);
  if (!match)
    throw new Failure("usage", "The token endpoint is no address.", {
      hint: "It looks like https://auth.example.com/oauth/token",
    });
  const path = match[2]!;
  return { baseUrl: match[1]!, path: path.startsWith("/") ? path : `/${path}` };
}

type ReadResponse = (answer: Answer) => Promise<{ access_token: string; token_type: string; expires_in?: number }>;

async function readGrant(answer: Answered<Answer>, read: ReadResponse): Promise<Attempt<TokenGrant>> {
  try {
    parseJson(answer.value.body);
    const { access_token, token_type, expires_in } = await read(answer.value);
    if (token_type.toLowerCase() !== "bearer") throw new BrokenBody("the token is no bearer token");
    checkToken(access_token);
    return { ...answer, value: { token: access_token, expiresInSeconds: expires_in } };
  } catch (error) {
    const detail = error instanceof BrokenBody ? error.message : "the answer is no token response";
    return { kind: "unknown", status: answer.status, reason: "malformed", detail };
  }
}

/** @throws BrokenBody for what cannot stand in a header (RFC 6750 §2.1) */
export function checkToken(token: string): void {
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) throw new BrokenBody("the token cannot stand in a header");
}
