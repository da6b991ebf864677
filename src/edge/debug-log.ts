// `--debug` prints each request and response without bodies, secret headers and secret query parameters.
import type { ExchangeRequest, Headers, NetworkErrorReason, Transport } from "../api/http/exchange.ts";

export interface DebugEvent {
  readonly kind: "request" | "response" | "broken";
  /** Number of the request; its outcome has the same number. */
  readonly id: number;
  /** 1 for the first attempt; a retry of the same request has the next number. */
  readonly attempt: number;
  readonly method: string;
  /** Values of query parameters with secret-like names are masked. */
  readonly url: string;
  readonly headers?: Headers;
  readonly status?: number;
  /** Length of the decoded body. */
  readonly bytes?: number;
  readonly elapsedMs?: number;
  readonly sent?: boolean;
  readonly reason?: NetworkErrorReason;
  readonly detail?: string;
}

interface LogOptions {
  readonly write: (event: DebugEvent) => void;
  readonly now: () => number;
  readonly userAgent: string;
}

export function logged(transport: Transport, { write, now, userAgent }: LogOptions): Transport {
  let count = 0;
  const attempts = new Map<string, number>();
  return {
    close: () => transport.close(),
    async exchange(request) {
      const key = requestKey(request);
      const attempt = (attempts.get(key) ?? 0) + 1;
      const about = { id: ++count, attempt, method: request.method, url: shownUrl(request) };
      const startedAt = now();
      write({ kind: "request", ...about, headers: redacted({ ...request.headers, "user-agent": userAgent }) });
      const broken = (why: Pick<DebugEvent, "sent" | "reason" | "detail">): void => {
        attempts.set(key, attempt);
        write({ kind: "broken", ...about, ...why, elapsedMs: now() - startedAt });
      };
      const exchange = await transport.exchange(request).catch((error: unknown) => {
        broken({ sent: false, reason: "unsendable", detail: "the request was refused" });
        throw error;
      });
      if (exchange.kind === "broken") {
        const { sent, reason, detail } = exchange;
        broken({ sent, reason, detail });
        return exchange;
      }
      const { status, headers, body } = exchange;
      // After a final response, the same request counts as new, except a creation under the same idempotency key (§4.2,
      // §8).
      if (isFinal(status) && headerOf(request.headers, "idempotency-key") === undefined) attempts.delete(key);
      else attempts.set(key, attempt);
      const elapsedMs = now() - startedAt;
      write({ kind: "response", ...about, status, headers: redacted(headers), bytes: body.length, elapsedMs });
      return exchange;
    },
  };
}

/** @param wanted in lower case; the names of headers may have any case */
function headerOf(headers: ExchangeRequest["headers"], wanted: string): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];
}

function isFinal(status: number): boolean {
  return status < 500 && status !== 429 && status !== 408;
}

/** The key may contain a secret, so it must not be printed. */
function requestKey({ method, baseUrl, path, headers, body = "" }: ExchangeRequest): string {
  const key = headerOf(headers, "idempotency-key") ?? null;
  return JSON.stringify([method, baseUrl, path, key, body.toString("latin1")]);
}

/** A list of secret headers would never be complete: only these headers and the scheme of `authorization` are shown. */
const shownHeaders: readonly string[] = [
  "accept",
  "accept-encoding",
  "cache-control",
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "request-id",
  "retry-after",
  "service-version",
  "user-agent",
  "x-organization-id",
];

function redacted(headers: Headers): Headers {
  const shown: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (shownHeaders.includes(lower)) shown[lower] = value?.slice(0, 200);
    if (lower === "authorization")
      shown[lower] = `${/^(?:basic|bearer)(?= )/i.exec(value ?? "")?.[0] ?? ""} <redacted>`.trim();
  }
  return shown;
}

function shownUrl({ baseUrl, path }: ExchangeRequest): string {
  // The transport also refuses addresses with a user name, but only after the debug line is written.
  const base = baseUrl.replace(/\/\/[^/?#]*@/, "//").replace(/\/+$/, "");
  const [before, ...query] = path.split("?");
  if (query.length === 0) return base + path;
  const pairs = query.join("?").split("&");
  return `${base}${before}?${pairs.map(maskPair).join("&")}`;
}

function maskPair(pair: string): string {
  const [name = ""] = pair.split("=");
  // A name with a `%` escape could spell any of these words, so its value is masked too.
  return name === "page_token" || !/secret|token|pass|key|cred|auth|sig|%/i.test(name) ? pair : `${name}=…`;
}
