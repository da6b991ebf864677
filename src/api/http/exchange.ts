import type { Advice } from "../../next-step.ts";

export interface ExchangeRequest {
  readonly method: string;
  /** The logical base URL; the transport alone knows which origin is behind it. */
  readonly baseUrl: string;
  /** From `/`, with the query; visible ASCII. Appended to the base URL's own path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Bound on the decoded body in bytes; default `maxBodyBytes`. */
  readonly maxBytes?: number;
  /** Instead of the transport's: the caller decides how long a response is waited for after an interruption. */
  readonly signal?: AbortSignal;
  /** Further secrets of the request: nothing of an error response may show them. */
  readonly secrets?: readonly string[];
  /** Where the body is received. It is whole until the buffer is handed in again; without one it stays. */
  readonly buffer?: BodyBuffer;
  /** What follows it: its request leaves before the response is handed on, and `exchange` with it waits for what is under way. */
  readonly next?: Following<NextRequest>;
}

export interface NextRequest {
  readonly path: string;
  readonly buffer: BodyBuffer;
}

/** What follows a response. */
export interface Following<T> {
  readonly ahead: SentAhead;
  /** Called with a body in the moment in which it is whole: what is asked for next; nothing if that is not known. */
  of(body: Buffer): T | undefined;
  /** What the caller that asks would be given of such a response; nothing if it has to be asked for. */
  read?(response: Response): unknown;
}

/** The request of one walk that has left before it is asked for, if there is one: see ahead.ts. */
export interface SentAhead {
  /** It has left, and was not asked for yet. */
  readonly isUnderway: boolean;
  /**
   * @param end of the request
   * @returns what follows it; nothing if that is not known, or cannot be sent
   */
  after(request: ExchangeRequest, end: Exchange): NextRequest | undefined;
  sent(sent: Sent): void;
  /** @returns the exchange, if this is the request that left; if it is not, that one is ended */
  take(request: ExchangeRequest, target: object): Promise<Exchange> | undefined;
}

export interface Sent extends NextRequest {
  /** The one before it, which it is like but for where it leads. */
  readonly request: ExchangeRequest;
  readonly target: object;
  readonly reception: { break(why: NetworkError): void };
  readonly exchange: Promise<Exchange>;
}

/**
 * How an exchange ended.
 * - `response`: whole, within the limits, decoded. Any status; a redirect is a response like any other, not followed.
 * - `broken`: no whole response. `sent` is exact on the careful side: `false` only if the request was never handed to
 *   a connection.
 */
export type Exchange =
  | {
      readonly kind: "response";
      readonly status: number;
      /** Names in lower case, no prototype; values of a repeated header joined by `, `. */
      readonly headers: Headers;
      readonly body: Buffer;
    }
  | (NetworkError & {
      readonly kind: "broken";
      readonly sent: boolean;
      /** What had come: the response's head was whole, its body may be cut anywhere. It may hold a secret. */
      readonly partial?: { readonly status: number; readonly headers: Headers; readonly body: Buffer };
    });

export type Response = Extract<Exchange, { readonly kind: "response" }>;

export type Headers = Readonly<Record<string, string | undefined>>;

let lastHeaders: { readonly raw: readonly (Buffer | string)[]; readonly headers: Headers } | undefined;

/** The same object for the same list: a response of a walk often has the head of the one before. */
export function headersOf(raw: readonly (Buffer | string)[]): Headers {
  if (lastHeaders?.raw !== raw) lastHeaders = { raw, headers: parseHeaders(raw) };
  return lastHeaders.headers;
}

/** Header names in lower case in an object without prototype; repeated ones joined as RFC 9110 §5.3 has it. */
function parseHeaders(raw: readonly (Buffer | string)[]): Headers {
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toString("latin1").toLowerCase();
    const value = raw[i + 1]!.toString("latin1");
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

const mebibyte = 1024 * 1024;
/** The longest decoded body of a list page, bytes. */
export const maxPageBytes = 64 * mebibyte;
/** The longest decoded body of anything else, bytes. */
export const maxBodyBytes = mebibyte;

/** So much is read with one call of the system, bytes: a page of a list with one or two. */
const usualSpace = 256 * 1024;
/** With less than this the calls would be many. */
const leastSpace = 64 * 1024;

/** A bound on a size as a person reads it: `64 MiB`, exact. @param bytes 0 or more */
export function sizeInWords(bytes: number): string {
  const mebibyte = 1024 * 1024;
  if (bytes >= mebibyte && bytes % mebibyte === 0) return `${bytes / mebibyte} MiB`;
  return bytes >= 1024 && bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`;
}

export interface Transport {
  /**
   * One request and its outcome. Never retried, no redirect followed.
   * @throws Failure `usage` for a request that HTTP cannot carry, or an address it must not go to: nothing was sent
   */
  exchange(request: ExchangeRequest): Promise<Exchange>;
  /** Closes every idle connection. Safe to repeat. */
  close(): void;
}

/** What a debug log may see; made by redaction.ts. */
export interface DebugEvent {
  readonly kind: "request" | "response" | "broken";
  /** Pairs a request with its outcome. */
  readonly id: number;
  /** Which try of the same request of this process it is, from 1. */
  readonly attempt: number;
  readonly method: string;
  /** Values of query parameters whose names speak of secrets are masked. */
  readonly url: string;
  readonly headers?: Headers;
  readonly status?: number;
  /** Length of the decoded body. */
  readonly bytes?: number;
  /** Since the request was started. */
  readonly elapsedMs?: number;
  readonly sent?: boolean;
  readonly reason?: NetworkErrorReason;
  readonly detail?: string;
}

/**
 * The buffer that a body is received into, one at a time. A caller that reads many bodies one after the other hands the same
 * buffer in again: a separate buffer for every page would pile up to 64 MB before V8 looks at what is not on its heap.
 */
export class BodyBuffer {
  #memory: Buffer = Buffer.alloc(0);
  /** Where the body begins: what was received before it in the same memory is its head. */
  #start = 0;
  #length = 0;
  readonly #place: (() => Buffer | undefined) | undefined;

  /** @param place memory to receive bodies in rather than in some of its own, once there is such memory; no one else has it */
  constructor(place?: () => Buffer | undefined) {
    this.#place = place;
  }

  /** Empty again: what `bytes` gave before is overwritten from now on. */
  clear(): void {
    this.#start = 0;
    this.#length = 0;
    const place = this.#place?.();
    if (place !== undefined && place.length >= this.#memory.length) this.#memory = place;
  }

  /** Where the next bytes may be received: then `append` need not copy them. It stands until then. */
  space(): Buffer {
    const end = this.#start + this.#length;
    if (this.#memory.length - end < leastSpace) this.#grow(this.#length + usualSpace);
    return this.#memory.subarray(this.#start + this.#length);
  }

  /** Takes the bytes: they may be overwritten afterwards, unless they are in its `space`. */
  append(bytes: Buffer): void {
    if (this.#length === 0 && this.holds(bytes)) this.#start = bytes.byteOffset - this.#memory.byteOffset;
    const end = this.#start + this.#length;
    const isThere = bytes.buffer === this.#memory.buffer && bytes.byteOffset === this.#memory.byteOffset + end;
    if (!isThere) {
      if (end + bytes.length > this.#memory.length) this.#grow(this.#length + bytes.length);
      bytes.copy(this.#memory, this.#start + this.#length);
    }
    this.#length += bytes.length;
  }

  /** What was taken since `clear`: the buffer's own memory, not a copy. */
  bytes(): Buffer {
    return this.#memory.subarray(this.#start, this.#start + this.#length);
  }

  /** @returns true if the bytes are part of this buffer's memory */
  holds(bytes: Buffer): boolean {
    const at = bytes.byteOffset - this.#memory.byteOffset;
    return bytes.buffer === this.#memory.buffer && at >= 0 && at + bytes.length <= this.#memory.length;
  }

  /** Doubled, so that a body in many pieces is not copied for each; its first piece alone needs no more than itself. */
  #grow(least: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(least, 2 * this.#memory.length));
    this.#memory.copy(larger, 0, this.#start, this.#start + this.#length);
    this.#memory = larger;
    this.#start = 0;
  }
}

/** The longest delay that a timer of Node can hold. */
const maxTimerMs = 2 ** 31 - 1;

interface Deadline {
  readonly timer: NodeJS.Timeout;
  act: () => void;
}

/** The time of each exchange. One that begins when another ends, as in a walk, has its timer: to make one takes as long as to send. */
export class Deadlines {
  readonly #ms: number;
  #free: Deadline | undefined;

  constructor(timeoutMs: number) {
    this.#ms = Math.min(timeoutMs, maxTimerMs);
  }

  start(act: () => void): Deadline {
    const free = this.#free;
    this.#free = undefined;
    if (free) {
      free.act = act;
      free.timer.refresh();
      return free;
    }
    const deadline: Deadline = { act, timer: setTimeout(() => deadline.act(), this.#ms) };
    return deadline;
  }

  /** @param meanwhile may begin the next exchange */
  end(deadline: Deadline, meanwhile: () => void): void {
    this.#free = deadline;
    meanwhile();
    if (this.#free !== deadline) return;
    this.#free = undefined;
    clearTimeout(deadline.timer);
  }
}

/** Why no complete response of the service arrived. */
export type NetworkErrorReason =
  | "dns"
  | "refused"
  | "tls"
  | "proxy"
  | "timeout"
  | "closed" // the connection ended before the full response was there
  | "malformed" // not HTTP, or a body that breaks the contract (HTML, cut JSON, wrong types)
  | "too_large" // decoded size, nesting or encoding beyond the limits
  | "redirect" // 3xx: never followed (§5.1 rule 3)
  | "interrupted" // Ctrl-C or SIGTERM
  | "unsendable"; // no request could be made: no credential, or a header that HTTP does not allow

export interface NetworkError {
  readonly reason: NetworkErrorReason;
  /** Words for the end of a sentence, without full stop, without a secret: the error is about the connection alone. */
  readonly detail: string;
  /** The same again may succeed although the reason usually stays (a name server that is busy). */
  readonly temporary?: boolean;
  /** What to do about this one, if more is known than the reason says. */
  readonly hint?: Advice;
}

/** A connection that was never made. undici would retry for ever if the error's code were one of its own. */
export class NoConnection extends Error {
  override readonly name = "NoConnection";
  readonly stage: "direct" | "proxy";
  constructor(cause: unknown, stage: "direct" | "proxy") {
    super("no connection", { cause });
    this.stage = stage;
  }
}

/** A response that no one can read: a part of the program that reads it could not be loaded. */
export class NoReader extends Error {
  override readonly name = "NoReader";
}

/** @param error what a connection attempt failed with: nothing was sent */
export function connectError({ cause, stage }: NoConnection): NetworkError {
  const code = codeOf(cause);
  if (stage === "proxy" && !isTls(code)) {
    const refused = code === "ECONNREFUSED" ? refusedBy(cause) : "";
    return proxyError(refused === "" ? messageOf(cause) : `${refused} refused the connection (${code})`);
  }
  if (code === "ENOTFOUND" || code.startsWith("EAI_"))
    return { reason: "dns", detail: `the host name cannot be resolved (${code})`, temporary: code === "EAI_AGAIN" };
  if (isTls(code)) return handshakeError(cause);
  if (code === "ETIMEDOUT" || code === "UND_ERR_CONNECT_TIMEOUT")
    return { reason: "timeout", detail: "the connection was not made within the time limit" };
  if (code === "ECONNRESET" || code === "UND_ERR_SOCKET" || code === "EPIPE")
    return { reason: "refused", detail: "the connection was closed before the request could be sent" };
  if (code === "ECONNREFUSED" && refusedBy(cause) !== "")
    return { reason: "refused", detail: `${refusedBy(cause)} refused the connection (${code})` };
  return { reason: "refused", detail: `no connection: ${messageOf(cause)}` };
}

/** The addresses that the name stands for, each as tried. */
function refusedBy(cause: unknown): string {
  const errors: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  const addresses = errors.flatMap((error) => {
    const { address, port } = error as { address?: unknown; port?: unknown };
    return typeof address === "string" ? [`${address.includes(":") ? `[${address}]` : address}:${String(port)}`] : [];
  });
  return [...new Set(addresses)].join(" and ");
}

/** @param message undici's: it gives the status of a proxy's response in no other way */
function proxyError(message: string): NetworkError {
  const status = /^Proxy response \((\d{3})\)/.exec(message)?.[1];
  if (status === "407")
    return {
      reason: "proxy",
      detail: "the proxy requires a user and password (407)",
      hint: "Give its user and password with its address: HTTPS_PROXY=http://<user>:<password>@<proxy>:<port>.",
    };
  const why = status === undefined ? message : `it responded with status ${status}`;
  return { reason: "proxy", detail: `the proxy did not connect: ${why}` };
}

/** What Node calls a certificate whose authority it does not know. */
const untrusted: ReadonlySet<string> = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_UNTRUSTED",
]);

function handshakeError(error: unknown): NetworkError {
  // Through a proxy a certificate of another name comes wrapped.
  const cause = codeOf(error) === "UND_ERR_PRX_TLS" && error instanceof Error && error.cause ? error.cause : error;
  return { reason: "tls", detail: `the TLS handshake failed: ${messageOf(cause)}`, hint: handshakeHint(codeOf(cause)) };
}

function handshakeHint(code: string): Advice | undefined {
  if (untrusted.has(code))
    return "Set NODE_EXTRA_CA_CERTS to a file of its certificates, if that authority is your organization's own.";
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return "Check this machine's date; if it is right, ask the service's operator to renew it.";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return "Check the host in the address of the profile.";
  return undefined;
}

/** @param error what an established connection failed with, after the request was handed to it */
export function exchangeError(error: unknown): NetworkError {
  if (error instanceof NoReader) {
    const why = codeOf(error.cause);
    return { reason: "closed", detail: `a part of integ that reads such a response could not be loaded (${why})` };
  }
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG") return { reason: "unsendable", detail: "the request cannot be sent over HTTP" };
  if (code === "UND_ERR_HEADERS_OVERFLOW") return { reason: "too_large", detail: "the response headers are too large" };
  // A cut response is a parser's error too; undici gives neither of them a code.
  if (error instanceof Error && error.name === "HTTPParserError" && !error.message.includes("Invalid EOF state"))
    return { reason: "malformed", detail: "the response is not HTTP" };
  if (isTls(code)) return { reason: "closed", detail: `the TLS connection failed: ${messageOf(error)}` };
  return { reason: "closed", detail: "the connection closed before the full response arrived" };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

function isTls(code: string): boolean {
  return (
    /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|UNABLE_TO_|CRL_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH)/.test(
      code,
    ) ||
    code === "EPROTO" ||
    code === "UND_ERR_PRX_TLS" ||
    code === "ERR_PROXY_TLS"
  );
}

function messageOf(error: unknown): string {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  const text = first instanceof Error ? first.message : String(first);
  // OpenSSL's line: thread, code, library, function, what it was, place.
  const words = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
  return words.split("\n")[0]!.trim().replace(/\.$/, "").slice(0, 200) || codeOf(error);
}
