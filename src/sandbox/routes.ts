// Owns: which operation a method and a path are, what it takes, and who may call it. The heavy ones load on first use.
// Must not know: sockets, the state file.
import type { Call, Handler, LegacyCaller, V1Caller } from "./call.ts";
import { listEntities, listMembers } from "./entities.ts";
import { getOAuthClient, retrievalChanges, revokeOAuthClient } from "./oauth-clients.ts";
import { notFound, Problem } from "./problem.ts";
import { issueToken } from "./token-endpoint.ts";

interface RouteFacts {
  readonly method: string;
  /** Path with `{name}` parts. */
  readonly path: string;
  readonly query?: readonly string[];
  /** Whether handling may change the state. */
  readonly changes?: boolean | ((call: Call) => boolean);
}

export type Route = RouteFacts &
  (
    | { readonly scheme: "v1"; readonly open: () => Handler<V1Caller> | Promise<Handler<V1Caller>> }
    | { readonly scheme: "legacy"; readonly open: () => Promise<Handler<LegacyCaller>> }
    | { readonly scheme: "none"; readonly open: () => Handler<void> | Promise<Handler<void>> }
  );

const accessKeys = () => import("./access-keys.ts");
const documents = () => import("./openapi/documents.ts");

export const tokenPath = "/oauth/token";
export const accessTokenPath = "/api/v1/access-tokens";

const v1: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/entities",
    query: ["limit", "page_token", "type"],
    scheme: "v1",
    open: () => listEntities,
  },
  {
    method: "GET",
    path: "/v1/cohorts/{id}/members",
    query: ["limit", "page_token"],
    scheme: "v1",
    open: () => listMembers,
  },
  {
    method: "POST",
    path: "/v1/oauth_clients",
    changes: true,
    scheme: "v1",
    open: async () => (await import("./oauth-client-creation.ts")).createOAuthClient,
  },
  {
    method: "GET",
    path: "/v1/oauth_clients/{id}",
    changes: retrievalChanges,
    scheme: "v1",
    open: () => getOAuthClient,
  },
  { method: "DELETE", path: "/v1/oauth_clients/{id}", changes: true, scheme: "v1", open: () => revokeOAuthClient },
  { method: "POST", path: tokenPath, scheme: "none", open: () => issueToken },
];

const legacy: readonly Route[] = [
  {
    method: "POST",
    path: "/api/v1/access-keys",
    changes: true,
    scheme: "legacy",
    open: async () => (await accessKeys()).createAccessKey,
  },
  {
    method: "GET",
    path: "/api/v1/access-keys",
    scheme: "legacy",
    open: async () => (await accessKeys()).listAccessKeys,
  },
  {
    method: "POST",
    path: "/api/v1/access-keys/{id}/rotate",
    changes: true,
    scheme: "legacy",
    open: async () => (await accessKeys()).rotateAccessKey,
  },
  {
    method: "DELETE",
    path: "/api/v1/access-keys/{id}",
    changes: true,
    scheme: "legacy",
    open: async () => (await accessKeys()).revokeAccessKey,
  },
  {
    method: "POST",
    path: accessTokenPath,
    changes: true,
    scheme: "none",
    open: async () => (await accessKeys()).exchangeSecret,
  },
  {
    method: "GET",
    path: "/api/v1/people/search",
    query: ["query"],
    scheme: "legacy",
    open: async () => (await import("./people.ts")).searchPeople,
  },
  {
    method: "GET",
    path: "/api/v1/people/{personId}/membership",
    scheme: "legacy",
    open: async () => (await import("./people.ts")).getMembership,
  },
];

const published: readonly Route[] = [
  {
    method: "GET",
    path: "/v1-reference/openapi-v1.json",
    scheme: "none",
    open: async () => (await documents()).publishCurrent,
  },
  {
    method: "GET",
    path: "/v1-reference/openapi/{file}",
    scheme: "none",
    open: async () => (await documents()).publishVersion,
  },
  {
    method: "GET",
    path: "/api/v1-reference/openapi.json",
    scheme: "none",
    open: async () => (await documents()).publishLegacy,
  },
  {
    method: "GET",
    path: "/oauth/openapi.json",
    scheme: "none",
    open: async () => (await documents()).publishTokenEndpoint,
  },
];

export const routes: readonly Route[] = [...v1, ...legacy, ...published];

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

/** The operation of a request. @throws Problem 404, or 405 with `Allow` */
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
