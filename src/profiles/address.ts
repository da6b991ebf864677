// Which addresses may be used at all (§1, §5.1 rules 3 and 4), and to which origin something belongs. Pure.
import { flags } from "../next-step.ts";
import { Failure, invalidValue } from "../errors.ts";

const loopbackNames = new Set(["localhost", "[::1]"]);

/** True for `localhost`, `::1` and 127.0.0.0/8, as a URL writes them. No name that merely ends like one. */
export function isLoopback(hostname: string): boolean {
  // The URL parser has turned every spelling of an IPv4 address (`127.1`, `0x7f.1`) into four decimal parts.
  return loopbackNames.has(hostname) || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname);
}

function parseAddress(text: string, label: string): URL {
  const refuse = (why: string): never => {
    throw invalidValue(label, undefined, { why: `it ${why}`, hint: "Write it like https://api.example.com." });
  };
  // The parser would silently drop white space, turn `\` into `/` and take `https:host` for an absolute URL.
  if (!/^https?:\/\/[^/\\]/i.test(text)) refuse("must begin with https://");
  if (/[\s\\\u0000-\u001f\u007f-\u009f]/.test(text)) refuse("contains white space, a backslash or a control character");
  if (!URL.canParse(text)) refuse("is not a valid URL");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || /^https?:\/\/[^/?#]*@/i.test(text)) {
    refuse("must not contain a user name or password");
  }
  if (text.includes("#")) refuse("must not contain a fragment (#)");
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    refuse("must be https:// (plain http is for this machine only: 127.0.0.1, ::1, localhost)");
  }
  return url;
}

/**
 * The normal form of a region's base URL: origin and path, no slash at the end.
 * @param label what a message calls it, such as `--base-url` or `INTEG_BASE_URL`
 * @throws Failure `usage`: not https (http is for loopback), or with credentials, query or fragment
 */
export function checkBaseUrl(text: string, label = "base URL"): string {
  const url = parseAddress(text, label);
  if (text.includes("?")) throw invalidValue(label, undefined, { why: "it must not contain a query (?)" });
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/**
 * Checks a base URL that a person typed: it must not end in the prefix of a contract, which integ appends (§4).
 * @param typed how the flag or variable is before its value, such as `--base-url ` or `INTEG_BASE_URL=`
 * @throws Failure `usage` as `checkBaseUrl`, and if it ends in such a prefix
 */
export function checkTypedBaseUrl(text: string, typed: string): string {
  const label = typed.replace(/[ =]$/, "");
  const base = checkBaseUrl(text, label);
  const bare = base.replace(/(\/api)?\/v1$/, "");
  if (bare !== base)
    throw invalidValue(label, undefined, {
      why: "it includes /v1, which integ adds",
      hint: `Write ${typed}${bare}.`,
    });
  return base;
}

/**
 * Refuses a host that names the other region (`api.eu.example.com` for `us`): each region has its own (§1), and a credential
 * belongs on its own region's (§5.1 rule 4).
 * @throws Failure `usage`
 */
export function checkRegionOfHost(base: string, region: string): void {
  const { hostname } = new URL(base);
  // A registered name or a country's ending may hold the letters of a region: only what is before counts.
  const words = new Set(
    hostname
      .toLowerCase()
      .split(".")
      .slice(0, -2)
      .flatMap((label) => label.split("-")),
  );
  const named = ["us", "eu"].filter((one) => words.has(one));
  if (named.length !== 1 || named[0] === region || isLoopback(hostname)) return;
  throw new Failure("usage", `The host ${hostname} is in the region ${named[0]}, and the profile is for ${region}.`, {
    meaning: `A credential works only on the host of its own region. If this host is correct, add ${flags.noVerify}.`,
    hint: `Use ${flags.region} ${named[0]}, or the host of the region ${region}.`,
  });
}

/**
 * An endpoint of its own (token endpoint, access token endpoint): like a base URL, but its path is kept unchanged and it
 * may have a query (RFC 6749 §3.2).
 */
export function checkEndpoint(text: string, label = "endpoint"): string {
  return parseAddress(text, label).href;
}

/** Whether a credential given for these origins may go to those. */
export function areSameOrigins(given: readonly string[], now: readonly string[]): boolean {
  return given.join(" ") === now.join(" ");
}

/** Scheme, host and port of an address; the logical `sandbox://us` is an origin of its own. */
export function originOf(address: string): string {
  const url = new URL(address);
  return url.protocol === "sandbox:" ? `sandbox://${url.host}` : url.origin;
}
