// What a person types to ask for what a case asks for: the command, what it reads, and as whom. Knows nothing of src/.
import type { Asked } from "./client-call.ts";

type Names = Readonly<Record<string, string>>;

export interface Typed {
  readonly words: readonly string[];
  readonly input?: string;
  /** False for `api`: the command of the noun looks at what was typed before it sends anything. */
  readonly noun: boolean;
}

/** The words, or why there are none. */
export function wordsOf(asked: Asked): Typed | string {
  const { path } = asked;
  if (path === "/oauth/token") return tokenWords(asked);
  return createWords(asked) ?? clientWords(asked) ?? listWords(asked) ?? legacyWords(asked) ?? apiWords(asked);
}

function noun(...words: string[]): Typed {
  return { words, noun: true };
}

function tokenWords({ form, as, text, method }: Asked): Typed | string {
  const [, user, password] = /^basic:([^:]*):(.*)$/.exec(as) ?? [];
  const { grant_type, client_id = user, client_secret = password, scope, ...rest } = form ?? {};
  const twice = password !== undefined && form?.client_secret !== undefined;
  const odd = Object.keys(rest).length > 0 || text !== undefined || method !== "POST" || twice;
  if (odd || grant_type !== "client_credentials" || client_id === undefined || client_secret === undefined)
    return "oauth-clients token makes the one request of RFC 6749 §4.4";
  const scopes = scope?.split(" ").map((one) => `--scope=${one}`) ?? [];
  const words = ["oauth-clients", "token", "--client-id", client_id, "--client-secret-stdin", ...scopes];
  return { ...noun(...words), input: client_secret };
}

function createWords({ method, path, body, key, headers }: Asked): Typed | undefined {
  if (method !== "POST" || path !== "/v1/oauth_clients" || key === undefined || !isRecord(body)) return undefined;
  const { service_account_id: account, scopes, ...rest } = body;
  const plain = Object.keys(headers).every((name) => name === "Service-Version") && Object.keys(rest).length === 0;
  if (!plain || typeof account !== "string" || !isTexts(scopes) || scopes.length === 0) return undefined;
  const words = ["oauth-clients", "create", `--service-account=${account}`, `--idempotency-key=${key}`, "--wait=0s"];
  return noun(...words, ...scopes.map((scope) => `--scope=${scope}`));
}

function clientWords({ method, path, pairs }: Asked): Typed | undefined {
  const id = /^\/v1\/oauth_clients\/([^/]+)$/.exec(path)?.[1];
  if (id === undefined || pairs.length > 0) return undefined;
  if (method === "GET") return noun("oauth-clients", "get", id);
  return method === "DELETE" ? noun("oauth-clients", "revoke", id, "--yes") : undefined;
}

function listWords({ method, path, pairs }: Asked): Typed | undefined {
  const cohort = /^\/v1\/cohorts\/([^/%]+)\/members$/.exec(path)?.[1];
  if (method !== "GET" || (path !== "/v1/entities" && cohort === undefined)) return undefined;
  if (new Map(pairs).size < pairs.length) return undefined;
  const flags = pairs.map(([name, value]) => {
    if (name === "limit" || name === "page_token") return `--${name.replace("_", "-")}=${value}`;
    return name === "type" && cohort === undefined ? `--type=${value}` : `--filter=${name}=${value}`;
  });
  return cohort === undefined ? noun("entities", "list", ...flags) : noun("cohorts", "members", cohort, ...flags);
}

function legacyWords({ method, path, pairs, body, text }: Asked): Typed | undefined {
  const version = /^\/v1-reference\/openapi(?:-v1|\/(.+))\.json$/.exec(path);
  if (version) return noun("spec", "show", ...(version[1] === undefined ? [] : [`--contract-version=${version[1]}`]));
  if (path === "/api/v1/access-keys") return method === "GET" ? noun("keys", "list") : keyWords(body);
  const [, id = "", rotate] = /^\/api\/v1\/access-keys\/([^/]+)(\/rotate)?$/.exec(path) ?? [];
  if (rotate !== undefined && text === undefined) return noun("keys", "rotate", id, "--yes");
  if (id !== "" && method === "DELETE") return noun("keys", "revoke", id, "--yes");
  const person = /^\/api\/v1\/people\/([^/]+)\/membership$/.exec(path)?.[1];
  if (person !== undefined) return noun("people", "membership", person);
  if (path !== "/api/v1/people/search") return undefined;
  const params = pairs.map(([name, value]) => (name === "query" ? value : `--param=${name}=${value}`));
  return noun("people", "search", ...params);
}

const keyFlags: Readonly<Record<string, string>> = { name: "name", expiresAt: "expires-at", keyType: "type" };

function keyWords(body: unknown): Typed | undefined {
  if (!isRecord(body) || typeof body.name !== "string") return undefined;
  const words: string[] = [];
  for (const [field, value] of Object.entries(body)) {
    if (field === "scopes" && isTexts(value)) words.push(...value.map((scope) => `--scope=${scope}`));
    else if (typeof value === "string" && keyFlags[field]) words.push(`--${keyFlags[field]}=${value}`);
    else return undefined;
  }
  return noun("keys", "create", ...words);
}

/** `integ api`: any request of the contracts. */
export function apiWords({ method, whole, text, key, headers }: Asked): Typed | string {
  if (!/^\/(v1|v1-reference|api\/v1)\//.test(whole)) return "integ api goes to no other path";
  if (whole.includes("%ZZ")) return "integ api takes no broken escape";
  const own = ["Service-Version", "x-organization-id"];
  const given = Object.entries(headers).filter(([name]) => !own.includes(name));
  if (given.some(([name]) => name === "Authorization")) return "who asks is the profile's matter";
  const all = key === undefined ? given : [["Idempotency-Key", key], ...given];
  const lines = all.flatMap(([name, value]) => ["-H", `${name!}: ${value}`]);
  const words = ["api", whole, "-X", method, ...lines, ...(text === undefined ? [] : ["--input", "-"])];
  return { words, ...(text === undefined ? {} : { input: text }), noun: false };
}

/** Who asks, as the environment says it, or why nobody can ask so. */
export function environmentOf(asked: Asked, given: { names: Names; region: string }): Record<string, string> | string {
  const { names, region } = given;
  const organization = asked.headers["x-organization-id"];
  const env = {
    INTEG_REGION: region,
    INTEG_BASE_URL: names[`${region}.base_url`]!,
    INTEG_ORGANIZATION_ID: organization ?? names[`${region}.organization_id`]!,
    INTEG_TOKEN_ENDPOINT: names[`${region}.token_endpoint`]!,
    INTEG_API_KEY: names.api_key!,
    INTEG_ACCESS_TOKEN: names.access_token!,
  };
  if (organization === "none") env.INTEG_ORGANIZATION_ID = "";
  const { path, as } = asked;
  if (path === "/oauth/token" || path === "/api/v1/access-tokens" || as === "") return env;
  if (path.startsWith("/api/v1/")) {
    if (as === "access_token") return env;
    const token = /^bearer:(.+)$/.exec(as)?.[1];
    return token === undefined
      ? "the program sends a legacy bearer token and nothing else"
      : { ...env, INTEG_ACCESS_TOKEN: token };
  }
  const { INTEG_API_KEY: _key, ...others } = env;
  if (as.startsWith("bearer:")) {
    if (names.bearer === undefined || as !== `bearer:${names.bearer}` || names.client === undefined)
      return "a token of /v1 is fetched by the program and never given to it";
    const { INTEG_TOKEN_ENDPOINT: _endpoint, ...rest } = others;
    const client = { INTEG_CLIENT_ID: names.client, INTEG_CLIENT_SECRET: names.secret! };
    return { ...rest, ...client, INTEG_TOKEN_ENDPOINT: names["us.token_endpoint"]! };
  }
  const key = /^basic:apikey:(.+)$/.exec(as)?.[1] ?? names[as.replace(/^key-as-user:/, "")];
  return key === undefined || as === "none"
    ? "the program asks as somebody, and makes Basic itself"
    : { ...env, INTEG_API_KEY: key };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
