import * as z from "zod/mini";

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

/** Marks a choice of the sandbox, on which clients must not depend. */
export function choice(sentence: string): JsonObject {
  return { "x-sandbox-choice": sentence };
}

export function reference(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}

const text: JsonObject = { type: "string" };
const timestamp: JsonObject = {
  type: "string",
  format: "date-time",
  pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
};
const timestampOrNull: JsonObject = { ...timestamp, type: ["string", "null"] };

export function exactly(properties: Record<string, JsonObject>, optional: readonly string[] = []): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

/** The list envelope of §2.1, with its consistency rule. */
export function listOf(row: JsonObject): JsonObject {
  return {
    ...exactly({
      object: { const: "list" },
      data: { type: "array", items: row },
      next_page_token: { type: ["string", "null"], minLength: 1 },
      has_more: { type: "boolean" },
    }),
    anyOf: [
      { properties: { has_more: { const: true }, next_page_token: { type: "string" } } },
      { properties: { has_more: { const: false }, next_page_token: { type: "null" } } },
    ],
  };
}

export const entity: JsonObject = exactly({
  id: text,
  object: { const: "entity" },
  type: {
    ...text,
    enum: ["person", "organization"],
    ...choice("The API document lists only the type person; one entity in eight is an organization."),
  },
  status: {
    ...text,
    enum: ["active", "inactive"],
    ...choice("The API document lists only the status active; some entities are inactive."),
  },
  display_name: text,
  email: { ...text, format: "email" },
  created_at: timestamp,
  updated_at: timestamp,
});

const clientFields: Record<string, JsonObject> = {
  object: { const: "oauth_client" },
  id: { ...text, description: "Platform resource id. Not the client id of the token exchange." },
  service_account_id: text,
  client_id: { type: ["string", "null"], description: "Null while creation is pending." },
  scopes: { type: "array", items: text, minItems: 1, maxItems: 100 },
  status: { ...text, enum: ["active", "pending", "revoked", "disabled", "expired"] },
  created_at: timestamp,
};

/** The client of §2.3, as a retrieval or revocation returns it. */
export const oauthClient: JsonObject = exactly(clientFields);

/** The client of §2.3, as a creation or its replay returns it. */
export const oauthClientReceipt: JsonObject = exactly({
  ...clientFields,
  client_secret: {
    type: ["string", "null"],
    description: "Present only in the response of the request that completes creation.",
  },
});

export const problem: JsonObject = exactly(
  {
    type: { ...text, format: "uri" },
    title: text,
    status: { type: "integer" },
    detail: text,
    code: {
      ...text,
      ...choice(
        "The API document lists only invalid_request and idempotency_key_reuse; other codes are the sandbox's.",
      ),
    },
    param: { ...text, description: "Name of the offending parameter, when one applies." },
    request_id: text,
    doc_url: { ...text, format: "uri" },
    retryable: { type: "boolean" },
  },
  ["param"],
);

const accessKeyFields: Record<string, JsonObject> = {
  id: text,
  name: { ...text, minLength: 1, maxLength: 255 },
  keyType: { ...text, enum: ["user_bound", "service_account"] },
  boundEmail: { ...text, ...choice("For a service_account key, boundEmail is an address of the sandbox.") },
  status: { ...text, enum: ["active", "revoked"] },
  lastUsedAt: { ...timestampOrNull, ...choice("lastUsedAt is the time of the last exchange of the key's secret.") },
  expiresAt: { ...timestampOrNull, ...choice("An expired key keeps the status active and no longer works.") },
  createdAt: timestamp,
  createdByUserId: text,
  scopes: { type: "array", items: { ...text, enum: ["*", "push-ingest:*"] }, minItems: 1 },
};

export const accessKey: JsonObject = {
  ...exactly(accessKeyFields),
  ...choice("The document shows the creation's response only; other responses have the same fields except `secret`."),
};

export const createdAccessKey: JsonObject = exactly({
  ...accessKeyFields,
  secret: { ...text, description: "One-time secret value; cannot be retrieved after creation or rotation." },
});

export const person: JsonObject = {
  ...exactly({ id: text, displayName: text, email: { ...text, format: "email" }, status: text }),
  ...choice("Fields of person records are not shown."),
};

export const membership: JsonObject = {
  ...exactly({
    personId: text,
    organizationId: { ...text, format: "uuid" },
    status: text,
    role: text,
    joinedAt: timestamp,
    cohortIds: { type: "array", items: text },
  }),
  ...choice("Fields of a membership are not shown."),
};

/** The response of RFC 6749 §5.1, without a refresh token (§5.2 rule 5). */
export const token: JsonObject = exactly({
  access_token: text,
  token_type: { const: "Bearer" },
  expires_in: { type: "integer", minimum: 1 },
  scope: text,
});

const texts: JsonObject = { type: "array", items: text };

/** The issuer's metadata (RFC 8414 §2). */
export const issuer: JsonObject = exactly({
  issuer: { ...text, format: "uri" },
  token_endpoint: { ...text, format: "uri" },
  token_endpoint_auth_methods_supported: texts,
  grant_types_supported: texts,
  response_types_supported: texts,
});

/** The errors of RFC 6749 §5.2 and RFC 8707 §2. */
export const tokenError: JsonObject = exactly({
  error: {
    ...text,
    enum: ["invalid_request", "invalid_client", "unsupported_grant_type", "invalid_scope", "invalid_target"],
  },
  error_description: text,
});

export const accessToken: JsonObject = exactly({
  access_token: text,
  token_type: { const: "Bearer" },
  expires_in: { type: "integer", minimum: 1 },
});

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly JsonObject[];
  readonly requestBody?: JsonObject;
  readonly success: readonly [status: number, schema: JsonObject];
  /** Statuses whose response is the error object. */
  readonly refusals: readonly number[];
  /** Further responses; one of the same status replaces the generated response. */
  readonly responses?: JsonObject;
  readonly security?: Json;
  readonly choice?: string;
  readonly headers?: JsonObject;
}

const meanings: Readonly<Record<number, string>> = {
  200: "Done.",
  201: "Created, or a receipt of what was created before.",
  400: "The request is not valid.",
  401: "The credential is not accepted.",
  403: "A permission or entitlement is missing.",
  404: "Not found.",
  409: "The current state does not allow it.",
  413: "The body is too large.",
  415: "The body's media type is not taken.",
  429: "Too many requests.",
  500: "Internal error; the outcome may be unknown.",
  503: "Not available; the outcome may be unknown.",
};

const requestId: JsonObject = { description: "Identifies the request.", schema: { type: "string" } };
export const noStore: JsonObject = {
  "Cache-Control": { description: "Not to be stored.", schema: { const: "no-store" } },
};
const refusalHeaders: Readonly<Record<number, JsonObject>> = {
  401: { "WWW-Authenticate": { description: "Schemes that are taken.", schema: { type: "string" } } },
  429: {
    "Retry-After": {
      description: "When to retry: seconds, or an HTTP date.",
      schema: { type: "string" },
      ...choice("Seconds, unless a fault asks for a date."),
    },
  },
};

export function answer(status: number, schema: JsonObject, headers: JsonObject = {}): JsonObject {
  return {
    description: meanings[status]!,
    headers: { "Request-Id": requestId, ...headers },
    content: { "application/json": { schema } },
  };
}

export function operationsOf(tag: string, stage: "compatibility" | "ga"): (of: Operation) => JsonObject {
  return (of) => operation(of, { tag, stage });
}

function operation(of: Operation, { tag, stage }: { tag: string; stage: string }): JsonObject {
  const [status, schema] = of.success;
  const responses: Record<string, Json> = { [status]: answer(status, schema, of.headers) };
  for (const refusal of of.refusals)
    responses[refusal] = answer(refusal, reference("Problem"), refusalHeaders[refusal] ?? {});
  return {
    operationId: of.operationId,
    summary: of.summary,
    tags: [tag],
    "x-lifecycle-stage": stage,
    ...(of.choice === undefined ? {} : choice(of.choice)),
    ...(of.parameters === undefined ? {} : { parameters: of.parameters }),
    ...(of.requestBody === undefined ? {} : { requestBody: of.requestBody }),
    responses: { ...responses, ...of.responses },
    ...(of.security === undefined ? {} : { security: of.security }),
  };
}

export function pathParameter(name: string, description: string): JsonObject {
  return { name, in: "path", required: true, description, schema: { type: "string" } };
}

export function jsonBody(schema: JsonObject, isRequired = true): JsonObject {
  return { required: isRequired, content: { "application/json": { schema } } };
}

export function opening(given: {
  title: string;
  version: string;
  description: string;
  baseUrl: string;
  facts?: JsonObject;
}): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: given.title,
      version: given.version,
      description: given.description,
      license: { name: "MIT", identifier: "MIT" },
      ...given.facts,
    },
    servers: [{ url: given.baseUrl, description: "This sandbox." }],
  };
}

export function schemaOf(schema: z.ZodMiniType): JsonObject {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema);
  return JSON.parse(JSON.stringify(rest));
}
