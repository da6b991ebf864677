// Types and checks of one HTTP exchange, and messages for errors of Node and undici.
import type { Advice } from "../../next-step.ts";
import { Failure, invalidValue, reasonOf } from "../../errors.ts";

export interface ExchangeRequest {
  readonly method: string;
  /** A real address, or a logical one such as `sandbox://us`, which the transport resolves. */
  readonly baseUrl: string;
  /** Visible ASCII from `/` on, with the query; appended to the base URL's path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Limit of a decoded 2xx body, in bytes. Default: `maxBodyBytes`, which always limits other bodies. */
  readonly maxBytes?: number;
  /** Replaces the transport's signal, so that the caller decides about interruptions. */
  readonly signal?: AbortSignal;
  /** Secrets to mask in the response, besides `Authorization`. */
  readonly secrets?: readonly string[];
}

/**
 * - `response`: complete, within the limits, decoded.
 * - `broken`: missing, incomplete, too large or not decodable. `sent` is false only if no connection got the request.
 */
export type Exchange =
  | (Head & { readonly kind: "response"; readonly body: Buffer })
  | (NetworkError & {
      readonly kind: "broken";
      readonly sent: boolean;
      /** Set after a complete head. The body may be incomplete or encoded, and may contain a secret. */
      readonly partial?: Head & { readonly body: Buffer };
      /** All received bytes of the response to a change, with their framing. They may contain a secret. */
      readonly received?: Buffer;
    });

export type Response = Extract<Exchange, { readonly kind: "response" }>;
export type Broken = Extract<Exchange, { readonly kind: "broken" }>;

export interface Head {
  readonly status: number;
  readonly headers: Headers;
}

/** Names are in lower case. Repeated headers are joined by `, ` (RFC 9110 §5.3). The object has no prototype. */
export type Headers = Readonly<Record<string, string | undefined>>;

const mebibyte = 1024 * 1024;
export const maxPageBytes = 64 * mebibyte;
export const maxBodyBytes = mebibyte;

export interface Transport {
  /**
   * Follows no redirect. Repeats only a read on a reused connection that the server closed.
   * @throws Failure before sending, such as `usage` for an invalid request or a forbidden address
   */
  exchange(request: ExchangeRequest): Promise<Exchange>;
  close(): void;
}

export type NetworkErrorReason =
  | "dns"
  | "refused"
  | "tls"
  | "proxy"
  | "timeout"
  | "closed" // the connection ended before the response was complete
  | "malformed" // not HTTP, or a status or body that breaks the contract (HTML, cut JSON, wrong types)
  | "too_large" // headers, decoded body or nesting beyond the limits
  | "redirect" // 3xx: never followed (§5.1 rule 3)
  | "interrupted" // aborted, such as by Ctrl-C
  | "unsendable"; // no credential or token, or a request that HTTP does not allow

export interface NetworkError {
  readonly reason: NetworkErrorReason;
  /** Words for the end of a sentence, without a full stop or a secret. */
  readonly detail: string;
  /** True if a retry may succeed although the reason is usually permanent, as for a busy name server. */
  readonly temporary?: boolean;
  readonly hint?: Advice;
}

/** Nothing was sent. Hides the cause's code, because undici reconnects forever after some codes. */
export class NoConnection extends Error {
  override readonly name = "NoConnection";
  readonly stage: "direct" | "proxy";
  constructor(cause: unknown, stage: "direct" | "proxy") {
    super("no connection", { cause });
    this.stage = stage;
  }
}

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

/** undici shows the proxy's status only in the message. */
function proxyError(message: string): NetworkError {
  const status = /^Proxy response \((\d{3})\)/.exec(message)?.[1];
  if (status === "407")
    return {
      reason: "proxy",
      detail: "the proxy requires a user and password (407)",
      hint: "Give its user and password with its address: HTTPS_PROXY=http://<user>:<password>@<proxy>:<port>.",
    };
  const detail =
    status === undefined
      ? `cannot connect to the proxy: ${message}`
      : `the proxy did not connect: it responded with status ${status}`;
  return { reason: "proxy", detail };
}

const untrusted = /^UNABLE_TO_(?:VERIFY|GET_ISSUER)|SELF_SIGNED_CERT|^CERT_UNTRUSTED$/;

function handshakeError(error: unknown): NetworkError {
  // Through a proxy, undici wraps the error for a certificate that names another host.
  const cause = codeOf(error) === "UND_ERR_PRX_TLS" && error instanceof Error && error.cause ? error.cause : error;
  return { reason: "tls", detail: `the TLS handshake failed: ${messageOf(cause)}`, hint: handshakeHint(codeOf(cause)) };
}

function handshakeHint(code: string): Advice | undefined {
  if (untrusted.test(code))
    return "Set NODE_EXTRA_CA_CERTS to a file with your organization's CA certificates, if it has its own certificate authority.";
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return "Check this machine's date; if it is right, ask the service's operator to renew the certificate.";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return "Check the host in the address of the profile.";
  return undefined;
}

function exchangeError(error: unknown): NetworkError {
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG") return { reason: "unsendable", detail: "the request cannot be sent over HTTP" };
  if (code === "UND_ERR_HEADERS_OVERFLOW") return { reason: "too_large", detail: "the response headers are too large" };
  // undici also reports a cut response as a parser error. Only the message differs.
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
  const text = reasonOf(first);
  // OpenSSL's text names the thread, code, library, function, reason and place.
  const words = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
  return words.split("\n")[0]!.trim().replace(/\.$/, "").slice(0, 200) || codeOf(error);
}

/** Only the transport sets these headers: a second `host` would name another origin. */
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
 * @throws Failure `usage` for an invalid method, path or header. The message omits a header's value, which may be a
 * secret.
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

/** A resolved base URL; its path precedes every request's path. */
export interface Target {
  readonly origin: string;
  readonly secure: boolean;
  readonly prefix: string;
}

/** @param located `https://`, or `http://` on loopback. @throws Failure `usage` for any other text */
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

/** Hosts as `URL` spells them. The connection later checks the address that `localhost` resolves to. */
const loopbackName = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Sockets may report IPv4 addresses as `::ffff:127.0.0.1`. */
export function isLoopbackAddress(address = ""): boolean {
  return /^(?:(?:::ffff:)?127(?:\.\d{1,3}){3}|::1)$/.test(address);
}
