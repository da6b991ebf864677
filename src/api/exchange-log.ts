// Owns: what a debug log may see of an exchange: never a body, never a header that is not in the list of harmless ones.
// Must not know: where the log goes.
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

/**
 * Tells the log of a request.
 * @returns the function that tells of its end, and hands it on
 */
export function logExchange(
  { debug, now, userAgent }: { debug?: (event: DebugEvent) => void; now: () => number; userAgent: string },
  { id, request, address }: { id: number; request: ExchangeRequest; address: { origin: string; prefix: string } },
): (exchange: Exchange) => Exchange {
  if (!debug) return (exchange) => exchange;
  const about = { id, method: request.method, url: shownUrl(address.origin, address.prefix + request.path) };
  const startedAt = now();
  debug({ kind: "request", ...about, headers: harmless({ "user-agent": userAgent, ...request.headers }) });
  return (exchange) => {
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
}
