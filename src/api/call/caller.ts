// Sends an authorized request and interprets its response.
import { Failure, type Problem } from "../../errors.ts";
import type { Attempt, Resource, Salvage } from "./attempt.ts";
import {
  type Broken,
  type Exchange,
  type ExchangeRequest,
  maxPageBytes,
  type NetworkErrorReason,
  type Response,
  type Transport,
} from "../http/exchange.ts";
import { withoutSecrets } from "../http/redaction.ts";
import { BrokenBody, type JsonBody, type JsonObject, parseJson, saysJson } from "../json/json-text.ts";
import { parseRetryAfter } from "./retry.ts";
import { isObject, tryParseJson } from "../../json.ts";

/** The token endpoint issued no token, for a reason other than a refused credential. */
export class NoToken extends Failure {
  readonly reason: NetworkErrorReason;
  readonly temporary: boolean;
  readonly retryAfterSeconds: number | undefined;
  constructor(
    failure: Failure,
    { reason, temporary, retryAfterSeconds }: Pick<NoToken, "reason" | "temporary" | "retryAfterSeconds">,
  ) {
    super(failure.kind, failure.message, failure.details);
    this.reason = reason;
    this.temporary = temporary;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface Authorization {
  /**
   * @returns undefined to send the request without a credential
   * @throws Failure if no credential is usable, `NoToken` if the token endpoint issued no token
   */
  header(): Promise<string | undefined>;
  /**
   * Discards the token after a 401. @returns true if an earlier request had used the token, so it may have expired
   * since
   */
  dropToken(): boolean;
}

export interface CallerOptions {
  readonly transport: Transport;
  readonly baseUrl: string;
  readonly authorization: Authorization;
  readonly headers: () => Readonly<Record<string, string>>;
  readonly now: () => number;
  readonly onExchange?: (exchange: Exchange) => void;
}

export interface CallRequest {
  readonly method: "GET" | "POST" | "DELETE" | "PUT" | "PATCH" | "HEAD";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Other statuses below 300 break the contract. */
  readonly success: readonly number[];
  /** True if a success body may have up to `maxPageBytes`. */
  readonly page?: boolean;
  /** The field with the one-time secret, to salvage from an unusable response. */
  readonly secretField?: "client_secret" | "secret";
  readonly resource?: Resource;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly requestId: string | undefined;
}

export class Caller {
  readonly #options: CallerOptions;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  /**
   * Gets a token now if requests need one, so that `send` need not wait for it.
   * @returns the attempt that `send` would return without that token; undefined if requests can be authorized
   */
  async authorize(): Promise<NotSent | undefined> {
    return this.#options.authorization.header().then(() => undefined, notSent);
  }

  /**
   * Makes one attempt. A read whose cached token is refused is sent once more with a new token.
   * @param read throws `BrokenBody` if the response breaks the contract
   */
  async send<T>(request: CallRequest, read: (answer: Answer) => T): Promise<Attempt<T>> {
    const { transport, authorization, now, onExchange } = this.#options;
    const { success, secretField, resource } = request;
    const reading: Reading<T> = { success, secretField, resource, read, now };
    for (let isAgain = false; ; isAgain = true) {
      let exchange: Exchange;
      try {
        exchange = await transport.exchange(this.#exchangeOf(request, await authorization.header()));
      } catch (error) {
        return notSent(error);
      }
      onExchange?.(exchange);
      const attempt = toAttempt(exchange, reading);
      if (attempt.kind !== "refused" || attempt.status !== 401) return attempt;
      const isStale = authorization.dropToken();
      const isRead = request.method === "GET" || request.method === "HEAD";
      if (isAgain || !isStale || !isRead || request.signal?.aborted) return attempt;
    }
  }

  #exchangeOf(
    { method, path, headers: own, body, page, signal }: CallRequest,
    authorization: string | undefined,
  ): ExchangeRequest {
    const { baseUrl, headers: common } = this.#options;
    const headers: Record<string, string> = { accept: "application/json", ...common() };
    if (body !== undefined) headers["content-type"] = "application/json";
    Object.assign(headers, own);
    if (authorization !== undefined) headers.authorization = authorization;
    return { method, baseUrl, path, headers, body, signal, maxBytes: page ? maxPageBytes : undefined };
  }
}

type NotSent = Extract<Attempt<never>, { kind: "not_sent" }>;

function notSent(error: unknown): NotSent {
  if (!(error instanceof Failure)) throw error;
  const { reason, temporary, retryAfterSeconds } =
    error instanceof NoToken ? error : { reason: "unsendable" as const, temporary: false };
  return { kind: "not_sent", reason, temporary, retryAfterSeconds, detail: error.message, failure: error };
}

export function jsonOf(answer: Answer): JsonBody {
  return parseJson(jsonBytesOf(answer));
}

export function jsonBytesOf({ headers, body }: Answer): Buffer {
  if (!saysJson(headers["content-type"])) throw new BrokenBody("the response is not JSON");
  return body;
}

interface Reading<T> extends Pick<CallRequest, "success" | "secretField" | "resource"> {
  readonly read: (answer: Answer) => T;
  readonly now: () => number;
}

export function toAttempt<T>(exchange: Exchange, reading: Reading<T>): Attempt<T> {
  if (exchange.kind === "broken") return brokenExchange(exchange, reading);
  const { status, headers, body } = exchange;
  const requestId = headers["request-id"];
  const retryAfterSeconds = status < 400 ? undefined : parseRetryAfter(headers["retry-after"], reading.now());
  // Proxies send 408 too, without knowing if the service received the request.
  if (status >= 400 && status < 500 && status !== 408)
    return {
      kind: "refused",
      status,
      problem: problemOf(exchange, reading),
      retryAfterSeconds,
      resource: reading.resource,
    };
  if (status >= 400)
    return {
      kind: "unknown",
      status,
      problem: problemOf(exchange, reading),
      reason: "status",
      detail: `the service responded with status ${status}`,
      retryAfterSeconds,
      salvage: salvageFrom(body, reading),
    };
  const broken = (reason: NetworkErrorReason, detail: string): Attempt<T> =>
    unusableResponse(exchange, reading, { reason, detail });
  if (status >= 300)
    return broken("redirect", `the service responded with a redirect (${status}), which integ does not follow`);
  if (!reading.success.includes(status)) return broken("malformed", `the status ${status} is not part of the contract`);
  try {
    const value = reading.read({ status, headers, body, requestId });
    return { kind: "answered", status, value, body, requestId };
  } catch (error) {
    if (!(error instanceof BrokenBody)) throw error;
    return broken(error.reason, error.message);
  }
}

function unusableResponse<T>(
  { status, headers, body }: Omit<Response, "kind">,
  reading: Reading<T>,
  { reason, detail, received }: Pick<Broken, "reason" | "detail" | "received">,
): Attempt<T> {
  const problem = readProblem(status, undefined, headers["request-id"]);
  const salvage = salvageFrom(body, reading) ?? (received && salvageFrom(unchunked(received), reading));
  return { kind: "unknown", status, problem, reason, detail, salvage };
}

function brokenExchange<T>(exchange: Broken, reading: Reading<T>): Attempt<T> {
  const { sent, reason, detail, temporary, hint, partial, received } = exchange;
  if (!sent) return { kind: "not_sent", reason, detail, temporary, hint };
  if (partial) return unusableResponse(partial, reading, exchange);
  return { kind: "unknown", reason, detail, salvage: received && salvageFrom(unchunked(received), reading) };
}

/** Masks a one-time secret, which an error response may contain. */
function problemOf<T>({ status, headers, body }: Response, reading: Reading<T>): Problem {
  const salvage = salvageFrom(body, reading);
  let value: unknown;
  try {
    if (saysJson(headers["content-type"]))
      value = parseJson(salvage ? withoutSecrets(body, [salvage.secret]) : body).value;
  } catch {
    // The error response has no valid JSON body.
  }
  return readProblem(status, value, headers["request-id"]);
}

/**
 * The line between two chunks of a body (RFC 9112 §7.1). A JSON string contains no line break, so no part of a secret
 * matches.
 */
const betweenChunks = /\r\n[0-9a-f]{1,8}[ \t]*(?:;[^\r\n]{0,200})?\r\n/gi;

/** Chunk framing may split a secret. */
function unchunked(received: Buffer): Buffer {
  return Buffer.from(received.toString("latin1").replace(betweenChunks, ""), "latin1");
}

const longestSecret = 4096;

/** Finds a complete secret in an error or unusable response: the service may count the secret as delivered. */
function salvageFrom<T>(body: Buffer, { secretField }: Reading<T>): Salvage | undefined {
  if (secretField === undefined) return undefined;
  const text = body.toString("utf8");
  const string = `"(?:[^"\\\\\\u0000-\\u001f]|\\\\.){1,${longestSecret}}"`;
  const found = new RegExp(`"${secretField}"\\s*:\\s*(${string})`).exec(text);
  if (!found) return undefined;
  const secret = tryParseJson(found[1]!);
  return typeof secret === "string" ? { secret, text } : undefined;
}

/** Longest kept texts of an error body, in UTF-16 code units. */
const maxDetail = 2000;
const maxWord = 300;

/**
 * @param status of the response; overrides the body's
 * @param body the parsed body, or undefined if it is not JSON
 * @param requestId header `Request-Id`; overrides the body's
 * @assumed The legacy contract's error shape is not shown (§7): `error` as text or object, `message`,
 * `error_description` and `errors` are read too.
 */
export function readProblem(status: number, body: unknown, requestId?: string): Problem {
  const outer = isObject(body) ? body : {};
  const inner = [outer.error, first(outer.errors)].find(isObject) ?? {};
  const text = (names: readonly string[], limit = maxWord): string | undefined => pick([outer, inner], names, limit);
  const retryable = [outer.retryable, inner.retryable].find((value) => typeof value === "boolean");
  return withoutUndefined({
    status,
    code: text(["code"]) ?? textOf(outer.error, maxWord) ?? text(["error_code"]),
    title: text(["title"]),
    detail:
      text(["detail", "error_description", "message", "description"], maxDetail) ??
      textOf(first(outer.errors), maxDetail),
    param: text(["param"]),
    request_id: textOf(requestId, maxWord) ?? text(["request_id", "requestId"]),
    // Outside /v1, `type` may be a word instead of a URL.
    doc_url: text(["doc_url"]) ?? (/^https?:\/\//.test(text(["type"]) ?? "") ? text(["type"]) : undefined),
    retryable,
  });
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function pick(sources: readonly JsonObject[], names: readonly string[], limit: number): string | undefined {
  for (const source of sources)
    for (const name of names) {
      const found = Object.hasOwn(source, name) ? textOf(source[name], limit) : undefined;
      if (found !== undefined) return found;
    }
  return undefined;
}

function textOf(value: unknown, limit: number): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length <= limit ? value : `${value.slice(0, limit).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function withoutUndefined(problem: Problem): Problem {
  return Object.fromEntries(Object.entries(problem).filter(([, value]) => value !== undefined));
}
