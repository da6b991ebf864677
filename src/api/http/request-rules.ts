// What may be in a request, and where it may go: nothing leaves that HTTP could read in two ways.
import { Failure, invalidValue } from "../../errors.ts";
import type { ExchangeRequest } from "./exchange.ts";

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
