// Maps each request of a case to the client call that sends it.
import type { Attempt } from "../../src/api/call/attempt.ts";
import type { Service } from "../../src/api/connect.ts";
import type { Pair } from "../../src/api/call/request.ts";
import type { Json, RequestStep } from "./case.ts";
import { expand, filled } from "./matching.ts";

type Operation =
  | "create client"
  | "get client"
  | "revoke client"
  | "entities"
  | "members"
  | "create key"
  | "list keys"
  | "rotate key"
  | "revoke key"
  | "search people"
  | "membership"
  | "specification"
  | "client token"
  | "key token"
  | "raw";

export interface Call {
  readonly operation: Operation;
  readonly send: (service: Service) => Promise<Attempt<unknown> | undefined>;
}

export interface FilledRequest {
  readonly method: string;
  readonly path: string;
  readonly pairs: readonly Pair[];
  readonly whole: string;
  readonly text: string | undefined;
  readonly body: Json | undefined;
  readonly key: string | undefined;
  readonly form: Readonly<Record<string, string>> | undefined;
  readonly as: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function fillRequest(step: RequestStep, names: Readonly<Record<string, string>>): FilledRequest {
  const [method, whole] = filled(step.request, names).split(" ") as [string, string];
  const [path, query = ""] = whole.split("?") as [string, string?];
  const body = step.body === undefined ? undefined : expand(step.body, names);
  const raw = step.raw === undefined ? undefined : filled(step.raw, names);
  const fill = (given: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [name, filled(value, names)]));
  return {
    method,
    path,
    pairs: [...new URLSearchParams(query)],
    whole,
    text: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
    body,
    key: step.key === undefined ? undefined : filled(step.key, names),
    form: step.form && fill(step.form),
    as: filled(step.as ?? "", names),
    headers: fill(step.headers ?? {}),
  };
}

/** @returns the call, or the reason why the client cannot send the request */
export function callOf(request: FilledRequest): Call | string {
  return tokenCall(request) ?? clientCall(request) ?? listCall(request) ?? legacyCall(request) ?? rawCall(request);
}

function tokenCall({ method, path, form, as, body }: FilledRequest): Call | string | undefined {
  if (path === "/api/v1/access-tokens" && method === "POST") {
    const { secret } = body as { secret: string };
    return { operation: "key token", send: (service) => service.tokens.exchangeAccessKey(secret) };
  }
  if (path !== "/oauth/token") return undefined;
  const [, user, password] = /^basic:([^:]*):(.*)$/.exec(as) ?? [];
  const clientId = user ?? form?.client_id;
  const clientSecret = password ?? form?.client_secret;
  if (form?.grant_type !== "client_credentials" || clientId === undefined || clientSecret === undefined)
    return "the client makes the one token request of RFC 6749 §4.4 and no other";
  return { operation: "client token", send: (service) => service.tokens.exchangeClient({ clientId, clientSecret }) };
}

function clientCall({ method, path, pairs, text, key, headers }: FilledRequest): Call | undefined {
  if (path === "/v1/oauth_clients" && method === "POST" && text !== undefined && key !== undefined)
    return Object.keys(headers).some((name) => name !== "Service-Version")
      ? undefined
      : { operation: "create client", send: (service) => service.oauthClients.create(text, key) };
  const id = /^\/v1\/oauth_clients\/([^/]+)$/.exec(path)?.[1];
  if (id === undefined || pairs.length > 0) return undefined;
  if (method === "GET") return { operation: "get client", send: (service) => service.oauthClients.get(id) };
  if (method === "DELETE") return { operation: "revoke client", send: (service) => service.oauthClients.revoke(id) };
  return undefined;
}

function listCall({ method, path, pairs }: FilledRequest): Call | undefined {
  const cohort = /^\/v1\/cohorts\/([^/%]+)\/members$/.exec(path)?.[1];
  if (method !== "GET" || (path !== "/v1/entities" && cohort === undefined)) return undefined;
  const given = new Map(pairs);
  if (given.size < pairs.length) return undefined;
  const limit = given.has("limit") ? Number(given.get("limit")) : undefined;
  const request = {
    limit,
    pageToken: given.get("page_token"),
    filters: pairs.filter(([name]) => name !== "limit" && name !== "page_token"),
  };
  return cohort === undefined
    ? { operation: "entities", send: (service) => service.entities.page(request) }
    : { operation: "members", send: (service) => service.cohorts.membersPage(cohort, request) };
}

function legacyCall(request: FilledRequest): Call | undefined {
  const { method, path, pairs, text = "" } = request;
  const version = /^\/v1-reference\/openapi(?:-v1|\/(.+))\.json$/.exec(path);
  if (version) return { operation: "specification", send: (service) => service.contract.published(version[1]) };
  if (path === "/api/v1/access-keys" && method === "POST")
    return { operation: "create key", send: (service) => service.accessKeys.create(text) };
  if (path === "/api/v1/access-keys" && method === "GET")
    return { operation: "list keys", send: (service) => service.accessKeys.list() };
  const [, id = "", rotate] = /^\/api\/v1\/access-keys\/([^/]+)(\/rotate)?$/.exec(path) ?? [];
  if (rotate !== undefined && request.text === undefined)
    return { operation: "rotate key", send: (service) => service.accessKeys.rotate(id) };
  if (id !== "" && rotate === undefined && method === "DELETE")
    return { operation: "revoke key", send: (service) => service.accessKeys.revoke(id) };
  if (path === "/api/v1/people/search" && pairs.length > 0)
    return { operation: "search people", send: (service) => service.people.search({ params: pairs }) };
  const person = /^\/api\/v1\/people\/([^/]+)\/membership$/.exec(path)?.[1];
  if (person !== undefined) return { operation: "membership", send: (service) => service.people.membership(person) };
  return undefined;
}

/** @returns the call with which `integ api` sends the request, or the reason why the client cannot send it */
export function rawCall({ method, whole, text, key, headers, path }: FilledRequest): Call | string {
  if (!/^\/(v1|v1-reference|api\/v1)\//.test(path)) return "not a path of the API: the client sends no other request";
  if (path.includes("%")) return "a broken escape: the client builds its paths itself";
  if (path === "/v1/oauth_clients" && key === undefined) return "the client creates nothing without an idempotency key";
  const given: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  for (const [name, value] of Object.entries(headers))
    if (name !== "Service-Version") given[name.toLowerCase()] = value;
  if ("authorization" in given) return "the profile chooses the credential";
  const request = { method: method as "GET", path: whole, headers: given, body: text };
  return { operation: "raw", send: (service) => service.raw.send(request) };
}
