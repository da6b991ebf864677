// Formats and parses one-time secrets for files and commands.
import type { Entry } from "../journal/entry.ts";
import { flags } from "../next-step.ts";
import { Failure, invalidValue } from "../errors.ts";
import { type OneTimeSecret, type SecretFormat, type SecretOrigin, withoutLastNewline } from "./destination.ts";
import { tryParseJson } from "../json.ts";

export const secretFormats = ["raw", "line", "json", "json-string", "env"] as const satisfies readonly SecretFormat[];

const fieldNames = ["secret", "client_id", "id", "service_account", "profile", "region", "entry"] as const;
type Field = (typeof fieldNames)[number];

const templateMark = "template:";
const namesMark = "env:";

export function checkSecretFormat(text: string): SecretFormat {
  const word = secretFormats.find((format) => format === text);
  if (word !== undefined) return word;
  if (text.startsWith(templateMark)) return checkTemplate(text.slice(templateMark.length));
  throw invalidValue(flags.secretFormat, text, {
    hint: `Choose one of ${secretFormats.join(", ")} or template:<text>.`,
  });
}

function checkTemplate(text: string): SecretFormat {
  if (text.includes("{secret}")) return `${templateMark}${text}`;
  throw new Failure("usage", `The template of ${flags.secretFormat} has no {secret}: the secret would be lost.`, {
    hint: `Write it like ${flags.secretFormat} 'template:{"token":"{secret}"}'.`,
  });
}

/** Parses `NAME=field,…`. @throws Failure `usage` for an invalid pair, a repeated name, or if no field is the secret */
export function checkSecretNames(text: string): SecretFormat {
  const names = text.split(",").map((pair) => {
    const [, name = "", field = ""] = /^([A-Za-z_]\w*)=(\w+)$/.exec(pair.trim()) ?? [];
    if (!isField(field))
      throw invalidValue(flags.secretEnv, pair, {
        why: "it is not NAME=field",
        hint: `Use the fields ${fieldNames.join(", ")}: ${flags.secretEnv} CLIENT_ID=client_id,CLIENT_SECRET=secret.`,
      });
    return { name, field };
  });
  if (new Set(names.map(({ name }) => name)).size < names.length)
    throw new Failure("usage", `${flags.secretEnv} names a variable twice.`);
  if (!names.some(({ field }) => field === "secret"))
    throw new Failure("usage", `${flags.secretEnv} names no variable for the secret: it would be lost.`, {
      hint: `Write it like ${flags.secretEnv} CLIENT_SECRET=secret.`,
    });
  return `${namesMark}${names.map(({ name, field }) => `${name}=${field}`).join(",")}`;
}

function isField(text: string): text is Field {
  return fieldNames.some((name) => name === text);
}

function quoted(value: string): string {
  return /^[\w.+/=:@%,-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

function fieldsOf({ secret, id, clientId }: OneTimeSecret, origin: SecretOrigin): Readonly<Record<Field, string>> {
  const { entry, profile, region, serviceAccount } = origin;
  return { secret, client_id: clientId ?? "", id, service_account: serviceAccount ?? "", profile, region, entry };
}

function namesIn(as: SecretFormat, kind: OneTimeSecret["kind"]): string[][] {
  if (as.startsWith(namesMark))
    return as
      .slice(namesMark.length)
      .split(",")
      .map((pair) => pair.split("="));
  if (kind === "access_key") return [["INTEG_API_KEY", "secret"]];
  return [
    ["INTEG_CLIENT_ID", "client_id"],
    ["INTEG_CLIENT_SECRET", "secret"],
  ];
}

/**
 * `raw` and `json-string` end without a newline, a template as written, others with a newline. `json` has `client_id` and
 * `client_secret`, or `id` and `secret`; shells and dotenv readers accept `env`.
 * @throws Failure `failed` for a lone surrogate outside JSON
 */
export function renderSecret(secret: OneTimeSecret, as: SecretFormat, origin: SecretOrigin): string {
  const isJson = as === "json" || as === "json-string";
  if (!isJson && /\p{Cs}/u.test(secret.secret))
    throw new Failure("failed", "The secret contains half a character (a lone surrogate), which only JSON can write.", {
      hint: `Use ${flags.secretFormat} json.`,
    });
  if (as === "raw") return secret.secret;
  if (as === "line") return `${secret.secret}\n`;
  if (as === "json-string") return JSON.stringify(secret.secret);
  if (as === "json") return jsonLine(secret);
  const fields = fieldsOf(secret, origin);
  if (as.startsWith(templateMark))
    return as
      .slice(templateMark.length)
      .replaceAll(placeholder, (typed, name: string) => (isField(name) ? fields[name] : typed));
  return namesIn(as, secret.kind)
    .filter(([, field = ""]) => isField(field) && (fields[field] !== "" || as !== "env"))
    .map(([name, field = ""]) => `${name}=${isField(field) ? quoted(fields[field]) : ""}\n`)
    .join("");
}

const placeholder = /\{(\w+)\}/g;

function jsonLine({ kind, id, clientId, secret }: OneTimeSecret): string {
  const fields = kind === "oauth_client" ? { client_id: clientId ?? null, client_secret: secret } : { id, secret };
  return `${JSON.stringify(fields)}\n`;
}

export function originOf({ id, profile, region, request_text, operation }: Entry): SecretOrigin {
  if (operation !== "oauth_client.create") return { entry: id, profile, region };
  const request = JSON.parse(request_text) as { service_account_id: string };
  return { entry: id, profile, region, serviceAccount: request.service_account_id };
}

/** Adds the entry's ids, and makes a new receipt if the kept receipt lacks the secret at its top level. */
export function withEntryIds(kept: OneTimeSecret, entry: Pick<Entry, "resource_id" | "detail">): OneTimeSecret {
  const id = entry.resource_id ?? kept.id;
  const clientId = entry.detail.client_id ?? kept.clientId;
  const named = { ...kept, id, clientId };
  const field = secretFieldOf(kept);
  if (objectOf(kept.receipt)[field] === kept.secret) return named;
  const ids = kept.kind === "oauth_client" ? { client_id: clientId ?? null } : {};
  return { ...named, receipt: JSON.stringify({ id: id || null, ...ids, [field]: kept.secret }) };
}

/** @returns the field of the response that has the secret (§2.3, §2.4) */
export function secretFieldOf({ kind }: OneTimeSecret): "client_secret" | "secret" {
  return kind === "oauth_client" ? "client_secret" : "secret";
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  return Object(tryParseJson(text)) as Record<string, unknown>;
}

function isJson(text: string): boolean {
  return tryParseJson(text) !== undefined;
}

/** @param isCut true if the file was truncated after a sync: its text is complete even without an end mark */
export function isComplete(text: string, as: SecretFormat, isCut: boolean): boolean {
  if (text === "" || text.includes("\0")) return false;
  if (as === "raw" || as.startsWith(templateMark)) return isCut;
  if (as === "json-string") return isJson(text);
  if (!text.endsWith("\n")) return false;
  const lines = text.slice(0, -1).split("\n");
  const last = lines.at(-1) ?? "";
  if (as === "line") return lines.length === 1 && last !== "";
  if (as === "json") return lines.length === 1 && isJson(last);
  if (as === "env") return /^INTEG_(CLIENT_SECRET|API_KEY)=./.test(last);
  return isCut;
}

export function parseSecret(text: string, as: SecretFormat): string | undefined {
  // Editors add or remove a final newline.
  if (as === "raw" || as === "line") return withoutLastNewline(text);
  if (as === "json-string") {
    const found: unknown = JSON.parse(text);
    return typeof found === "string" ? found : undefined;
  }
  if (as === "json") {
    const fields: { client_secret?: unknown; secret?: unknown } = JSON.parse(text);
    const found = fields.client_secret ?? fields.secret;
    return typeof found === "string" ? found : undefined;
  }
  if (as.startsWith(templateMark)) return templatePattern(as.slice(templateMark.length)).exec(text)?.[1];
  const names = [...namesIn(as, "oauth_client"), ...namesIn(as, "access_key")].filter(
    ([, field]) => field === "secret",
  );
  const value = new RegExp(`^(?:${names.map(([name]) => name).join("|")})=(.*)$`, "m").exec(text)?.[1];
  return value?.startsWith("'") ? value.slice(1, -1).replaceAll(`'\\''`, "'") : value;
}

/** Matches a filled template; group 1 is the secret. */
function templatePattern(template: string): RegExp {
  let isFirst = true;
  const source = template
    .split(/(\{\w+\})/)
    .map((part) => {
      const name = part.slice(1, -1);
      if (!/^\{\w+\}$/.test(part) || !isField(name)) return part.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
      if (name !== "secret") return "[^]*?";
      if (!isFirst) return "\\1";
      isFirst = false;
      return "([^]+?)";
    })
    .join("");
  return new RegExp(`^${source}$`);
}
