// Keeps secrets out of what is shown of an exchange. A gateway that repeats what it was sent would put the credential into
// an error, the journal's `last_error` and the debug log; the debug log shows no body and only harmless headers.
import type { DebugEvent, Exchange, ExchangeRequest, Headers } from "./exchange.ts";

/** Stands where a credential stood. */
const mask = "[secret]";
/** A shorter text is a word that may occur anywhere: taking it out would only spoil the response. */
const shortestSecret = 8;

/** The response, its headers and the body of an error (status 400 and above) without the request's credentials. */
export function withoutEchoes(
  request: Pick<ExchangeRequest, "headers" | "body" | "secrets">,
  exchange: Exchange,
): Exchange {
  const secrets = secretsOf(request);
  if (secrets.length === 0) return exchange;
  if (exchange.kind === "response") return masked(exchange, secrets);
  return exchange.partial ? { ...exchange, partial: masked(exchange.partial, secrets) } : exchange;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

function masked<T extends Answer>(answer: T, secrets: readonly string[]): T {
  const headers = withoutSecretHeaders(answer.headers, secrets);
  // A success is the result: nothing of it is changed.
  if (answer.status < 400) return headers === answer.headers ? answer : { ...answer, headers };
  return { ...answer, headers, body: withoutSecrets(answer.body, secrets) };
}

/** Headers that had none of these secrets: those of a walk are often the same. */
let clean: { readonly headers: Headers; readonly secrets: readonly string[] } | undefined;

/** @returns the same headers if none of the secrets is in them */
function withoutSecretHeaders(headers: Headers, secrets: readonly string[]): Headers {
  if (clean?.headers === headers && clean.secrets === secrets) return headers;
  let shown: Record<string, string | undefined> | undefined;
  for (const [name, value] of Object.entries(headers)) {
    const text = value && withoutSecretText(value, secrets);
    if (text !== value) (shown ??= Object.assign(Object.create(null) as Record<string, string>, headers))[name] = text;
  }
  if (shown !== undefined) return shown;
  clean = { headers, secrets };
  return headers;
}

/** The body with a mask for each of the secrets, however it is written there; the same buffer if none is in it. */
export function withoutSecrets(body: Buffer, secrets: readonly string[]): Buffer {
  const text = body.toString("latin1");
  const shown = withoutSecretText(text, secrets);
  return shown === text ? body : Buffer.from(shown, "latin1");
}

/** If nothing starts an escape, a secret can only stand as it is: looking for it costs less than compiling its pattern. */
function withoutSecretText(text: string, secrets: readonly string[]): string {
  const isPlain = !/[\\%&]/.test(text);
  const possible = isPlain ? secrets.filter((secret) => !isAscii(secret) || text.includes(secret)) : secrets;
  return possible.length === 0 ? text : text.replace(patternOf(possible), mask);
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Matches the secrets in a text of one character per byte, each of their characters plain or escaped. */
function patternOf(secrets: readonly string[]): RegExp {
  const patterns = secrets.map((secret) => [...secret].map(characterPattern).join(""));
  return new RegExp(patterns.join("|"), "g");
}

/** A character in every way to write it: its UTF-8, JSON's escapes (also in JSON within JSON), percent signs, HTML's. */
function characterPattern(character: string): string {
  const bytes = Buffer.from(character);
  const code = character.codePointAt(0) ?? 0;
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  const ways = [
    escaped(bytes.toString("latin1")),
    ...(code > 0x7f && code <= 0xff ? [escaped(character)] : []),
    units.map((unit) => `\\\\+u${hexOf(unit, 4)}`).join(""),
    [...bytes].map((byte) => `%(?:25)*${hexOf(byte, 2)}`).join(""),
    `&#0*${code};`,
    `&#[xX]0*${hexOf(code, 1)};`,
    ...(/["\\/]/.test(character) ? [`\\\\+${escaped(character)}`] : []),
  ];
  return `(?:${ways.join("|")})`;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

function hexOf(value: number, digits: number): string {
  return value
    .toString(16)
    .padStart(digits, "0")
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

/** The secrets of the last request that carried nothing but its authorization: a walk asks with the same for every page. */
let last: { readonly headers: object; readonly authorization: string; readonly secrets: readonly string[] } | undefined;

/** What a request carried as a credential, in the forms in which a service may repeat it; the longest first. */
function secretsOf({ headers, body, secrets }: Parameters<typeof withoutEchoes>[0]): readonly string[] {
  const isAlone = body === undefined && secrets === undefined;
  if (isAlone && last?.headers === headers) return last.secrets;
  const authorization = headerOf(headers, "authorization") ?? "";
  if (!isAlone) return secretsIn({ authorization, body, secrets });
  const same = last?.authorization === authorization ? last.secrets : undefined;
  last = { headers, authorization, secrets: same ?? secretsIn({ authorization }) };
  return last.secrets;
}

interface Carried extends Pick<ExchangeRequest, "body" | "secrets"> {
  readonly authorization: string;
}

function secretsIn({ authorization, body, secrets = [] }: Carried): string[] {
  const [scheme = "", value = ""] = authorization.split(" ", 2);
  const found = [value, ...(/^basic$/i.test(scheme) ? passwordOf(value) : []), ...exchanged(body), ...secrets];
  return [...new Set(found)].filter(({ length }) => length >= shortestSecret).sort((a, b) => b.length - a.length);
}

/** The secret half of a Basic credential (§5.1 rule 1: the password, or the user name if that is empty). */
function passwordOf(value: string): string[] {
  const pair = Buffer.from(value, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  const secret = pair.slice(colon + 1) || pair.slice(0, Math.max(0, colon));
  // RFC 6749 §2.3.1: the halves of a client's Basic credential are form-encoded.
  return [secret, attemptCoding(() => decodeURIComponent(secret.replaceAll("+", " "))) ?? secret];
}

/** What cannot be coded so: half of a surrogate pair, a broken escape. */
function attemptCoding(code: () => string): string | undefined {
  try {
    return code();
  } catch {
    return undefined;
  }
}

/** A secret in the body, as the exchanges for tokens have it. */
function exchanged(body: string | Buffer | undefined): string[] {
  const text = body?.toString() ?? "";
  if (!text.startsWith("{")) return [new URLSearchParams(text).get("client_secret") ?? ""];
  try {
    const { secret } = JSON.parse(text) as { secret?: unknown };
    return typeof secret === "string" ? [secret] : [];
  } catch {
    return [];
  }
}

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
    if (lower === "authorization")
      shown[lower] = `${/^(?:basic|bearer)(?= )/i.exec(value ?? "")?.[0] ?? ""} <redacted>`.trim();
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
  // What cannot be read is masked.
  const plain = attemptCoding(() => decodeURIComponent(name)) ?? "secret";
  if (name === "page_token" || !/secret|token|pass|key|cred|auth|sig/i.test(plain)) return pair;
  return `${name}=…`;
}

/** Writes a request to the log. @returns the function that logs its end and passes it on */
export type ExchangeLog = (request: ExchangeRequest, address: LoggedAddress) => (exchange: Exchange) => Exchange;

type LoggedAddress = { readonly origin: string; readonly prefix: string };

interface LogOptions {
  readonly debug?: (event: DebugEvent) => void;
  readonly now: () => number;
  readonly userAgent: string;
}

/** The log of one transport: it counts the exchanges, and how often each request was tried. */
export function createExchangeLog({ debug, now, userAgent }: LogOptions): ExchangeLog {
  if (!debug) return () => (exchange) => exchange;
  let count = 0;
  const tries = new Tries();
  return (request, { origin, prefix }) => {
    const url = shownUrl(origin, prefix + request.path);
    const about = { id: ++count, attempt: tries.of(request), method: request.method, url };
    const startedAt = now();
    debug({ kind: "request", ...about, headers: harmless({ ...request.headers, "user-agent": userAgent }) });
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
 * How often the same request went out. What is sent again is a request that brought no final response (§8), and anything
 * under one idempotency key (§4.2); the same question asked again after its response is a first try.
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

/** What makes two requests the same. It may hold a secret: it is compared, and never shown. */
function sameness(request: ExchangeRequest): string {
  const { method, baseUrl, path, body = "" } = request;
  return JSON.stringify([method, baseUrl, path, keyOf(request) ?? null, body.toString("latin1")]);
}

function keyOf({ headers }: ExchangeRequest): string | undefined {
  return headerOf(headers, "idempotency-key");
}

function headerOf(headers: ExchangeRequest["headers"], wanted: string): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1];
}
