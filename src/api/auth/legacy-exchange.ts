// Owns: exchanging an access key's secret for the legacy contract's bearer token (§5.3), and taking what comes of it.
// Must not know: where the secret comes from, where the token is kept.
import type { Attempt } from "../http/attempt.ts";
import { toAttempt } from "../http/caller.ts";
import { BrokenBody, parseJson, saysJson } from "../json/json-body.ts";
import { isObject, type JsonObject } from "../json/json-object.ts";
import { checkToken, type ExchangeOptions, splitAddress, type TokenGrant } from "./token-exchange.ts";

/**
 * Exchanges the secret at an endpoint, once. Repeating it changes nothing.
 * @assumed §5.3 rule 2 does not show the exchange. The default request: `POST` with the JSON body `{"secret":"<secret>"}`.
 * The default answer: 200 or 201, JSON with `access_token`, `accessToken` or `token`, and `expires_in` or
 * `expiresIn` in seconds or `expires_at` or `expiresAt` as a time. Where an organization has it otherwise, a command does it.
 * @throws Failure `usage` where the endpoint is no address
 */
export async function exchangeAtEndpoint(
  { endpoint, secret, signal }: { readonly endpoint: string; readonly secret: string; readonly signal?: AbortSignal },
  { transport, now }: ExchangeOptions,
): Promise<Attempt<TokenGrant>> {
  const exchange = await transport.exchange({
    method: "POST",
    ...splitAddress(endpoint),
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify({ secret }),
    signal,
  });
  return toAttempt(exchange, {
    request: { success: [200, 201] },
    read: ({ headers, body }) => {
      if (!saysJson(headers["content-type"])) throw new BrokenBody("the answer is not JSON");
      return readGrant(parseJson(body).value, now());
    },
    now,
  });
}

function readGrant(value: unknown, nowMs: number): TokenGrant {
  const answer = isObject(value) ? value : {};
  const token = [answer.access_token, answer.accessToken, answer.token].find((found) => typeof found === "string");
  if (typeof token !== "string") throw new BrokenBody("the answer has no token");
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
