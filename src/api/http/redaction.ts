// Masks a request's credentials in its response, because errors, the journal and the debug log show responses.
import type { Exchange, ExchangeRequest, Head } from "./exchange.ts";

const mask = "[secret]";
/** Shorter secrets are not masked, because they could occur anywhere in a response. */
const shortestSecret = 8;

export function withoutEchoes(request: Pick<ExchangeRequest, "headers" | "secrets">, exchange: Exchange): Exchange {
  const secrets = secretsOf(request);
  if (secrets.length === 0) return exchange;
  if (exchange.kind === "response") return withoutSecretsIn(exchange, secrets);
  const { partial, received } = exchange;
  return {
    ...exchange,
    partial: partial && withoutSecretsIn(partial, secrets),
    received: received && withoutSecrets(received, secrets),
  };
}

function withoutSecretsIn<T extends Head & { readonly body: Buffer }>(response: T, secrets: readonly string[]): T {
  const headers: Record<string, string | undefined> = Object.create(null);
  for (const [name, value] of Object.entries(response.headers)) headers[name] = value && withoutText(value, secrets);
  // The body of a successful response is the user's result and stays unchanged.
  return { ...response, headers, body: response.status < 400 ? response.body : withoutSecrets(response.body, secrets) };
}

/** Masks secrets, also with percent, JSON or numeric HTML escapes. @returns the same buffer if none was found */
export function withoutSecrets(body: Buffer, secrets: readonly string[], shownAs = mask): Buffer {
  const text = body.toString("latin1");
  const shown = withoutText(text, secrets, shownAs);
  return shown === text ? body : Buffer.from(shown, "latin1");
}

/** @param text a header's value, or a body with one character for each byte */
function withoutText(text: string, secrets: readonly string[], shownAs = mask): string {
  const needles = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString("latin1")]);
  const spans = needles.flatMap((needle) => spansOf(needle, text));
  if (/[\\%&]/.test(text)) {
    const { plain, places } = unescaped(text);
    for (const needle of needles)
      for (const [from, to] of spansOf(unescaped(needle).plain, plain)) spans.push([places[from]!, places[to]!]);
  }
  let shown = "";
  let end = 0;
  for (const [from, to] of spans.sort(([a], [b]) => a - b)) {
    if (from >= end) shown += text.slice(end, from) + shownAs;
    end = Math.max(end, to);
  }
  return shown + text.slice(end);
}

type Span = readonly [from: number, to: number];

function spansOf(needle: string, text: string): Span[] {
  const spans: Span[] = [];
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length))
    spans.push([at, at + needle.length]);
  return spans;
}

/**
 * Matches an escape of JSON (also within nested JSON), a percent escape (also encoded again, `%2541`), or a numeric
 * HTML reference. A match takes the whole run of backslashes or `25`, so matching takes linear time.
 */
const escape = /\\+(?:u([0-9a-f]{4})|(["/]))?|%(?:25)*([0-9a-f]{2})|&#(?:x0{0,9}([0-9a-f]{1,6})|0{0,9}(\d{1,7}));/gi;

/** @returns `places`: the index in `text` of each character of `plain` */
function unescaped(text: string): { readonly plain: string; readonly places: Uint32Array } {
  const places = new Uint32Array(text.length + 1);
  const parts: string[] = [];
  let length = 0;
  let end = 0;
  const add = (part: string, from: number, step: 0 | 1): void => {
    for (let at = 0; at < part.length; at += 1) places[length + at] = from + at * step;
    parts.push(part);
    length += part.length;
  };
  for (const match of text.matchAll(escape)) {
    add(text.slice(end, match.index), end, 1);
    add(characterOf(match), match.index, 0);
    end = match.index + match[0].length;
  }
  add(text.slice(end), end, 1);
  places[length] = text.length;
  return { plain: parts.join(""), places };
}

function characterOf([run, json, sign, percent, hex, decimal]: RegExpExecArray): string {
  const code = json ?? percent ?? hex;
  if (code !== undefined) return characterAt(Number.parseInt(code, 16));
  if (decimal !== undefined) return characterAt(Number(decimal));
  // Each level of nested JSON doubles the backslashes.
  return sign ?? (run === "" ? "" : "\\");
}

function characterAt(code: number): string {
  return code > 0x10ffff ? "\ufffd" : String.fromCodePoint(code);
}

function secretsOf({ headers, secrets = [] }: Parameters<typeof withoutEchoes>[0]): string[] {
  const [scheme = "", value = ""] = (headers.authorization ?? "").split(" ", 2);
  const pair = scheme === "Basic" ? Buffer.from(value, "base64").toString() : "";
  const colon = pair.indexOf(":");
  // §5.1 rule 1: the API key is the password, or the user name with an empty password.
  return [...new Set([value, pair.slice(colon + 1) || pair.slice(0, colon), ...secrets])].filter(
    ({ length }) => length >= shortestSecret,
  );
}
