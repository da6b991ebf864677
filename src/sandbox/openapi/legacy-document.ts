import { type Answer, type Call, jsonAnswer } from "../call.ts";
import {
  type JsonObject,
  answer,
  choice,
  exactly,
  jsonBody,
  noStore,
  opening,
  operationsOf,
  pathParameter,
  reference,
  schemaOf,
} from "./schemas.ts";
import { AccessKeyCreation, AccessKeyRotation, SecretExchange } from "../request-bodies.ts";
import * as schemas from "./schemas.ts";
import { issuerPath } from "../token-endpoint.ts";

const label = "2026-08-05";
const informationVersion = "1.0.0";

const organization: JsonObject = {
  name: "x-organization-id",
  in: "header",
  required: true,
  description: "The organization.",
  schema: { type: "string", format: "uuid" },
  ...choice("The document shows this header for the creation of keys; here every operation requires it."),
};

const keyId = pathParameter("id", "Id of the access key.");
const notShown = "Request and response are not shown.";
const dataOf = (name: string): JsonObject => exactly({ data: { type: "array", items: reference(name) } });
const aboutKeys = operationsOf("Access keys", "compatibility");
const aboutPeople = operationsOf("People", "compatibility");
const aboutTokens = operationsOf("Tokens", "ga");

const accessKeys: JsonObject = {
  post: aboutKeys({
    operationId: "createAccessKey",
    summary: "Create an API access key",
    parameters: [organization],
    requestBody: jsonBody(reference("CreateAccessKey")),
    success: [201, reference("CreateAccessKeyResponse")],
    headers: noStore,
    refusals: [400, 401, 403, 413, 415, 429, 500, 503],
  }),
  get: aboutKeys({
    operationId: "listAccessKeys",
    summary: "List API access keys, the newest first",
    parameters: [organization],
    success: [200, dataOf("AccessKey")],
    refusals: [400, 401, 403, 429, 500, 503],
    choice: notShown,
  }),
};

const rotation: JsonObject = {
  post: aboutKeys({
    operationId: "rotateAccessKey",
    summary: "Give an API access key a new secret",
    parameters: [organization, keyId],
    requestBody: jsonBody(schemaOf(AccessKeyRotation), false),
    success: [200, reference("CreateAccessKeyResponse")],
    headers: noStore,
    refusals: [400, 401, 403, 404, 409, 413, 415, 429, 500, 503],
    choice: `${notShown} The old secret and its tokens stop working immediately; a revoked or expired key is 409.`,
  }),
};

const revocation: JsonObject = {
  delete: aboutKeys({
    operationId: "revokeAccessKey",
    summary: "Revoke an API access key; safe to repeat",
    parameters: [organization, keyId],
    success: [200, reference("AccessKey")],
    refusals: [400, 401, 403, 404, 429, 500, 503],
    choice: notShown,
  }),
};

const exchange: JsonObject = {
  post: aboutKeys({
    operationId: "exchangeAccessKeySecret",
    summary: "Exchange the secret of an API access key for a bearer token",
    requestBody: jsonBody(reference("SecretExchange")),
    success: [200, schemas.accessToken],
    headers: noStore,
    refusals: [400, 401, 413, 415, 429, 500, 503],
    security: [],
    choice: "The document mentions the exchange, but does not show it.",
  }),
};

const people: JsonObject = {
  "/api/v1/people/search": {
    get: aboutPeople({
      operationId: "searchPeople",
      summary: "Search people by name or e-mail address",
      parameters: [
        organization,
        {
          name: "query",
          in: "query",
          required: true,
          description: "Part of a name or address.",
          schema: { type: "string", minLength: 1 },
        },
      ],
      success: [200, dataOf("Person")],
      refusals: [400, 401, 403, 429, 500, 503],
      choice: "Parameters and response are not shown. At most 50 people are found.",
    }),
  },
  "/api/v1/people/{personId}/membership": {
    get: aboutPeople({
      operationId: "getPersonMembership",
      summary: "Retrieve the membership of a person",
      parameters: [organization, pathParameter("personId", "Id of the person's entity.")],
      success: [200, reference("Membership")],
      refusals: [400, 401, 403, 404, 429, 500, 503],
      choice: "The response is not shown.",
    }),
  },
};

const components: JsonObject = {
  schemas: {
    AccessKey: schemas.accessKey,
    CreateAccessKey: { ...schemaOf(AccessKeyCreation), ...choice("expiresAt must be in the future.") },
    CreateAccessKeyResponse: schemas.createdAccessKey,
    SecretExchange: schemaOf(SecretExchange),
    Person: schemas.person,
    Membership: schemas.membership,
    Problem: { ...schemas.problem, ...choice("The legacy contract's errors are not shown; they are those of /v1.") },
  },
  securitySchemes: { accessToken: { type: "http", scheme: "bearer", bearerFormat: "access-token" } },
};

export function legacyDocument(baseUrl: string): JsonObject {
  return {
    ...opening({
      title: "Legacy compatibility API (sandbox)",
      version: informationVersion,
      description: `The contract labeled ${label}, as this sandbox implements it.`,
      baseUrl,
    }),
    tags: [
      { name: "Access keys", description: "API access keys." },
      { name: "People", description: "People of the organization." },
    ],
    security: [{ accessToken: [] }],
    paths: {
      "/api/v1/access-keys": accessKeys,
      "/api/v1/access-keys/{id}/rotate": rotation,
      "/api/v1/access-keys/{id}": revocation,
      "/api/v1/access-tokens": exchange,
      ...people,
    },
    components,
  };
}

/** A document of its own, because the organization's setup supplies the endpoint (§5.2). */
export function tokenDocument(baseUrl: string): JsonObject {
  const form = (properties: Record<string, JsonObject>): JsonObject => ({
    required: true,
    content: {
      "application/x-www-form-urlencoded": { schema: { type: "object", properties, required: ["grant_type"] } },
    },
  });
  const string: JsonObject = { type: "string" };
  const refused = (status: number): JsonObject => answer(status, schemas.tokenError, noStore);
  return {
    ...opening({
      title: "Token endpoint (sandbox)",
      version: informationVersion,
      description: "The client credentials grant of RFC 6749, section 4.4.",
      baseUrl,
    }),
    tags: [{ name: "Tokens", description: "Access tokens of OAuth clients." }],
    paths: {
      "/oauth/token": {
        post: aboutTokens({
          operationId: "issueToken",
          summary: "Exchange client credentials for an access token",
          requestBody: form({
            grant_type: string,
            scope: string,
            audience: string,
            client_id: string,
            client_secret: string,
          }),
          success: [200, schemas.token],
          headers: noStore,
          refusals: [404, 429, 500, 503],
          responses: { "400": refused(400), "401": refused(401) },
          security: [{ clientSecretBasic: [] }, {}],
          choice:
            "The exchange is that of RFC 6749, section 4.4, with client_secret_basic or client_secret_post. " +
            "The audience of another service is invalid_target; unknown parameters are ignored.",
        }),
      },
      [issuerPath]: {
        get: aboutTokens({
          operationId: "getIssuer",
          summary: "Metadata of the issuer of the tokens (RFC 8414)",
          success: [200, schemas.issuer],
          refusals: [400, 404, 429, 500, 503],
          security: [{}],
        }),
      },
    },
    components: {
      schemas: { Problem: schemas.problem },
      securitySchemes: { clientSecretBasic: { type: "http", scheme: "basic" } },
    },
  };
}

/** @assumed the address `/api/v1-reference/openapi.json` (§4.5 shows addresses of `/v1` only) */
export function publishLegacy(call: Call): Answer {
  return jsonAnswer(200, legacyDocument(call.baseUrl));
}

/** @assumed `/oauth/openapi.json` exists (§5.2 rule 7 "not shown") */
export function publishTokenEndpoint(call: Call): Answer {
  return jsonAnswer(200, tokenDocument(call.baseUrl));
}
