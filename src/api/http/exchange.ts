// One HTTP exchange: what may be asked of the transport, how it can end, and what errors of Node and undici mean in words.
import type { Advice } from "../../next-step.ts";
import { Failure, invalidValue } from "../../errors.ts";

export interface ExchangeRequest {
  readonly method: string;
  /** The logical base URL; only the transport knows the origin behind it. */
  readonly baseUrl: string;
  /** From `/`, with the query; visible ASCII. Appended to the base URL's own path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Limit of the decoded body of a success in bytes; default `maxBodyBytes`, which is the limit of every other response. */
  readonly maxBytes?: number;
  /** Replaces the transport's signal: the caller decides how long a response is waited for after an interruption. */
  readonly signal?: AbortSignal;
  /** Secrets of the request beside its `Authorization`: an error response must not show them. */
  readonly secrets?: readonly string[];
}

/**
 * How an exchange ended.
 * - `response`: whole, within the limits, decoded. Any status; a redirect is a response like any other, not followed.
 * - `broken`: no whole response. `sent` is exact: false if and only if the request was never handed to a connection.
 */
export type Exchange =
  | (Head & { readonly kind: "response"; readonly body: Buffer })
  | (NetworkError & {
      readonly kind: "broken";
      readonly sent: boolean;
      /** The head of the response was whole; its body may be cut anywhere or be encoded. It may hold a secret. */
      readonly partial?: Head & { readonly body: Buffer };
      /** Every byte that came in response to a change, with its framing. It may hold a secret. */
      readonly received?: Buffer;
    });

export type Response = Extract<Exchange, { readonly kind: "response" }>;
export type Broken = Extract<Exchange, { readonly kind: "broken" }>;

export interface Head {
  readonly status: number;
  readonly headers: Headers;
}

/** Names in lower case, no prototype; the values of a repeated header joined by `, ` (RFC 9110 §5.3). */
export type Headers = Readonly<Record<string, string | undefined>>;

const mebibyte = 1024 * 1024;
/** The longest decoded body of a list page, bytes. */
export const maxPageBytes = 64 * mebibyte;
/** The longest decoded body of anything else, bytes. */
export const maxBodyBytes = mebibyte;

export interface Transport {
  /**
   * Sends one request and reports its outcome. Follows no redirect and repeats nothing, except a read whose kept-alive
   * connection turned out to be closed.
   * @throws Failure `usage` for a request that HTTP cannot carry, or an address it must not go to: nothing was sent
   */
  exchange(request: ExchangeRequest): Promise<Exchange>;
  /** Closes every idle connection. Safe to repeat. */
  close(): void;
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
  /** Ends a sentence, without full stop and without a secret: it is about the connection alone. */
  readonly detail: string;
  /** The same again may succeed although the reason usually stays (a name server that is busy). */
  readonly temporary?: boolean;
  /** What to do about this one, if more is known than the reason says. */
  readonly hint?: Advice;
}

/** A connection that was not made, so nothing was sent. undici would connect again for ever if this had one of its codes. */
export class NoConnection extends Error {
  override readonly name = "NoConnection";
  readonly stage: "direct" | "proxy";
  constructor(cause: unknown, stage: "direct" | "proxy") {
    super("no connection", { cause });
    this.stage = stage;
  }
}

/** @param error what undici ended the exchange with */
export function networkError(error: unknown): NetworkError {
  return error instanceof NoConnection ? connectError(error) : exchangeError(error);
}

function connectError({ cause, stage }: NoConnection): NetworkError {
  const code = codeOf(cause);
  const words = messageOf(cause).replace(/^connect ECONNREFUSED (.+)/, "$1 refused the connection (ECONNREFUSED)");
  if (isTls(code)) return handshakeError(cause);
  if (stage === "proxy") return proxyError(words);
  if (code === "ENOTFOUND" || code.startsWith("EAI_"))
    return { reason: "dns", detail: `the host name cannot be resolved (${code})`, temporary: code === "EAI_AGAIN" };
  if (code === "ETIMEDOUT") return { reason: "timeout", detail: "the connection was not made within the time limit" };
  if (code === "ECONNRESET" || code === "UND_ERR_SOCKET" || code === "EPIPE")
    return { reason: "refused", detail: "the connection was closed before the request could be sent" };
  return { reason: "refused", detail: code === "ECONNREFUSED" ? words : `no connection: ${words}` };
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

/** Node's codes for a certificate whose authority it does not know. */
const untrusted = /^UNABLE_TO_(?:VERIFY|GET_ISSUER)|SELF_SIGNED_CERT|^CERT_UNTRUSTED$/;

function handshakeError(error: unknown): NetworkError {
  // Through a proxy a certificate of another name comes wrapped.
  const cause = codeOf(error) === "UND_ERR_PRX_TLS" && error instanceof Error && error.cause ? error.cause : error;
  return { reason: "tls", detail: `the TLS handshake failed: ${messageOf(cause)}`, hint: handshakeHint(codeOf(cause)) };
}

function handshakeHint(code: string): Advice | undefined {
  if (untrusted.test(code))
    return "Set NODE_EXTRA_CA_CERTS to a file of its certificates, if that authority is your organization's own.";
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return "Check this machine's date; if it is right, ask the service's operator to renew it.";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return "Check the host in the address of the profile.";
  return undefined;
}

/** @param error what an established connection failed with, after the request was handed to it */
function exchangeError(error: unknown): NetworkError {
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG") return { reason: "unsendable", detail: "the request cannot be sent over HTTP" };
  if (code === "UND_ERR_HEADERS_OVERFLOW") return { reason: "too_large", detail: "the response headers are too large" };
  // A cut response is an error of the parser too; undici gives neither of them a code.
  if (error instanceof Error && error.name === "HTTPParserError" && !error.message.includes("Invalid EOF state"))
    return { reason: "malformed", detail: "the response is not HTTP" };
  if (isTls(code)) return { reason: "closed", detail: `the TLS connection failed: ${messageOf(error)}` };
  return { reason: "closed", detail: "the connection closed before the full response arrived" };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

const tlsCode =
  /^(?:ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|UNABLE_TO_|CRL_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|EPROTO$|UND_ERR_PRX_TLS$|ERR_PROXY_TLS$)/;

function isTls(code: string): boolean {
  return tlsCode.test(code);
}

function messageOf(error: unknown): string {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  const text = first instanceof Error ? first.message : String(first);
  // OpenSSL's line: thread, code, library, function, reason, place.
  const words = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
  return words.split("\n")[0]!.trim().replace(/\.$/, "").slice(0, 200) || codeOf(error);
}

/** Framing, routing and connection belong to the transport; a second `host` would be another origin's. */
const ownHeaders = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * @throws Failure `usage` if a header or the path is nothing that HTTP can carry. The value, which may be a secret, is
 * not in the words.
 */
export function checkWireRequest({
  method,
  path,
  headers,
}: Pick<ExchangeRequest, "method" | "path" | "headers">): void {
  if (!/^[A-Z]{1,20}$/.test(method) || method === "CONNECT" || method === "TRACE")
    throw invalidValue("method", method, {
      hint: "Use GET, POST, PUT, PATCH or DELETE.",
    });
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes("#"))
    throw new Failure("usage", "The path contains a character that a request cannot contain.", {
      hint: "Write spaces and characters outside ASCII percent-encoded.",
    });
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value);
}

function checkHeader(name: string, value: string): void {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/.test(name))
    throw new Failure("usage", "A header's name contains a character that HTTP does not allow there.");
  if (ownHeaders.has(name.toLowerCase())) throw new Failure("usage", `The header "${name}" cannot be set by hand.`);
  if (!/^[\t\x20-\x7e\xa0-\xff]*$/.test(value))
    throw new Failure(
      "usage",
      `The value of the header "${name}" contains a line break, NUL, or another character that HTTP does not allow there.`,
    );
}

/** A real address: the origin that a connection is bound to, and the path in front of every request's. */
export interface Target {
  readonly origin: string;
  readonly secure: boolean;
  readonly prefix: string;
}

/**
 * @param located a real base URL: `https://`, or `http://` on loopback
 * @throws Failure `usage` for any other
 */
export function parseTarget(
  located: string,
  {
    what = "base URL",
    example = "https://api.example.com",
  }: { readonly what?: string; readonly example?: string } = {},
): Target {
  const url = URL.canParse(located) ? new URL(located) : undefined;
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw invalidValue(what, undefined, { why: "it is not an http address", hint: `Write it like ${example}.` });
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw invalidValue(what, undefined, { why: "it has a user name, a query or a fragment" });
  if (url.protocol === "http:" && !loopbackName.test(url.hostname))
    throw invalidValue(what, url.origin, {
      why: "plain http is allowed to this machine only",
      hint: `Use https://${url.host}.`,
    });
  return { origin: url.origin, secure: url.protocol === "https:", prefix: url.pathname.replace(/\/+$/, "") };
}

/** As `URL` writes names. What `localhost` resolves to is checked when the connection is made. */
const loopbackName = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** True for an IP address of this machine's loopback interface, as sockets write it. */
export function isLoopbackAddress(address = ""): boolean {
  return /^(?:(?:::ffff:)?127(?:\.\d{1,3}){3}|::1)$/.test(address);
}
