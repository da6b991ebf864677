import { type Answer, type Call, jsonAnswer, notFound } from "../call.ts";
import {
  type JsonObject,
  choice,
  jsonBody,
  listOf,
  noStore,
  opening,
  operationsOf,
  pathParameter,
  reference,
  schemaOf,
} from "./schemas.ts";
import { OAuthClientCreation } from "../request-bodies.ts";
import * as schemas from "./schemas.ts";

const serviceVersion: JsonObject = {
  name: "Service-Version",
  in: "header",
  description: "Contract version; the default is the one assigned to the service account.",
  schema: { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$" },
  // @assumed §9 rule 1 names the supported version, but no response to other versions
  ...choice("A version that is not supported is 400 invalid_request."),
};

const idempotencyKey: JsonObject = {
  name: "Idempotency-Key",
  in: "header",
  required: true,
  description: "Chosen and stored by the caller before the first send.",
  schema: { type: "string", pattern: "^[\\x21-\\x7E]{1,255}$" },
  // @assumed §4.2 gives the rule for a key, but no response to one that breaks it
  ...choice("A missing or invalid idempotency key is 400 invalid_request, with the header's name as param."),
};

const listParameters: readonly JsonObject[] = [
  serviceVersion,
  {
    name: "limit",
    in: "query",
    description: "Rows of a page.",
    schema: { type: "integer", minimum: 1, maximum: 500, default: 25 },
  },
  {
    name: "page_token",
    in: "query",
    description:
      "The next_page_token of the previous response; bound to organization, service account, version and filters.",
    schema: { type: "string", minLength: 1 },
  },
];

const type: JsonObject = {
  name: "type",
  in: "query",
  description: "Keeps entities of this type.",
  schema: { type: "string", minLength: 1 },
  ...choice("A type that no entity has gives an empty list."),
};

const aboutClients = operationsOf("OAuth clients", "ga");
const aboutLists = operationsOf("Lists", "ga");
const clientId = pathParameter("id", "Platform resource id of the client.");

const oauthClients: JsonObject = {
  post: aboutClients({
    operationId: "createOAuthClient",
    summary: "Create an OAuth client, or recover the receipt of its creation",
    parameters: [serviceVersion, idempotencyKey],
    requestBody: jsonBody(reference("OAuthClientCreation")),
    success: [201, reference("OAuthClientReceipt")],
    headers: noStore,
    refusals: [400, 401, 403, 404, 409, 413, 415, 429, 500, 503],
    choice:
      "A later GET completes a pending creation; its secret is then never shown. " +
      "A target account that does not exist is 404. The same key with another management principal or contract version is " +
      "409 idempotency_key_reuse, as with another body; each organization has its own keys. " +
      "A creation that is refused because of its target account uses up its idempotency key.",
  }),
};

const oauthClient: JsonObject = {
  get: aboutClients({
    operationId: "getOAuthClient",
    summary: "Retrieve an OAuth client",
    parameters: [serviceVersion, clientId],
    success: [200, reference("OAuthClient")],
    headers: noStore,
    refusals: [400, 401, 403, 404, 429, 500, 503],
    choice: "Retrieval needs service_account:manage, like creation.",
  }),
  delete: aboutClients({
    operationId: "revokeOAuthClient",
    summary: "Revoke an OAuth client; safe to repeat",
    parameters: [serviceVersion, clientId],
    success: [200, reference("OAuthClient")],
    headers: noStore,
    refusals: [400, 401, 403, 404, 429, 500, 503],
    choice:
      "Revocation needs service_account:manage. Disabled and expired clients can be revoked too. " +
      "Remote cleanup is confirmed immediately, unless a fault changes that.",
  }),
};

const paths: JsonObject = {
  "/v1/oauth_clients": oauthClients,
  "/v1/oauth_clients/{id}": oauthClient,
  "/v1/entities": {
    get: aboutLists({
      operationId: "listEntities",
      summary: "List entities",
      parameters: [...listParameters, type],
      success: [200, reference("EntityList")],
      refusals: [400, 401, 403, 429, 500, 503],
    }),
  },
  "/v1/cohorts/{id}/members": {
    get: aboutLists({
      operationId: "listCohortMembers",
      summary: "List the members of a cohort, at most 50 a page",
      parameters: [...listParameters, pathParameter("id", "Id of the cohort.")],
      success: [200, reference("EntityList")],
      refusals: [400, 401, 403, 404, 429, 500, 503],
      choice: "Listing members needs entity:read; each row is an entity.",
    }),
  },
};

const components = (tokenUrl: string): JsonObject => ({
  schemas: {
    Entity: schemas.entity,
    EntityList: listOf(reference("Entity")),
    OAuthClient: schemas.oauthClient,
    OAuthClientReceipt: schemas.oauthClientReceipt,
    OAuthClientCreation: {
      ...schemaOf(OAuthClientCreation),
      description: "All scopes together have at most 4,096 characters.",
      // @assumed §8 gives limits, but no response to a body beyond the limits; §4.2 gives none to an unknown field
      ...choice(
        "The length of all scopes excludes separators; scopes are a set; an unknown scope is a permission that no account has. " +
          "An unknown field and a body beyond the limits are 400 invalid_request.",
      ),
    },
    Problem: schemas.problem,
  },
  securitySchemes: {
    apiKey: {
      type: "http",
      scheme: "basic",
      description: "User apikey with the key as password, or the key alone as user.",
      ...choice(
        "The secret of an access key is also an API key. A key with only push-ingest:* has no /v1 permissions.",
      ),
    },
    oauth: {
      type: "oauth2",
      description: "Optional. The grant represents a service account.",
      // @assumed §5.2 rule 7 does not show how a token is used; §4.1 names only Basic
      ...choice(
        "A token is sent as Authorization: Bearer, and has the permissions that both client and service account have.",
      ),
      flows: { clientCredentials: { tokenUrl, scopes: {} } },
    },
  },
});

export function v1Document(given: { version: string; baseUrl: string; tokenUrl: string }): JsonObject {
  return {
    ...opening({
      title: "Public Integration API (sandbox)",
      version: given.version,
      description: "What this sandbox implements at /v1. x-sandbox-choice marks what the API document does not show.",
      baseUrl: given.baseUrl,
      facts: { "x-contract-version": given.version },
    }),
    tags: [
      { name: "OAuth clients", description: "Client credentials of service accounts." },
      {
        name: "Lists",
        description: "Entities and members of cohorts.",
        // @assumed §9 rule 2 names three stages and §7 the statuses, but not which operations have them
        ...choice(
          "Every operation of /v1 is at stage ga. 401 is a credential that is not accepted, 403 a missing permission or a " +
            "disabled account, 404 a resource that does not exist or belongs to another organization.",
        ),
      },
    ],
    security: [{ apiKey: [] }, { oauth: [] }],
    paths,
    components: components(given.tokenUrl),
  };
}

function documentOf(call: Call, version: string): Answer {
  const { baseUrl } = call;
  return jsonAnswer(200, v1Document({ version, baseUrl, tokenUrl: `${baseUrl}/oauth/token` }));
}

export function publishCurrent(call: Call): Answer {
  return documentOf(call, call.contractVersions[0]!);
}

export function publishVersion(call: Call): Answer {
  const version = /^(.*)\.json$/.exec(call.parts.file!)?.[1] ?? "";
  if (!call.contractVersions.includes(version)) throw notFound("No specification of this version is published.");
  return documentOf(call, version);
}
