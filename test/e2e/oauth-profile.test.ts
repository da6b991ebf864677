// Tests OAuth client credentials of a profile, with an independent token server (oidc-provider).
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { errors } from "oidc-provider";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { homeOfTest, startService } from "../support/service.ts";

const secret = "a-client-secret-that-is-long-enough-for-everybody";
const knownAudience = "https://api.example.com/v1";
let tokens: Server;
let api: Server;
/** How the client authenticated in each token request. */
let fetches: string[] = [];
/** Each request to the token server, and whether a header had a credential. */
let tokenRequests: string[] = [];
/** True if the token server has no metadata at the address of RFC 8414. */
let isOpenIdOnly = false;
let seen: string[] = [];

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  let answer: ReturnType<Provider["callback"]>;
  tokens = createServer((request, response) => {
    if (request.method === "POST") fetches.push(request.headers.authorization ?? "in the body");
    tokenRequests.push(
      `${request.method} ${request.url} ${request.headers.authorization ? "with" : "without"} a credential`,
    );
    if (isOpenIdOnly && request.url === "/.well-known/oauth-authorization-server") response.writeHead(404).end();
    else answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(tokens, "listening");
  const provider = new Provider(addressOf(tokens), {
    clients: (["client_secret_basic", "client_secret_post"] as const).map((method) => ({
      client_id: method,
      client_secret: secret,
      token_endpoint_auth_method: method,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    })),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      // The audience selects the resource server, whose tokens are JWTs with that audience (RFC 9068).
      resourceIndicators: {
        enabled: true,
        defaultResource: (context: { oidc: { body: { audience?: string } } }) => context.oidc.body.audience,
        getResourceServerInfo: (_: unknown, audience: string) => {
          if (audience !== knownAudience) throw new errors.InvalidTarget();
          return { scope: "read write", audience, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } };
        },
      },
    },
    ttl: { ClientCredentials: 600 },
  });
  answer = provider.callback();
  api = createServer((request, response) => {
    seen.push(request.headers.authorization ?? "");
    const last = seen.length >= 3;
    const page = {
      object: "list",
      data: [{ id: `e${seen.length}` }],
      next_page_token: last ? null : `t${seen.length}`,
      has_more: !last,
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(page));
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
});

afterEach(() => {
  fetches = [];
  tokenRequests = [];
  isOpenIdOnly = false;
  seen = [];
});

afterAll(() => {
  tokens.close();
  api.close();
});

async function profile(method: string, given = secret, further: readonly string[] = []): Promise<Home> {
  const at = homeOfTest();
  const where = ["--region", "us", "--base-url", addressOf(api), "--client-id", method];
  const words = ["profiles", "add", "p", "--no-verify", ...where];
  const more = ["--client-secret-stdin", "--token-endpoint", `${addressOf(tokens)}/token`, "--client-auth", method];
  expect((await at.integ([...words, ...more, ...further], { input: given })).code).toBe(0);
  return at;
}

it.each(["client_secret_basic", "client_secret_post"])(
  "%s: one token for all pages, sent as bearer",
  async (method) => {
    const at = await profile(method);
    const { code, stdout } = await at.integ(["entities", "list", "--all", "--ndjson"]);
    expect([code, stdout.trim().split("\n").length]).toEqual([0, 3]);
    expect(fetches).toEqual([method === "client_secret_post" ? "in the body" : expect.stringMatching(/^Basic /)]);
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toMatch(/^Bearer \S+$/);
  },
);

describe("a token endpoint that needs a scope", () => {
  const scoped = ["--audience", knownAudience, "--token-scope", "read write"];
  const scopeOf = (bearer: string): unknown => claimsOf(bearer.replace(/^Bearer /, "")).scope;

  it("gets the profile's scope from every command; a typed scope replaces it", async () => {
    const at = await profile("client_secret_basic", secret, scoped);
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    expect(scopeOf(seen[0]!)).toBe("read write");
    const token = async (...more: string[]): Promise<unknown> => {
      const { stdout } = await at.integ(["oauth-clients", "token", "--from-profile", "--json", ...more]);
      return scopeOf((JSON.parse(stdout) as { access_token: string }).access_token);
    };
    expect(await token()).toBe("read write");
    expect(await token("--scope", "read")).toBe("read");
    const shown = await at.integ(["profiles", "show", "p", "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ credential: { scope: "read write" } });
    expect((await at.integ(["profiles", "edit", "p", "--token-scope", "write"])).code).toBe(0);
    expect(await token()).toBe("write");
    expect((await at.integ(["profiles", "edit", "p", "--token-scope", ""])).code).toBe(0);
    expect(await token()).toBeUndefined();
  });

  it("gets the scope of INTEG_TOKEN_SCOPE", async () => {
    const at = homeOfTest({
      INTEG_BASE_URL: addressOf(api),
      INTEG_REGION: "us",
      INTEG_CLIENT_ID: "client_secret_basic",
      INTEG_CLIENT_SECRET: secret,
      INTEG_TOKEN_ENDPOINT: `${addressOf(tokens)}/token`,
      INTEG_AUDIENCE: knownAudience,
      INTEG_TOKEN_SCOPE: "read",
    });
    expect((await at.integ(["entities", "list"])).code).toBe(0);
    expect(scopeOf(seen[0]!)).toBe("read");
    const refused = await at.integ(["entities", "list"], { env: { INTEG_TOKEN_SCOPE: "read  write" } });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("Invalid INTEG_TOKEN_SCOPE")]);
  });

  it("gets the scope in the proof of a new client, and the journal keeps it", async () => {
    const service = await startService();
    const at = homeOfTest();
    try {
      const { us } = service;
      const key = ["--region", "us", "--base-url", us.base_url, "--api-key-stdin"];
      const endpoint = ["--token-endpoint", us.token_endpoint, "--token-scope", "entity:read"];
      const added = await at.integ(["profiles", "add", "p", ...key, ...endpoint], { input: us.api_key });
      expect(added.code, added.stderr).toBe(0);
      const create = ["--service-account", us.service_account_id, "--scope", "entity:read", "--secret-file", "s"];
      const created = await at.integ(["oauth-clients", "create", ...create, "--json"]);
      const to = ["--yes", "--secret-file", "s", "--force", "--json"];
      const rotate = (id: string) => ["oauth-clients", "rotate", id, ...to];
      const rotated = await at.integ(rotate((JSON.parse(created.stdout) as { id: string }).id));
      expect(rotated.code, rotated.stderr).toBe(0);
      expect((await at.integ(["journal", "export"])).stdout).toContain('"scope":"entity:read"');
      // The sandbox refuses a scope that the client lacks, which shows that integ sends the scope.
      expect((await at.integ(["profiles", "edit", "p", "--token-scope", "organization:read"])).code).toBe(0);
      const unproven = await at.integ(rotate((JSON.parse(rotated.stdout) as { id: string }).id));
      expect(unproven.code, unproven.stderr).toBe(8);
    } finally {
      await service.stop();
    }
  });
});

it("oauth-clients token prints the token response, and a wrong secret ends with exit 3", async () => {
  const at = await profile("client_secret_basic");
  const token = await at.integ(["oauth-clients", "token", "--from-profile", "--json"]);
  expect(JSON.parse(token.stdout)).toMatchObject({
    token_type: "Bearer",
    access_token: expect.any(String),
    expires_in: expect.any(Number),
  });
  const masked = await at.integ(["oauth-clients", "token", "--from-profile", "--json"], {
    env: { GITHUB_ACTIONS: "true" },
  });
  expect(masked.stderr).toContain(`::add-mask::${JSON.parse(masked.stdout).access_token}\n`);
  expect(token.stderr).not.toContain("::add-mask::");
  const wrong = await profile("client_secret_basic", "another-secret-that-is-wrong");
  const refused = await wrong.integ(["entities", "list"]);
  expect(refused.code).toBe(3);
  expect(seen).toEqual([]);
  expect(refused.stderr).not.toContain("another-secret-that-is-wrong");
});

function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString() || "{}");
}

it("the token is requested with the profile's audience and valid for it; an unknown audience is reported", async () => {
  const at = await profile("client_secret_basic", secret, ["--audience", knownAudience]);
  expect((await at.integ(["entities", "list", "--all", "--ndjson"])).code).toBe(0);
  expect(fetches).toHaveLength(1);
  const [bearer] = seen;
  expect(claimsOf(bearer!.slice("Bearer ".length))).toMatchObject({
    aud: knownAudience,
    iss: addressOf(tokens),
    client_id: "client_secret_basic",
  });

  const none = await profile("client_secret_basic");
  const opaque = await none.integ(["oauth-clients", "token", "--from-profile", "--json"]);
  expect(JSON.parse(opaque.stdout).access_token).not.toContain(".");

  seen = [];
  const other = await profile("client_secret_basic", secret, ["--audience", "https://elsewhere.example.com"]);
  const { code, stderr } = await other.integ(["entities", "list"]);
  expect([code, seen]).toEqual([3, []]);
  expect(stderr).toContain("invalid_target");
});

type Check = Readonly<Record<"check" | "status" | "message", string> & Record<"next" | "hint", string | null>>;

async function issuerChecks(at: Home): Promise<readonly Check[]> {
  const { stdout } = await at.integ(["doctor", "-o", "json", "--retry-for", "0"]);
  const { data }: { data: readonly Check[] } = JSON.parse(stdout);
  expect(data.filter(({ status, next, hint }) => status !== "ok" && next === null && hint === null)).toEqual([]);
  return data.filter(({ check }) => check === "issuer");
}

it("doctor compares the token endpoint with the issuer's metadata, and sends it no credential", async () => {
  const issuer = addressOf(tokens);
  const at = await profile("client_secret_post", secret, ["--issuer", issuer]);
  const fine = [{ check: "issuer", status: "ok", message: "confirms the token endpoint", next: null, hint: null }];
  expect(await issuerChecks(at)).toEqual(fine);
  isOpenIdOnly = true;
  expect(await issuerChecks(at)).toEqual(fine);
  expect(tokenRequests.filter((one) => one.startsWith("GET"))).toEqual([
    "GET /.well-known/oauth-authorization-server without a credential",
    "GET /.well-known/oauth-authorization-server without a credential",
    "GET /.well-known/openid-configuration without a credential",
  ]);

  const words = ["profiles", "edit", "p", "--token-endpoint", `${issuer}/another`];
  expect((await at.integ(words)).code).toBe(0);
  expect(await issuerChecks(at)).toMatchObject([
    { status: "problem", message: `its token endpoint is ${issuer}/token, not the profile's` },
  ]);
});

it.each(["auth", "https://[", "urn:issuer"])("doctor reports an issuer that is not an address: %s", async (issuer) => {
  const at = await profile("client_secret_basic", secret, ["--issuer", issuer]);
  expect(await issuerChecks(at)).toMatchObject([
    { status: "problem", message: "Invalid issuer: it is not an address." },
  ]);
});

it("doctor reports an issuer of another server, and one that publishes no metadata", async () => {
  // The same server under a second name, for which the metadata has another issuer.
  const other = await profile("client_secret_basic", secret, [
    "--issuer",
    addressOf(tokens).replace("127.0.0.1", "localhost"),
  ]);
  expect(await issuerChecks(other)).toMatchObject([{ status: "problem", message: expect.stringContaining("issuer") }]);

  const silent = await profile("client_secret_basic", secret, ["--issuer", `${addressOf(tokens)}/nobody`]);
  expect(await issuerChecks(silent)).toMatchObject([
    { status: "warning", message: expect.stringContaining("publishes no metadata") },
  ]);
});
