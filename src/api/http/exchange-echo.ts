// Owns: taking back out of an answer what the request carried as a credential: a gateway that says what it heard would
// else put it into an error, the journal's `last_error` and the debug log (Security 5; journal.md promise 6).
// Must not know: where credentials come from, what the answer means.
import type { Exchange, ExchangeRequest, Headers } from "./exchange.ts";

/** Stands where a credential stood. */
const mask = "[secret]";
/** A shorter text is a word that stands anywhere: taking it out would only spoil the answer. */
const shortestSecret = 8;

/** The answer, its headers and the body of an error (status 400 and above) without the request's credentials. */
export function withoutEchoes(request: Pick<ExchangeRequest, "headers" | "body">, exchange: Exchange): Exchange {
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
  return answer.status < 400
    ? { ...answer, headers }
    : { ...answer, headers, body: withoutSecrets(answer.body, secrets) };
}

function withoutSecretHeaders(headers: Headers, secrets: readonly string[]): Headers {
  const shown: Record<string, string | undefined> = Object.assign(Object.create(null), headers);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) shown[name] = without(value, secrets);
  return shown;
}

/** The body with a mask for each of the secrets; the same buffer where none is in it. */
export function withoutSecrets(body: Buffer, secrets: readonly string[]): Buffer {
  const text = body.toString("latin1");
  const shown = without(
    text,
    secrets.map((secret) => Buffer.from(secret).toString("latin1")),
  );
  return shown === text ? body : Buffer.from(shown, "latin1");
}

function without(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, mask), text);
}

/** What a request carried as a credential, in the forms in which it may be said back; the longest first. */
function secretsOf({ headers, body }: Pick<ExchangeRequest, "headers" | "body">): string[] {
  const authorization = Object.entries(headers).find(([name]) => name.toLowerCase() === "authorization")?.[1] ?? "";
  const [scheme = "", value = ""] = authorization.split(" ", 2);
  const found = [value, ...(/^basic$/i.test(scheme) ? passwordOf(value) : []), ...exchanged(body)];
  const forms = found.flatMap((secret) => [secret, encodedLeniently(secret)]);
  return [...new Set(forms)].filter(({ length }) => length >= shortestSecret).sort((a, b) => b.length - a.length);
}

/** The secret half of a Basic credential (§5.1 rule 1: the password, or the user name where that is empty). */
function passwordOf(value: string): string[] {
  const pair = Buffer.from(value, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  const secret = pair.slice(colon + 1) || pair.slice(0, Math.max(0, colon));
  return [secret, decodedLeniently(secret)];
}

/** RFC 6749 §2.3.1: the halves of a client's Basic credential are form-encoded. */
function decodedLeniently(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

function encodedLeniently(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A secret in the body, as the exchanges for tokens have it. */
function exchanged(body: string | Buffer | undefined): string[] {
  if (typeof body !== "string") return [];
  if (!body.startsWith("{")) return [new URLSearchParams(body).get("client_secret") ?? ""];
  try {
    const { secret } = JSON.parse(body) as { secret?: unknown };
    return typeof secret === "string" ? [secret] : [];
  } catch {
    return [];
  }
}
