// Requests to a secret store over integ's own HTTP client: no redirect is followed, the token and the secret are masked in
// every error, a read is repeated a few times, and a write's lost response is reported as lost.
import { type ExchangeRequest, type Transport, parseTarget } from "../api/http/exchange.ts";
import { parseRetryAfter } from "../api/call/retry.ts";
import { Failure } from "../errors.ts";

/** A complete response. A redirect and a body that is not JSON count as responses too. */
export interface StoreResponse {
  readonly kind: "response";
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** The parsed body; undefined if it is not JSON. */
  readonly body: unknown;
}

/** No complete response: if the request was sent, what it asked for may have happened. */
export interface LostResponse {
  readonly kind: "lost";
  readonly failure: Failure;
}

export interface StoreRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  /** From `/`, encoded. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly contentType?: string;
  /** The secret in the body: no error may repeat it. */
  readonly secret?: string;
}

export interface StoreServer {
  /** As it is in a message: `Vault at https://vault.example.com`. */
  readonly name: string;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly token: string;
  readonly http: () => Promise<Transport>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
  /** Whether an error that looks temporary will be the same a little later. */
  readonly isLasting?: (response: StoreResponse) => Promise<boolean>;
}

/** How often a read, or a write that may be repeated, is sent. */
export const storeTries = 5;
/** A store that asks for a longer wait is reported and not waited for. */
const longestWaitMs = 20_000;
const firstWaitMs = 300;

export class StoreClient {
  readonly #server: StoreServer;

  constructor(server: StoreServer) {
    this.#server = server;
  }

  /** One request, sent once. @throws Failure if this process was interrupted */
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
    const parsed = parsedJson(text);
    // A success that cannot be read is as good as none.
    if (parsed === undefined && text !== "" && exchange.status < 300)
      return { kind: "lost", failure: new Failure("unreachable", `${name} gave a response that is not JSON.`) };
    return { kind: "response", status: exchange.status, headers: exchange.headers, text, body: parsed };
  }

  /**
   * Sends a read until there is a response that is neither 429 nor 5xx, a few times at the most.
   * @throws Failure if there is none, or if it is a redirect
   */
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

  /** @throws Failure: a token goes to the address that was given and to no other */
  refuseRedirect(response: StoreResponse): StoreResponse {
    if (response.status < 300 || response.status > 399) return response;
    const { name } = this.#server;
    throw new Failure("usage", `${name} responded with a redirect (${response.status}), which integ does not follow.`, {
      hint: "Give the address that it leads to, such as that of the active node.",
    });
  }

  /** Waits before another attempt. @returns false if the store asks for a longer wait than is worth it */
  async pause(attempt: number, response: StoreResponse | LostResponse): Promise<boolean> {
    const asked = response.kind === "response" ? askedWait(response.headers, Date.now()) : undefined;
    const delayMs = Math.max(firstWaitMs * 2 ** (attempt - 1), (asked ?? 0) * 1000);
    if (delayMs > longestWaitMs) return false;
    await this.#server.sleep(delayMs);
    return true;
  }
}

/** The same request may succeed a little later. */
export function isTemporary({ status, headers }: StoreResponse): boolean {
  const isLimit = headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0";
  return status === 429 || status === 408 || status >= 500 || (status === 403 && isLimit);
}

/** How long a response asks to wait, seconds: `Retry-After`, else until its limit starts again (a time in seconds). */
export function askedWait(headers: StoreResponse["headers"], nowMs: number): number | undefined {
  const after = parseRetryAfter(headers["retry-after"], nowMs);
  if (after !== undefined || headers["x-ratelimit-remaining"] !== "0") return after;
  const reset = /^\d{1,11}$/.exec(headers["x-ratelimit-reset"] ?? "")?.[0];
  if (reset === undefined) return undefined;
  const serverMs = Date.parse(headers.date ?? "");
  // Both times are the server's.
  return Math.max(0, Number(reset) - (Number.isNaN(serverMs) ? nowMs : serverMs) / 1000);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A field of a response's body, however deep; undefined if there is none. */
export function fieldOf(value: unknown, ...names: readonly string[]): unknown {
  let found = value;
  for (const name of names) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/**
 * The address of a server in its normal form.
 * @param what the variable that it was given as, and how one looks
 * @throws Failure `usage` if no token may be sent there
 */
export function serverAddress(text: string, what: { readonly what: string; readonly example: string }): string {
  const { origin, prefix } = parseTarget(text, what);
  return origin + prefix;
}
