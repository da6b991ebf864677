// Owns: one attempt of one request: authorized, sent once, and told as an Attempt. Both contracts call through it.
// Must not know: which contract it is, retries, the journal.
import { Failure } from "../../errors.ts";
import type { Attempt, Break, Salvage } from "./attempt.ts";
import type { BodyRoom } from "./body-room.ts";
import type { Exchange, Transport } from "./exchange.ts";
import { withoutSecrets } from "./exchange-echo.ts";
import { BrokenBody, type JsonBody, parseJson, saysJson } from "../json/json-body.ts";
import { readProblem } from "./problem.ts";
import { parseRetryAfter } from "./retry-after.ts";

/** No token, because its endpoint could not be asked: it may be there another time. */
export class NoToken extends Failure {
  readonly reason: Break;
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

/** Who a request is sent as. */
export interface Authorization {
  /** The value of the header `Authorization`. @throws Failure where there is no credential to be had, `NoToken` for now; nothing: sent as nobody */
  header(): Promise<string | undefined>;
  /** The service did not accept it (401): what was cached is forgotten. */
  rejected(): void;
}

export interface CallerOptions {
  readonly transport: Transport;
  /** The logical base URL that every request of this caller goes to. */
  readonly baseUrl: string;
  readonly authorization: Authorization;
  /** Sent with every request. @throws Failure */
  readonly commonHeaders: () => Readonly<Record<string, string>>;
  readonly now: () => number;
}

export interface CallRequest {
  readonly method: "GET" | "POST" | "DELETE" | "PUT" | "PATCH" | "HEAD";
  /** Built by `path.ts`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, sent byte for byte. */
  readonly body?: string | Buffer;
  /** Statuses that mean success; any other below 300 breaks the contract. */
  readonly success: readonly number[];
  /** A list page: the larger limit. */
  readonly page?: boolean;
  /** Name of the field whose one-time secret is looked for in answers that are no proper ones. */
  readonly secretField?: "client_secret" | "secret";
  readonly signal?: AbortSignal;
  /** See exchange.ts. */
  readonly room?: BodyRoom;
}

/** A response of a success status. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly requestId: string | undefined;
}

export interface Caller {
  /**
   * Sends the request once.
   * @param read what the body says; throws `BrokenBody` where it breaks the contract
   */
  json<T>(request: CallRequest, read: (body: JsonBody, answer: Answer) => T): Promise<Attempt<T>>;
  /** The same without looking into the body. */
  raw<T>(request: CallRequest, read: (answer: Answer) => T): Promise<Attempt<T>>;
}

export function createCaller(options: CallerOptions): Caller {
  return {
    raw: (request, read) => attempt(options, request, read),
    json: (request, read) =>
      attempt(options, request, (answer) => {
        if (!saysJson(answer.headers["content-type"])) throw new BrokenBody("the answer is not JSON");
        return read(parseJson(answer.body), answer);
      }),
  };
}

async function attempt<T>(
  options: CallerOptions,
  request: CallRequest,
  read: (answer: Answer) => T,
): Promise<Attempt<T>> {
  let exchange: Exchange;
  try {
    exchange = await send(options, request);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { reason, temporary, retryAfterSeconds } =
      error instanceof NoToken ? error : { reason: "unsendable" as const, temporary: false };
    return { kind: "not_sent", reason, temporary, retryAfterSeconds, detail: error.message, failure: error };
  }
  if (exchange.kind === "response" && exchange.status === 401) options.authorization.rejected();
  return toAttempt(exchange, { request, read, now: options.now });
}

async function send(
  { transport, baseUrl, authorization, commonHeaders }: CallerOptions,
  request: CallRequest,
): Promise<Exchange> {
  const { method, path, body, headers, page, signal, room } = request;
  const credential = await authorization.header();
  return transport.exchange({
    method,
    baseUrl,
    path,
    headers: {
      accept: "application/json",
      ...commonHeaders(),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
      ...(credential === undefined ? {} : { authorization: credential }),
    },
    body,
    signal,
    room,
    maxBytes: page ? transport.limits.pageBytes : undefined,
  });
}

interface Reading<T> {
  readonly request: Pick<CallRequest, "success" | "secretField">;
  readonly read: (answer: Answer) => T;
  readonly now: () => number;
}

/** What an exchange means, whatever was asked: the table in attempt.ts. */
export function toAttempt<T>(exchange: Exchange, reading: Reading<T>): Attempt<T> {
  if (exchange.kind === "broken") return ofBroken(exchange, reading);
  const { status, headers, body } = exchange;
  const requestId = headers["request-id"];
  const retryAfterSeconds = parseRetryAfter(headers["retry-after"], reading.now());
  // 408 is said by boxes on the way too, which cannot know how far the request came.
  if (status >= 400 && status < 500 && status !== 408)
    return { kind: "refused", status, problem: problemOf(exchange, reading), retryAfterSeconds };
  if (status >= 400)
    return {
      kind: "unknown",
      status,
      problem: problemOf(exchange, reading),
      reason: "status",
      detail: `the service answered ${status}`,
      retryAfterSeconds,
      ...salvageFrom(body, reading),
    };
  if (status >= 300)
    return broken(exchange, ["redirect", `it answered with a redirect (${status}), which is not followed`], reading);
  if (!reading.request.success.includes(status))
    return broken(exchange, ["malformed", `the status ${status} is not one of the contract`], reading);
  try {
    const value = reading.read({ status, headers, body, requestId });
    return {
      kind: "answered",
      status,
      value,
      // A page is large and seldom wanted as a string.
      get text() {
        return body.toString("utf8");
      },
      requestId,
    };
  } catch (error) {
    if (!(error instanceof BrokenBody)) throw error;
    return broken(exchange, [error.reason, error.message], reading);
  }
}

type Response = Extract<Exchange, { kind: "response" }>;

function broken<T>(
  { status, headers, body }: Response,
  [reason, detail]: readonly [Break, string],
  reading: Reading<T>,
): Attempt<T> {
  const problem = readProblem(status, undefined, headers["request-id"]);
  return { kind: "unknown", status, problem, reason, detail, ...salvageFrom(body, reading) };
}

function ofBroken<T>(exchange: Extract<Exchange, { kind: "broken" }>, reading: Reading<T>): Attempt<T> {
  const { sent, reason, detail, temporary, hint, partial } = exchange;
  if (!sent)
    return { kind: "not_sent", reason, detail, ...(temporary ? { temporary } : {}), ...(hint ? { hint } : {}) };
  if (!partial) return { kind: "unknown", reason, detail };
  const problem = readProblem(partial.status, undefined, partial.headers["request-id"]);
  return { kind: "unknown", status: partial.status, problem, reason, detail, ...salvageFrom(partial.body, reading) };
}

/** The service's words, without the one-time secret that it may have put beside them. */
function problemOf<T>({ status, headers, body }: Response, reading: Reading<T>): ReturnType<typeof readProblem> {
  const { salvage } = salvageFrom(body, reading);
  let value: unknown;
  try {
    if (saysJson(headers["content-type"]))
      value = parseJson(salvage ? withoutSecrets(body, [salvage.secret]) : body).value;
  } catch {
    // An error page that is no JSON has nothing to say to us.
  }
  return readProblem(status, value, headers["request-id"]);
}

/**
 * A one-time secret in an answer that is no proper one, whole or cut: the service may hold it given, so it is not thrown
 * away. Only a string that ends within what came counts.
 */
function salvageFrom<T>(body: Buffer, { request }: Reading<T>): { salvage?: Salvage } {
  if (request.secretField === undefined) return {};
  const text = body.toString("utf8");
  const found = new RegExp(`"${request.secretField}"\\s*:\\s*("(?:[^"\\\\\\u0000-\\u001f]|\\\\.)+")`).exec(text);
  if (!found) return {};
  try {
    const secret: unknown = JSON.parse(found[1]!);
    return typeof secret === "string" ? { salvage: { secret, text } } : {};
  } catch {
    return {};
  }
}
