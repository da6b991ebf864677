// Owns: what a debug log may see of an exchange: never a body, never a header that is not in the list of harmless ones;
// and which try of the same request it is.
// Must not know: where the log goes, who tries again and when.
import type { DebugEvent, Exchange, ExchangeRequest, Headers } from "./exchange.ts";

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

/** The headers that may be shown: a list of what is harmless, since a list of what is not is never complete. */
function harmless(headers: Headers): Headers {
  const shown: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (shownHeaders.includes(lower)) shown[lower] = value?.slice(0, 200);
  }
  return shown;
}

/** The address as it may be shown. */
function shownUrl(origin: string, path: string): string {
  const [before, ...query] = path.split("?");
  if (query.length === 0) return origin + path;
  const pairs = query.join("?").split("&");
  return `${origin}${before}?${pairs.map(maskPair).join("&")}`;
}

function maskPair(pair: string): string {
  const [name = ""] = pair.split("=");
  if (name === "page_token" || !/secret|token|pass|key|cred|auth|sig/i.test(decodeLeniently(name))) return pair;
  return `${name}=…`;
}

function decodeLeniently(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "secret"; // What cannot be read is masked.
  }
}

/** Tells the log of a request. @returns the function that tells of its end, and hands it on */
export type ExchangeLog = (request: ExchangeRequest, address: LoggedAddress) => (exchange: Exchange) => Exchange;

type LoggedAddress = { readonly origin: string; readonly prefix: string };

/** The log of one transport: it counts the exchanges, and how often each request was tried. */
export function createExchangeLog({
  debug,
  now,
  userAgent,
}: {
  readonly debug?: (event: DebugEvent) => void;
  readonly now: () => number;
  readonly userAgent: string;
}): ExchangeLog {
  if (!debug) return () => (exchange) => exchange;
  let count = 0;
  const tries = new Tries();
  return (request, { origin, prefix }) => {
    const url = shownUrl(origin, prefix + request.path);
    const about = { id: ++count, attempt: tries.of(request), method: request.method, url };
    const startedAt = now();
    debug({ kind: "request", ...about, headers: harmless({ "user-agent": userAgent, ...request.headers }) });
    return (exchange) => {
      tries.ended(request, exchange);
      const elapsedMs = now() - startedAt;
      if (exchange.kind === "response") {
        const { status, headers, body } = exchange;
        debug({ kind: "response", ...about, status, headers: harmless(headers), bytes: body.length, elapsedMs });
      } else {
        const { sent, reason, detail } = exchange;
        debug({ kind: "broken", ...about, sent, reason, detail, elapsedMs });
      }
      return exchange;
    };
  };
}

/**
 * How often the same request went out. What is sent again is a request that brought no final answer (§8), and anything
 * under one idempotency key (§4.2); the same question asked anew after its answer is a first try.
 */
class Tries {
  readonly #ended = new Map<string, number>();

  /** @returns which try of this request is about to be made, from 1 */
  of(request: ExchangeRequest): number {
    return (this.#ended.get(sameness(request)) ?? 0) + 1;
  }

  ended(request: ExchangeRequest, exchange: Exchange): void {
    const same = sameness(request);
    if (keyOf(request) === undefined && isFinal(exchange)) this.#ended.delete(same);
    else this.#ended.set(same, (this.#ended.get(same) ?? 0) + 1);
  }
}

function isFinal(exchange: Exchange): boolean {
  if (exchange.kind === "broken") return false;
  return exchange.status < 500 && exchange.status !== 429 && exchange.status !== 408;
}

/** What makes two requests the same. It may hold a secret: it is compared, and never told. */
function sameness(request: ExchangeRequest): string {
  const { method, baseUrl, path, body = "" } = request;
  return JSON.stringify([method, baseUrl, path, keyOf(request) ?? null, body.toString("latin1")]);
}

function keyOf({ headers }: ExchangeRequest): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1];
}
