// Checks addresses (§1, §5.1 rules 3 and 4), and compares their origins.
import { flags } from "../next-step.ts";
import { Failure, invalidValue } from "../errors.ts";

const loopbackNames = new Set(["localhost", "[::1]"]);

/** True for `localhost`, `::1` and 127.0.0.0/8 as `URL` spells them, but not for names that end in `localhost`. */
export function isLoopback(hostname: string): boolean {
  // The URL parser writes every form of an IPv4 address (`127.1`, `0x7f.1`) as four decimal parts.
  return loopbackNames.has(hostname) || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname);
}

function parseAddress(text: string, label: string): URL {
  const refuse = (why: string): never => {
    throw invalidValue(label, undefined, { why: `it ${why}`, hint: "Write it like https://api.example.com." });
  };
  // The parser would silently drop white space, replace `\` by `/`, and accept `https:host`.
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
 * @returns origin and path without a final slash
 * @throws Failure `usage` for an invalid URL, http except on loopback, credentials, a query or a fragment
 */
export function checkBaseUrl(text: string, label = "base URL"): string {
  const url = parseAddress(text, label);
  if (text.includes("?")) throw invalidValue(label, undefined, { why: "it must not contain a query (?)" });
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/**
 * A typed base URL must not end in a contract's prefix, which integ appends (§4).
 * @param typed the flag or variable before the value, such as `--base-url ` or `INTEG_BASE_URL=`
 * @throws Failure `usage` for such a prefix, and as `checkBaseUrl`
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
 * Refuses a host that names the other region (`api.eu.example.com` for `us`): each region has its own host (§1), and
 * credentials must stay in their region (§5.1 rule 4).
 * @throws Failure `usage`
 */
export function checkRegionOfHost(base: string, region: string): void {
  const { hostname } = new URL(base);
  // Registered names and country codes may contain a region's letters, so only the labels before them count.
  const words = new Set(
    hostname
      .toLowerCase()
      .split(".")
      .slice(0, -2)
      .flatMap((label) => label.split("-")),
  );
  const regions = ["us", "eu"].filter((name) => words.has(name));
  if (regions.length !== 1 || regions[0] === region || isLoopback(hostname)) return;
  throw new Failure("usage", `The host ${hostname} is in the region ${regions[0]}, and the profile is for ${region}.`, {
    meaning: `A credential works only on the host of its own region. If this host is correct, add ${flags.noVerify}.`,
    hint: `Use ${flags.region} ${regions[0]}, or the host of the region ${region}.`,
  });
}

/** Unlike a base URL, a token endpoint keeps its path unchanged and may have a query (RFC 6749 §3.2). */
export function checkEndpoint(text: string, label = "endpoint"): string {
  return parseAddress(text, label).href;
}

export function areSameOrigins(given: readonly string[], now: readonly string[]): boolean {
  return given.join(" ") === now.join(" ");
}

/** @returns scheme, host and port; the sandbox's logical addresses are their own origins */
export function originOf(address: string): string {
  const url = new URL(address);
  return url.protocol === "sandbox:" ? `sandbox://${url.host}` : url.origin;
}
