import { type Call, type Handler, type LegacyCaller, Problem, type V1Caller, notFound } from "./call.ts";
import { listEntities, listMembers } from "./entities.ts";
import { getOAuthClient, retrievalChanges, revokeOAuthClient } from "./oauth-clients.ts";
import { issueToken, issuerPath, publishIssuer, tokenPath } from "./token-endpoint.ts";

interface RouteFacts {
  readonly method: string;
  readonly path: string;
  readonly query?: readonly string[];
  readonly changes?: boolean | ((call: Call) => boolean);
}

export type Route = RouteFacts &
  (
    | { readonly scheme: "v1"; readonly open: () => Handler<V1Caller> | Promise<Handler<V1Caller>> }
    | { readonly scheme: "legacy"; readonly open: () => Promise<Handler<LegacyCaller>> }
    | { readonly scheme: "none"; readonly open: () => Handler<void> | Promise<Handler<void>> }
  );

export const accessTokenPath = "/api/v1/access-tokens";

const keys = <Name extends keyof typeof import("./access-keys.ts")>(name: Name) => {
  return async () => (await import("./access-keys.ts"))[name];
};
const people = <Name extends keyof typeof import("./people.ts")>(name: Name) => {
  return async () => (await import("./people.ts"))[name];
};
const creation = async () => (await import("./oauth-client-creation.ts")).createOAuthClient;
const v1Reference = <Name extends "publishCurrent" | "publishVersion">(name: Name) => {
  return async () => (await import("./openapi/v1-document.ts"))[name];
};
const legacyReference = <Name extends "publishLegacy" | "publishTokenEndpoint">(name: Name) => {
  return async () => (await import("./openapi/legacy-document.ts"))[name];
};

const client = "/v1/oauth_clients/{id}";
const key = "/api/v1/access-keys/{id}";
const listQuery = ["limit", "page_token"];

export const routes: readonly Route[] = [
  { method: "GET", path: "/v1/entities", query: [...listQuery, "type"], scheme: "v1", open: () => listEntities },
  { method: "GET", path: "/v1/cohorts/{id}/members", query: listQuery, scheme: "v1", open: () => listMembers },
  { method: "POST", path: "/v1/oauth_clients", changes: true, scheme: "v1", open: creation },
  { method: "GET", path: client, changes: retrievalChanges, scheme: "v1", open: () => getOAuthClient },
  { method: "DELETE", path: client, changes: true, scheme: "v1", open: () => revokeOAuthClient },
  { method: "POST", path: tokenPath, scheme: "none", open: () => issueToken },
  { method: "GET", path: issuerPath, scheme: "none", open: () => publishIssuer },

  { method: "POST", path: "/api/v1/access-keys", changes: true, scheme: "legacy", open: keys("createAccessKey") },
  { method: "GET", path: "/api/v1/access-keys", scheme: "legacy", open: keys("listAccessKeys") },
  { method: "POST", path: `${key}/rotate`, changes: true, scheme: "legacy", open: keys("rotateAccessKey") },
  { method: "DELETE", path: key, changes: true, scheme: "legacy", open: keys("revokeAccessKey") },
  { method: "POST", path: accessTokenPath, changes: true, scheme: "none", open: keys("exchangeSecret") },
  { method: "GET", path: "/api/v1/people/search", query: ["query"], scheme: "legacy", open: people("searchPeople") },
  { method: "GET", path: "/api/v1/people/{personId}/membership", scheme: "legacy", open: people("getMembership") },

  { method: "GET", path: "/v1-reference/openapi-v1.json", scheme: "none", open: v1Reference("publishCurrent") },
  { method: "GET", path: "/v1-reference/openapi/{file}", scheme: "none", open: v1Reference("publishVersion") },
  { method: "GET", path: "/api/v1-reference/openapi.json", scheme: "none", open: legacyReference("publishLegacy") },
  { method: "GET", path: "/oauth/openapi.json", scheme: "none", open: legacyReference("publishTokenEndpoint") },
];

function partsOf(template: string, path: string): Record<string, string> | undefined {
  const wanted = template.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const parts: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index]!;
    if (part.startsWith("{") && value !== "") parts[part.slice(1, -1)] = decoded(value);
    else if (part !== value) return undefined;
  }
  return parts;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw notFound("The path is not well formed.");
  }
}

export function routeOf(method: string, path: string): { route: Route; parts: Record<string, string> } {
  const matches = routes.flatMap((route) => {
    const parts = partsOf(route.path, path);
    return parts ? [{ route, parts }] : [];
  });
  const match = matches.find((candidate) => candidate.route.method === method);
  if (match) return match;
  if (matches.length === 0) throw notFound("This service has no such path.");
  const allowed = [...new Set(matches.map((candidate) => candidate.route.method))].join(", ");
  throw new Problem(405, "method_not_allowed", `This path takes ${allowed} only.`, { headers: { Allow: allowed } });
}
