// How a one-time secret is written for a file or a command (`--secret-format`), and read again. Pure.
import { Failure } from "../errors.ts";
import type { OneTimeSecret, SecretFormat } from "./destination.ts";

/** @throws Failure `usage` for anything but raw, json, env; absent is raw */
export function checkSecretFormat(text: string | undefined): SecretFormat {
  if (text === undefined) return "raw";
  if (text === "raw" || text === "json" || text === "env") return text;
  throw new Failure("usage", `--secret-format is raw, json or env, not "${text}".`);
}

/** What every reader of such files takes for one word stays bare; the rest is quoted as the shell wants it. */
function quoted(value: string): string {
  return /^[\w.+/=:@%,-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

function envLines({ kind, secret, clientId }: OneTimeSecret): string {
  if (kind === "access_key") return `INTEG_API_KEY=${quoted(secret)}\n`;
  const id = clientId === undefined ? "" : `INTEG_CLIENT_ID=${quoted(clientId)}\n`;
  return `${id}INTEG_CLIENT_SECRET=${quoted(secret)}\n`;
}

/**
 * The secret as a text that ends with a newline: `raw` the secret alone; `json` `{"client_id","client_secret"}` for an
 * OAuth client and `{"id","secret"}` for an access key; `env` lines that both a shell and a dotenv reader take.
 */
export function renderSecret(secret: OneTimeSecret, format: SecretFormat): string {
  if (format !== "json" && /\p{Cs}/u.test(secret.secret))
    throw new Failure("failed", "The secret holds half a character (a lone surrogate), which only JSON can write.", {
      hint: "--secret-format json",
    });
  if (format === "raw") return `${secret.secret}\n`;
  if (format === "env") return envLines(secret);
  const fields =
    secret.kind === "oauth_client"
      ? { client_id: secret.clientId ?? null, client_secret: secret.secret }
      : { id: secret.id, secret: secret.secret };
  return `${JSON.stringify(fields)}\n`;
}

function isJsonLine(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/** True where a text found after a crash is all that `renderSecret` wrote, and not its beginning. */
export function isWhole(text: string, format: SecretFormat): boolean {
  if (!text.endsWith("\n") || text.includes("\0")) return false;
  const lines = text.slice(0, -1).split("\n");
  const last = lines.at(-1) ?? "";
  if (format === "raw") return lines.length === 1 && last !== "";
  if (format === "json") return lines.length === 1 && isJsonLine(last);
  return /^INTEG_(CLIENT_SECRET|API_KEY)=./.test(last);
}

/** The secret in a whole text; undefined if a person has changed its form. */
export function parseSecret(text: string, format: SecretFormat): string | undefined {
  if (format === "raw") return text.slice(0, -1);
  if (format === "json") {
    const fields: { client_secret?: unknown; secret?: unknown } = JSON.parse(text);
    const found = fields.client_secret ?? fields.secret;
    return typeof found === "string" ? found : undefined;
  }
  const value = /^INTEG_(?:CLIENT_SECRET|API_KEY)=(.*)$/m.exec(text)?.[1];
  return value?.startsWith("'") ? value.slice(1, -1).replaceAll(`'\\''`, "'") : value;
}
