// Drift, told from additions (§9.3): each thing that is relied on, taken away once.
import { describe, expect, test } from "vitest";
import { compareContract } from "../../../src/api/contract.ts";

interface Json {
  // oxlint-disable-next-line no-explicit-any
  [key: string]: any;
}

function published(): Json {
  const limit = { $ref: "#/components/parameters/limit" };
  const token = { name: "page_token", in: "query", schema: { type: "string" } };
  const list = { "x-lifecycle-stage": "ga", parameters: [limit, token], responses: { 200: {} } };
  const one = { "x-lifecycle-stage": "preview", responses: { 200: {} } };
  return {
    openapi: "3.1.0",
    info: { "x-contract-version": "2026-07-01" },
    components: {
      parameters: { limit: { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 500 } } },
      schemas: {
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
          responses: { 201: {}, 409: {} },
        },
      },
      "/v1/oauth_clients/{client_id}": { get: { ...one }, delete: { ...one } },
      "/v1/entities": { get: { ...list, parameters: [limit, token, { name: "type", in: "query" }] } },
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
  test("nothing to tell of what is spoken", () => expect(compareContract(published())).toEqual([]));

  test.each<[string, (document: Json) => void, string]>([
    ["version", (d) => (d.info["x-contract-version"] = "2027-01-01"), "contract version"],
    ["no version", (d) => delete d.info, "contract version"],
    ["operation gone", (d) => delete d.paths["/v1/entities"], "GET /v1/entities"],
    ["method gone", (d) => delete d.paths["/v1/oauth_clients/{client_id}"].delete, "DELETE /v1/oauth_clients/{}"],
    ["parameter gone", (d) => d.paths["/v1/entities"].get.parameters.pop(), "GET /v1/entities"],
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
    ["field gone", (d) => delete d.components.schemas.Creation.properties.scopes, "POST /v1/oauth_clients"],
    ["success", (d) => (d.paths["/v1/oauth_clients"].post.responses = { 200: {} }), "POST /v1/oauth_clients"],
    ["no stage", (d) => delete d.paths["/v1/entities"].get["x-lifecycle-stage"], "GET /v1/entities"],
    ["odd stage", (d) => (d.paths["/v1/entities"].get["x-lifecycle-stage"] = "sunset"), "GET /v1/entities"],
    ["legacy stage", (d) => (d.paths["/v1/entities"].get["x-lifecycle-stage"] = "compatibility"), "GET /v1/entities"],
    ["deprecated", (d) => (d.paths["/v1/entities"].get.deprecated = true), "GET /v1/entities"],
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

  test.each<[string, (document: Json) => void, number]>([
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
  ])("a new %s is no drift", (_, change, count) => {
    const findings = changed(change);
    expect(findings.filter(({ severity }) => severity === "drift")).toEqual([]);
    expect(findings).toHaveLength(count);
  });

  test("paths that are relative to the server's", () => {
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
  ])("%j is drift, and no crash", (document) =>
    expect(compareContract(document).some(({ severity }) => severity === "drift")).toBe(true),
  );

  test("references in a circle come to an end", () => {
    const findings = changed((d) => (d.components.schemas.Creation = { $ref: "#/components/schemas/Creation" }));
    expect(findings.some(({ severity }) => severity === "drift")).toBe(true);
  });
});
