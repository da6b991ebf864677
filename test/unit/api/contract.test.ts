// Drift and additions (§9 rule 3). For each documented part that integ uses, one test removes that part.
import { describe, expect, test } from "vitest";
import { compareContract } from "../../../src/api/contract.ts";

interface Json {
  // oxlint-disable-next-line no-explicit-any
  [key: string]: any;
}

function published(): Json {
  const limit = { $ref: "#/components/parameters/limit" };
  const token = { name: "page_token", in: "query", schema: { type: "string" } };
  const answer = (name: string): Json => ({
    content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } },
  });
  const list = {
    "x-lifecycle-stage": "ga",
    parameters: [limit, token],
    responses: { 200: { $ref: "#/components/responses/Members" } },
  };
  const one = { "x-lifecycle-stage": "preview", responses: { 200: answer("Client") } };
  const text = { type: "string" };
  const client = {
    object: { const: "oauth_client" },
    id: text,
    service_account_id: text,
    client_id: { type: ["string", "null"] },
    scopes: { type: "array", items: text },
    status: { type: "string", enum: ["active", "pending", "revoked", "disabled", "expired"] },
    created_at: text,
  };
  const page = {
    object: { const: "list" },
    data: { type: "array", items: { type: "object" } },
    next_page_token: { anyOf: [text, { type: "null" }] },
    has_more: { type: "boolean" },
  };
  const entityFields = ["id", "object", "type", "status", "display_name", "email", "created_at", "updated_at"];
  return {
    openapi: "3.1.0",
    security: [{ key: [] }, { oauth: [] }],
    info: { "x-contract-version": "2026-07-01" },
    components: {
      securitySchemes: { key: { type: "http", scheme: "basic" }, oauth: { type: "oauth2" } },
      responses: { Members: answer("Page") },
      parameters: { limit: { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 500 } } },
      schemas: {
        Client: { type: "object", required: Object.keys(client), properties: client },
        Receipt: {
          allOf: [
            { $ref: "#/components/schemas/Client" },
            { properties: { client_secret: { type: "string", nullable: true } } },
          ],
        },
        Entity: { type: "object", properties: Object.fromEntries(entityFields.map((field) => [field, { ...text }])) },
        Page: { type: "object", required: Object.keys(page), properties: page },
        Entities: {
          type: "object",
          required: Object.keys(page),
          properties: { ...page, data: { type: "array", items: { $ref: "#/components/schemas/Entity" } } },
        },
        Creation: {
          type: "object",
          required: ["service_account_id", "scopes"],
          properties: { service_account_id: {}, scopes: {} },
        },
      },
    },
    paths: {
      "/v1/oauth_clients": {
        parameters: [{ name: "Service-Version", in: "header" }],
        post: {
          "x-lifecycle-stage": "ga",
          parameters: [{ name: "Idempotency-Key", in: "header", required: true }],
          requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Creation" } } } },
          responses: { 201: answer("Receipt"), 409: {} },
        },
      },
      "/v1/oauth_clients/{client_id}": { get: { ...one }, delete: { ...one } },
      "/v1/entities": {
        get: {
          ...list,
          parameters: [limit, token, { name: "type", in: "query" }],
          responses: { 200: answer("Entities") },
        },
      },
      "/v1/cohorts/{id}/members": { get: { ...list } },
    },
  };
}

const changed = (change: (document: Json) => void): ReturnType<typeof compareContract> => {
  const document = published();
  change(document);
  return compareContract(document);
};

describe("compareContract", () => {
  test("reports nothing for the contract that integ uses", () => expect(compareContract(published())).toEqual([]));

  test.each<[string, (document: Json) => void, string]>([
    ["version", (d) => (d.info["x-contract-version"] = "2027-01-01"), "contract version"],
    ["no version", (d) => delete d.info, "contract version"],
    ["operation removed", (d) => delete d.paths["/v1/entities"], "GET /v1/entities"],
    ["method removed", (d) => delete d.paths["/v1/oauth_clients/{client_id}"].delete, "DELETE /v1/oauth_clients/{}"],
    ["parameter removed", (d) => d.paths["/v1/entities"].get.parameters.pop(), "GET /v1/entities"],
    ["parameter required", (d) => (d.components.parameters.limit.required = true), "GET /v1/entities"],
    [
      "key not required",
      (d) => delete d.paths["/v1/oauth_clients"].post.parameters[0].required,
      "POST /v1/oauth_clients",
    ],
    [
      "new parameter required",
      (d) => d.paths["/v1/entities"].get.parameters.push({ name: "n", in: "query", required: true }),
      "GET /v1/entities",
    ],
    ["limit", (d) => (d.components.parameters.limit.schema.maximum = 100), "GET /v1/entities"],
    ["field required", (d) => d.components.schemas.Creation.required.push("name"), "POST /v1/oauth_clients"],
    ["field removed", (d) => delete d.components.schemas.Creation.properties.scopes, "POST /v1/oauth_clients"],
    ["success", (d) => (d.paths["/v1/oauth_clients"].post.responses = { 200: {} }), "POST /v1/oauth_clients"],
    ["no stage", (d) => delete d.paths["/v1/entities"].get["x-lifecycle-stage"], "GET /v1/entities"],
    ["odd stage", (d) => (d.paths["/v1/entities"].get["x-lifecycle-stage"] = "sunset"), "GET /v1/entities"],
    [
      "legacy operation at another stage",
      (d) => (d.paths["/api/v1/people/search"] = { get: { "x-lifecycle-stage": "ga" } }),
      "GET /api/v1/people/search",
    ],
  ])("%s is drift", (_, change, subject) => {
    const findings = changed(change);
    expect(
      findings.some((finding) => finding.severity === "drift" && finding.subject === subject),
      JSON.stringify(findings),
    ).toBe(true);
  });

  const schemas = (d: Json): Json => d.components.schemas;
  test.each<[string, (document: Json) => void, string]>([
    ["client without id", (d) => delete schemas(d).Client.properties.id, "GET /v1/oauth_clients/{}"],
    ["revoked client without status", (d) => delete schemas(d).Client.properties.status, "DELETE /v1/oauth_clients/{}"],
    ["receipt without its secret", (d) => schemas(d).Receipt.allOf.pop(), "POST /v1/oauth_clients"],
    ["receipt without client id", (d) => delete schemas(d).Client.properties.client_id, "POST /v1/oauth_clients"],
    ["entity without id", (d) => delete schemas(d).Entity.properties.id, "GET /v1/entities"],
    ["page without has_more", (d) => delete schemas(d).Page.properties.has_more, "GET /v1/cohorts/{}/members"],
    ["page with optional data", (d) => schemas(d).Page.required.splice(1, 1), "GET /v1/cohorts/{}/members"],
    ["scopes as a text", (d) => (schemas(d).Client.properties.scopes = { type: "string" }), "GET /v1/oauth_clients/{}"],
    [
      "scopes as numbers",
      (d) => (schemas(d).Client.properties.scopes.items = { type: "integer" }),
      "POST /v1/oauth_clients",
    ],
    [
      "an id that may be null",
      (d) => (schemas(d).Client.properties.id = { type: ["string", "null"] }),
      "GET /v1/oauth_clients/{}",
    ],
    ["an id that is a number", (d) => (schemas(d).Entity.properties.id = { type: "integer" }), "GET /v1/entities"],
    [
      "a token that is a number",
      (d) => (schemas(d).Page.properties.next_page_token = { oneOf: [{ type: "integer" }, { type: "null" }] }),
      "GET /v1/cohorts/{}/members",
    ],
    ["rows that are one object", (d) => (schemas(d).Entities.properties.data = { type: "object" }), "GET /v1/entities"],
    ["another object", (d) => (schemas(d).Client.properties.object = { const: "client" }), "GET /v1/oauth_clients/{}"],
    ["another status", (d) => schemas(d).Client.properties.status.enum.push("paused"), "POST /v1/oauth_clients"],
    [
      "a response that is not JSON",
      (d) => (d.components.responses.Members.content = { "text/csv": {} }),
      "GET /v1/cohorts/{}/members",
    ],
    ["no authentication", (d) => delete d.security, "GET /v1/entities"],
    ["no credential", (d) => (d.paths["/v1/entities"].get.security = []), "GET /v1/entities"],
    ["an optional credential alone", (d) => (d.paths["/v1/entities"].get.security = [{}]), "GET /v1/entities"],
    ["the scheme missing", (d) => delete d.components.securitySchemes.key, "GET /v1/oauth_clients/{}"],
    ["Basic missing from the requirements", (d) => d.security.shift(), "GET /v1/entities"],
    ["Basic with something more", (d) => (d.security = [{ key: [], oauth: [] }]), "POST /v1/oauth_clients"],
    ["Basic become digest", (d) => (d.components.securitySchemes.key.scheme = "digest"), "GET /v1/entities"],
  ])("in responses and authentication: %s is drift", (_, change, subject) => {
    const findings = changed(change).filter(({ severity }) => severity === "drift");
    expect(findings.map((finding) => finding.subject)).toContain(subject);
  });

  test("accepts a document that names only Basic, as the API document does (§4.1)", () =>
    expect(changed((d) => d.security.pop())).toEqual([]));

  // §9 rule 2 allows each stage; the consequences of a deprecation are not shown (§9 rule 7).
  test.each<[string, (operation: Json) => void, string]>([
    ["at the stage compatibility", (one) => (one["x-lifecycle-stage"] = "compatibility"), 'lifecycle stage "compat'],
    ["deprecated", (one) => (one.deprecated = true), "is deprecated"],
  ])("an operation that is %s is a notice", (_, change, detail) =>
    expect(changed((d) => change(d.paths["/v1/entities"].get))).toEqual([
      { severity: "notice", subject: "GET /v1/entities", detail: expect.stringContaining(detail) },
    ]),
  );

  describe("a schema with several parts", () => {
    const rows = (d: Json, ...parts: Json[]): Json =>
      (d.components.schemas.Entities = { allOf: [{ $ref: "#/components/schemas/Page" }, ...parts] });
    const entity = { $ref: "#/components/schemas/Entity" };

    test.each<[string, (document: Json) => void]>([
      ["the rows of a page", (d) => rows(d, { properties: { data: { items: entity } } })],
      [
        "and their type",
        (d) => rows(d, { properties: { data: { type: "array", items: entity } } }, { description: "x" }),
      ],
      [
        "a type that another part narrows",
        (d) => (schemas(d).Client.properties.id = { allOf: [{ type: ["string", "null"] }, { type: "string" }] }),
      ],
      [
        "values that another part narrows",
        (d) =>
          (schemas(d).Client.properties.status = {
            allOf: [{ type: "string", enum: ["active", "pending", "paused"] }, { enum: ["active", "pending"] }],
          }),
      ],
      [
        "the body of a request",
        (d) => (schemas(d).Creation = { allOf: [{ ...schemas(d).Creation, required: [] }, { required: ["scopes"] }] }),
      ],
    ])("is the combination of its parts: %s", (_, change) => expect(changed(change)).toEqual([]));

    test.each<[string, (document: Json) => void]>([
      ["rows without an id", (d) => rows(d, { properties: { data: { items: { properties: { object: {} } } } } })],
      [
        "values of one form",
        (d) => (schemas(d).Client.properties.status = { oneOf: [{ enum: ["x"] }, { type: "null" }] }),
      ],
      [
        "required by a part within a part",
        (d) => (schemas(d).Creation = { allOf: [{ allOf: [{ required: ["name"] }] }, schemas(d).Creation] }),
      ],
    ])("is drift as in a single schema: %s", (_, change) =>
      expect(changed(change).filter(({ severity }) => severity === "drift")).not.toEqual([]),
    );

    test("with many recursive references is compared in finite time", () => {
      const circle = Array.from({ length: 50 }, () => ({ $ref: "#/components/schemas/Entity" }));
      changed((d) => Object.assign(schemas(d).Entity, { allOf: circle, oneOf: circle }));
    });
  });

  test.each([
    ["2026-10-01", "2026-10-01", ["is 2026-10-01, and integ supports 2026-07-01"]],
    ["2026-07-01", "2026-10-01", ["is 2026-07-01, and 2026-10-01 was asked for"]],
    ["2026-07-01", "2026-07-01", []],
  ])("reports a document of %s in place of %s", (version, askedVersion, details) => {
    const document = published();
    document.info["x-contract-version"] = version;
    expect(compareContract(document, { askedVersion }).map(({ detail }) => detail)).toEqual(details);
  });

  test.each<[string, (document: Json) => void, number]>([
    ["field of a response", (d) => (schemas(d).Entity.properties.phone = { type: "string" }), 1],
    ["authentication method", (d) => d.security.push({ other: [] }), 0],
    ["client id that is never null", (d) => (schemas(d).Client.properties.client_id = { type: "string" }), 0],
    ["error", (d) => (d.paths["/v1/entities"].get.responses[418] = {}), 0],
    ["operation", (d) => (d.paths["/v1/people"] = { get: { "x-lifecycle-stage": "ga", responses: {} } }), 1],
    ["optional parameter", (d) => d.paths["/v1/entities"].get.parameters.push({ name: "status", in: "query" }), 1],
    ["optional field", (d) => (d.components.schemas.Creation.properties.label = {}), 1],
    ["stage ga to preview", (d) => (d.paths["/v1/entities"].get["x-lifecycle-stage"] = "preview"), 0],
    [
      "legacy operation",
      (d) => (d.paths["/api/v1/people/search"] = { get: { "x-lifecycle-stage": "compatibility" } }),
      0,
    ],
    ["description", (d) => (d.info.description = "x"), 0],
  ])("a new %s is not drift", (_, change, count) => {
    const findings = changed(change);
    expect(findings.filter(({ severity }) => severity === "drift")).toEqual([]);
    expect(findings).toHaveLength(count);
  });

  test("accepts paths relative to the server's", () => {
    const document = published();
    document.servers = [{ url: "https://api.example.com/v1/" }];
    document.paths = Object.fromEntries(
      Object.entries(document.paths as Json).map(([path, item]) => [path.slice(3), item]),
    );
    expect(compareContract(document)).toEqual([]);
  });

  test.each([
    null,
    5,
    "x",
    [],
    {},
    { paths: [] },
    { paths: { "/v1/entities": null } },
    { paths: { "/v1/entities": { get: { parameters: [null, { $ref: "#/paths" }, { $ref: "#" }] } } } },
  ])("%j is drift, and not a crash", (document) =>
    expect(compareContract(document).some(({ severity }) => severity === "drift")).toBe(true),
  );

  test("accepts circular references", () => {
    const findings = changed((d) => (d.components.schemas.Creation = { $ref: "#/components/schemas/Creation" }));
    expect(findings.some(({ severity }) => severity === "drift")).toBe(true);
  });
});
