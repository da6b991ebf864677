import type { documentChanges } from "../fault.ts";
import type { Json, JsonObject } from "./schemas.ts";

type Change = (typeof documentChanges)[number];

type Tree = { [key: string]: Tree } & Record<string, Json>;

const at = (tree: Tree, ...keys: readonly string[]): Tree => keys.reduce((part, key) => part[key] ?? {}, tree);
const firstOf = (tree: Tree): string => Object.keys(tree)[0] ?? "";

function resourceOf(document: Tree): Tree {
  const schemas = at(document, "components", "schemas");
  return schemas.Entity ?? schemas.AccessKey ?? at(schemas, firstOf(schemas));
}

const changes: Readonly<Record<Change, (document: Tree) => void>> = {
  "extra-field": (document) =>
    void Object.assign(at(resourceOf(document), "properties"), { nickname: { type: ["string", "null"] } }),
  "extra-operation": (document) => {
    const paths = at(document, "paths");
    const last = at(paths, Object.keys(paths).at(-1) ?? "");
    const copy: Tree = JSON.parse(JSON.stringify(at(last, firstOf(last))));
    paths["/v1/reports"] = { get: { ...copy, operationId: "listReports", parameters: [] } } as unknown as Tree;
  },
  "no-field": (document) => {
    const resource = resourceOf(document);
    delete at(resource, "properties").status;
    const { required } = resource as JsonObject;
    if (Array.isArray(required)) Object.assign(resource, { required: required.filter((name) => name !== "status") });
  },
  "no-operation": (document) => {
    const paths = at(document, "paths");
    delete paths[paths["/v1/oauth_clients/{id}"] ? "/v1/oauth_clients/{id}" : firstOf(paths)];
  },
  "no-scheme": (document) => {
    const schemes = at(document, "components", "securitySchemes");
    const removed = firstOf(schemes);
    delete schemes[removed];
    const security = ((document as JsonObject).security ?? []) as JsonObject[];
    Object.assign(document, { security: security.filter((one) => !(removed in one)) });
  },
  "other-type": (document) =>
    void Object.assign(at(resourceOf(document), "properties"), { id: { type: "integer", minimum: 1 } }),
  "other-stage": (document) => {
    for (const path of Object.values(at(document, "paths")))
      for (const operation of Object.values(path as Tree)) Object.assign(operation, { "x-lifecycle-stage": "preview" });
  },
  "other-version": (document) => void Object.assign(at(document, "info"), { "x-contract-version": "2027-01-01" }),
};

export function changedDocument(body: string, change: Change): string {
  if (!body.startsWith('{"openapi"')) return body;
  const document: Tree = JSON.parse(body);
  changes[change](document);
  return JSON.stringify(document);
}
