// What may be in a request: segments of a path, queries, headers, addresses. Text of a person or of the service is
// never a path, it is encoded into one; nothing leaves that HTTP could read in two ways.
import { flags } from "../../next-step.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { ExchangeRequest } from "./exchange.ts";
import { isDate } from "../json/iso-time.ts";

/**
 * One segment of a path.
 * @param id as typed or as the service gave it; opaque
 * @param what names it in the words of the failure: `client id`
 * @throws Failure `usage` if no encoding makes a segment of it: empty, `.`, `..`, half of a surrogate pair
 */
export function segment(id: string, what: string): string {
  const encoded = encode(id);
  if (id === "" || id === "." || id === ".." || encoded === undefined)
    throw invalidValue(what, id, { hint: "Give the id as the API shows it." });
  return encoded;
}

export type Pair = readonly [name: string, value: string];

/** `?a=b&c=d`, each name and value encoded; empty if there is no pair. */
export function query(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return "";
  return `?${pairs.map(([name, value]) => `${parameter(name)}=${parameter(value)}`).join("&")}`;
}

/** A value of a query, encoded. @throws Failure `usage` if it is not text */
export function parameter(text: string): string {
  const encoded = encode(text);
  if (encoded === undefined) throw new Failure("usage", "A parameter is not valid Unicode text.");
  return encoded;
}

/** Nothing if the text holds half of a surrogate pair. */
function encode(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
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
  if (headers === soundHeaders) return;
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value);
  soundHeaders = headers;
}

/** Those that were checked last: the requests of a walk have the same. */
let soundHeaders: ExchangeRequest["headers"] | undefined;

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
  if (url.protocol === "http:" && !isLoopbackName(url.hostname))
    throw invalidValue(what, url.origin, {
      why: "plain http is allowed to this machine only",
      hint: `Use https://${url.host}.`,
    });
  return { origin: url.origin, secure: url.protocol === "https:", prefix: url.pathname.replace(/\/+$/, "") };
}

function isLoopbackName(hostname: string): boolean {
  return (
    hostname === "localhost" || hostname.endsWith(".localhost") || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ""))
  );
}

/** True for an IP address of this machine's loopback interface, in the forms that `URL` and sockets give. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === "127.0.0.1") return true;
  return address !== undefined && /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/i.test(address);
}

/**
 * @param address of an endpoint, logical or real
 * @throws Failure `usage`
 */
export function splitAddress(address: string): { readonly baseUrl: string; readonly path: string } {
  const match = /^([a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+)([^#\s]*)$/i.exec(address);
  if (!match)
    throw invalidValue("token endpoint", undefined, {
      why: "it is not an address",
      hint: "Write it like https://auth.example.com/oauth/token.",
    });
  const path = match[2]!;
  return { baseUrl: match[1]!, path: path.startsWith("/") ? path : `/${path}` };
}

// What says in every request which contract it belongs to: the version for /v1 (§9), the organization for the legacy one
// (§4.4).

/** The version of /v1 that this program was written for (§9.1). */
export const contractVersion = "2026-07-01";

/** Instead of a version: no header is sent, and the service account's own version counts (§9). */
export const noVersion = "none";

/** Why a text cannot be sent as `Service-Version` (§9.1); nothing if it can. */
export function versionFault(text: string): string | undefined {
  if (text === noVersion) return undefined;
  if (!isDate(text)) return "it is not a date";
  if (text === "2026-08-05") return "it is the label of the legacy contract under /api/v1, which takes no version";
  return undefined;
}

/** @throws Failure `usage` for anything but a version that can be sent, or `none` */
export function versionHeader(serviceVersion: string): Readonly<Record<string, string>> {
  const fault = versionFault(serviceVersion);
  if (fault !== undefined)
    throw invalidValue("contract version", serviceVersion, {
      why: fault,
      hint: `Use ${flags.serviceVersion} 2026-07-01, or none to send no version.`,
    });
  return serviceVersion === noVersion ? {} : { "service-version": serviceVersion };
}

/**
 * @assumed `x-organization-id` is shown for the creation of access keys alone (§4.4); it is sent with every request.
 * @throws Failure `usage` if there is no organization id, or it is not a uuid
 */
export function organizationHeader(organizationId: string | undefined): Readonly<Record<string, string>> {
  if (organizationId === undefined || organizationId === "")
    throw new Failure("usage", "The legacy contract needs the organization's id, and the profile has none.", {
      hint: `Add it to the profile with ${flags.organizationId}, or set INTEG_ORGANIZATION_ID.`,
    });
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(organizationId))
    throw invalidValue("organization id", organizationId, {
      hint: "Write it as a UUID, like 3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b.",
    });
  return { "x-organization-id": organizationId };
}
