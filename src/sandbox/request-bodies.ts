import * as z from "zod/mini";
import { type Call, Problem, headerOf, invalidRequest } from "./call.ts";

const maxScopes = 100;
const maxScopeCharacters = 4096;
/** §4.2 allows no wildcards, so this is a scope of RFC 6749 §3.3 without `*`. */
const explicitScope = /^[\x21\x23-\x29\x2B-\x5B\x5D-\x7E]+$/;

/** @assumed the combined length excludes separators (§8 does not say) */
export const OAuthClientCreation = z.strictObject({
  service_account_id: z.string().check(z.minLength(1)),
  scopes: z
    .array(z.string().check(z.regex(explicitScope, "they must be explicit permissions without wildcards or spaces")))
    .check(
      z.minLength(1),
      z.maxLength(maxScopes),
      z.refine((scopes) => scopes.join("").length <= maxScopeCharacters, {
        error: `they must not be longer than ${maxScopeCharacters} characters together`,
      }),
    ),
});

/**
 * @assumed the service refuses a time without seconds or offset, an empty list of scopes and more than two scopes (§4.4
 * shows no refusal); milliseconds are optional, and a repeated scope counts once
 */
export const AccessKeyCreation = z.strictObject({
  name: z.string().check(z.minLength(1), z.maxLength(255)),
  expiresAt: z.optional(z.nullable(z.iso.datetime({ offset: true }))),
  keyType: z.optional(z.nullable(z.enum(["user_bound", "service_account"]))),
  scopes: z.optional(z.array(z.enum(["*", "push-ingest:*"])).check(z.minLength(1), z.maxLength(2))),
});

/** @assumed the body is empty, or an empty object (§4.4 "not shown") */
export const AccessKeyRotation = z.strictObject({});

/** @assumed the whole body (§5.3 rule 2 "not shown") */
export const SecretExchange = z.strictObject({ secret: z.string().check(z.minLength(1), z.maxLength(1024)) });

export function mediaTypeOf(call: Call): string {
  return (headerOf(call, "content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}

function requireMediaType(call: Call, mediaType: string): void {
  const encoding = headerOf(call, "content-encoding");
  if (mediaTypeOf(call) === mediaType && (encoding === undefined || encoding === "identity")) return;
  throw new Problem(415, "unsupported_media_type", `The body must be sent as ${mediaType}, without content encoding.`);
}

function textOf(call: Call): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(call.body);
  } catch {
    throw invalidRequest("The body is not UTF-8.");
  }
}

function parseJson(call: Call): unknown {
  try {
    return JSON.parse(textOf(call));
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw invalidRequest("The body is not JSON.");
  }
}

export function readBody<Schema extends z.ZodMiniType>(call: Call, schema: Schema): z.output<Schema> {
  requireMediaType(call, "application/json");
  const read = schema.safeParse(parseJson(call), { reportInput: true });
  if (read.success) return read.data;
  const issue = read.error.issues[0]!;
  if (issue.code === "unrecognized_keys") throw invalidRequest(`The body has an unknown field.`, issue.keys[0]);
  const param = issue.path[0] === undefined ? undefined : String(issue.path[0]);
  throw invalidRequest(
    param === undefined ? "The body must be a JSON object." : `${param}: ${sentenceOf(issue)}`,
    param,
  );
}

/** zod/mini has no messages. */
function sentenceOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `${issue.input === undefined ? "it must be given, as" : "it must be"} ${issue.expected}.`;
    case "too_small":
      return `it must have at least ${counted(issue.minimum, issue.origin)}.`;
    case "too_big":
      return `it must have at most ${counted(issue.maximum, issue.origin)}.`;
    case "invalid_value":
      return `it must be one of ${issue.values.join(", ")}.`;
    case "invalid_format":
      return issue.format === "regex" ? `${issue.message}.` : "it must be an ISO 8601 timestamp with its offset.";
    default:
      return `${issue.message}.`;
  }
}

function counted(count: number | bigint, origin: string): string {
  const unit = origin === "array" ? "item" : "character";
  return `${count} ${unit}${Number(count) === 1 ? "" : "s"}`;
}

export function isEmptyBody(call: Call): boolean {
  return call.body.length === 0;
}
