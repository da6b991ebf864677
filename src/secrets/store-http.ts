// Sends requests to secret stores: follows no redirects, masks the token and the secret in errors, and repeats reads
// after temporary errors.
import { type ExchangeRequest, type Transport, parseTarget } from "../api/http/exchange.ts";
import { parseRetryAfter } from "../api/call/retry.ts";
import { Failure } from "../errors.ts";
import { tryParseJson } from "../json.ts";

export interface StoreResponse {
  readonly kind: "response";
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  readonly body: unknown;
}

/** No usable response: if the request was sent, the store may have executed it. */
export interface LostResponse {
  readonly kind: "lost";
  readonly failure: Failure;
}

export interface StoreRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  /** Encoded, with a `/` at the start. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  /** The secret in the body, which errors mask. */
  readonly secret?: string;
}

export interface StoreServer {
  readonly name: string;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly token: string;
  readonly http: () => Promise<Transport>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
  /** @returns true if an error that looks temporary will last, such as that of a sealed Vault */
  readonly isLasting?: (response: StoreResponse) => Promise<boolean>;
}

/** Attempts of a read or an idempotent write. */
export const storeTries = 5;
/** If a store asks for a longer wait, the command fails. */
const longestWaitMs = 20_000;
const firstWaitMs = 300;

export class StoreClient {
  readonly #server: StoreServer;

  constructor(server: StoreServer) {
    this.#server = server;
  }

  async send({
    method,
    path,
    body,
    contentType = "application/json",
    secret,
  }: StoreRequest): Promise<StoreResponse | LostResponse> {
    const { name, baseUrl, headers, token, http, signal } = this.#server;
    signal?.throwIfAborted();
    const request: ExchangeRequest = {
      method,
      baseUrl,
      path,
      headers: body === undefined ? headers : { ...headers, "content-type": contentType },
      body: body === undefined ? undefined : JSON.stringify(body),
      secrets: secret === undefined ? [token] : [token, secret],
    };
    const exchange = await (await http()).exchange(request);
    signal?.throwIfAborted();
    if (exchange.kind === "broken") {
      const { detail, hint } = exchange;
      const advice = hint ?? "Check the store's address, and that the server runs.";
      const failure = new Failure("unreachable", `${name} gave no response: ${detail}.`, { hint: advice });
      return { kind: "lost", failure };
    }
    const text = exchange.body.toString("utf8");
    const parsed = tryParseJson(text);
    if (parsed === undefined && text !== "" && exchange.status < 300)
      return { kind: "lost", failure: new Failure("unreachable", `${name} gave a response that is not JSON.`) };
    return { kind: "response", status: exchange.status, headers: exchange.headers, text, body: parsed };
  }

  /** Repeats the request after temporary errors. @throws Failure if no response arrives, or for a redirect */
  async read(request: StoreRequest): Promise<StoreResponse> {
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.send(request);
      const isFinal = response.kind === "response" && (!isTemporary(response) || (await this.#isLasting(response)));
      if (isFinal) return this.refuseRedirect(response);
      if (attempt < storeTries && (await this.pause(attempt, response))) continue;
      if (response.kind === "lost") throw response.failure;
      return response;
    }
  }

  async #isLasting(response: StoreResponse): Promise<boolean> {
    return (await this.#server.isLasting?.(response)) === true;
  }

  /** @throws Failure `usage` for a redirect, because a token goes only to the configured address */
  refuseRedirect(response: StoreResponse): StoreResponse {
    if (response.status < 300 || response.status > 399) return response;
    const { name } = this.#server;
    throw new Failure("usage", `${name} responded with a redirect (${response.status}), which integ does not follow.`, {
      hint: "Use the address that it leads to, such as the active node's.",
    });
  }

  /** @returns false immediately if the store requests too long a wait */
  async pause(attempt: number, response: StoreResponse | LostResponse): Promise<boolean> {
    const requested = response.kind === "response" ? waitSeconds(response.headers, Date.now()) : undefined;
    const delayMs = Math.max(firstWaitMs * 2 ** (attempt - 1), (requested ?? 0) * 1000);
    if (delayMs > longestWaitMs) return false;
    await this.#server.sleep(delayMs);
    return true;
  }
}

export function isTemporary({ status, headers }: StoreResponse): boolean {
  const isLimit = headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0";
  return status === 429 || status === 408 || status >= 500 || (status === 403 && isLimit);
}

/** @returns the wait of `Retry-After`, else the time until GitHub's rate limit is reset */
export function waitSeconds(headers: StoreResponse["headers"], nowMs: number): number | undefined {
  const after = parseRetryAfter(headers["retry-after"], nowMs);
  if (after !== undefined || headers["x-ratelimit-remaining"] !== "0") return after;
  const reset = /^\d{1,11}$/.exec(headers["x-ratelimit-reset"] ?? "")?.[0];
  if (reset === undefined) return undefined;
  const serverMs = Date.parse(headers.date ?? "");
  // The reset time is by the server's clock, which the `date` header shows.
  return Math.max(0, Number(reset) - (Number.isNaN(serverMs) ? nowMs : serverMs) / 1000);
}

export function fieldOf(value: unknown, ...names: readonly string[]): unknown {
  let found = value;
  for (const name of names) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/** @throws Failure `usage` if tokens may not go to this address */
export function serverAddress(text: string, what: { readonly what: string; readonly example: string }): string {
  const { origin, prefix } = parseTarget(text, what);
  return origin + prefix;
}
