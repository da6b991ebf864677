// Owns: what operations of all documents are put together from: responses, headers, parameters.
// Must not know: a single operation.
import { choice, type Json, type JsonObject, reference } from "./schemas.ts";

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  readonly stage: "preview" | "compatibility" | "ga";
  readonly parameters?: readonly JsonObject[];
  readonly requestBody?: JsonObject;
  /** Status of success and the answer's schema. */
  readonly success: readonly [status: number, schema: JsonObject];
  /** Statuses of refusal, each with the error object of §7. */
  readonly refusals: readonly number[];
  /** Further responses, taking the place of those above. */
  readonly responses?: JsonObject;
  readonly security?: Json;
  /** Said where the document does not show the operation. */
  readonly choice?: string;
  /** Headers of the successful answer beside Request-Id. */
  readonly headers?: JsonObject;
}

const meanings: Readonly<Record<number, string>> = {
  200: "Done.",
  201: "Created, or a receipt of what was created before.",
  400: "The request is not well made.",
  401: "The credential is not accepted.",
  403: "A permission or entitlement is missing.",
  404: "Nothing here has this address.",
  409: "The state of things does not allow it.",
  413: "The body is too large.",
  415: "The body's media type is not taken.",
  429: "Too many requests.",
  500: "Something broke inside; the outcome may be unknown.",
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

/** The operation object of OpenAPI 3.1. */
export function operation(of: Operation): JsonObject {
  const [status, schema] = of.success;
  const responses: Record<string, Json> = { [status]: answer(status, schema, of.headers) };
  for (const refusal of of.refusals)
    responses[refusal] = answer(refusal, reference("Problem"), refusalHeaders[refusal] ?? {});
  return {
    operationId: of.operationId,
    summary: of.summary,
    tags: [of.tag],
    "x-lifecycle-stage": of.stage,
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

/** A JSON body; `schema` comes from the same source that checks requests. */
export function jsonBody(schema: JsonObject, isRequired = true): JsonObject {
  return { required: isRequired, content: { "application/json": { schema } } };
}

/** What every document begins with. `facts` are further keys of `info`. */
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
