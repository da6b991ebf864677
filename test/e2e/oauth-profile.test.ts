// OAuth client credentials as a profile's credential, against a token server that is not ours (oidc-provider): both
// client authentication methods, one fetch at a time, and a bearer token that reaches the API and nothing else.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Home } from "../support/program.ts";

const secret = "a-client-secret-that-is-long-enough-for-everybody";
const homes: Home[] = [];
let tokens: Server;
let api: Server;
/** How each token was asked for. */
let fetches: string[] = [];
let seen: string[] = [];

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  const provider = new Provider("http://127.0.0.1", {
    clients: (["client_secret_basic", "client_secret_post"] as const).map((method) => ({
      client_id: method,
      client_secret: secret,
      token_endpoint_auth_method: method,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    })),
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    ttl: { ClientCredentials: 600 },
  });
  const answer = provider.callback();
  tokens = createServer((request, response) => {
    fetches.push(request.headers.authorization ?? "in the body");
    answer(request, response);
  }).listen(0, "127.0.0.1");
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
  await Promise.all([tokens, api].map((server) => new Promise((done) => server.once("listening", done))));
});

afterEach(() => {
  for (const home of homes.splice(0)) home.remove();
  fetches = [];
  seen = [];
});

afterAll(() => {
  tokens.close();
  api.close();
});

async function profile(method: string, given = secret): Promise<Home> {
  const at = new Home();
  homes.push(at);
  const words = ["profiles", "add", "p", "--region", "us", "--base-url", addressOf(api), "--client-id", method];
  const more = ["--client-secret-stdin", "--token-endpoint", `${addressOf(tokens)}/token`, "--client-auth", method];
  expect((await at.integ([...words, ...more], { input: given })).code).toBe(0);
  return at;
}

it.each(["client_secret_basic", "client_secret_post"])(
  "%s: one token for a whole walk, sent as bearer",
  async (method) => {
    const at = await profile(method);
    const { code, stdout } = await at.integ(["entities", "list", "--all", "--ndjson"]);
    expect([code, stdout.trim().split("\n").length]).toEqual([0, 3]);
    expect(fetches).toEqual([method === "client_secret_post" ? "in the body" : expect.stringMatching(/^Basic /)]);
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toMatch(/^Bearer \S+$/);
  },
);

it("prints the token response on request, and a wrong secret ends with exit 3", async () => {
  const at = await profile("client_secret_basic");
  const token = await at.integ(["oauth-clients", "token", "--from-profile", "--json"]);
  expect(JSON.parse(token.stdout)).toMatchObject({
    token_type: "Bearer",
    access_token: expect.any(String),
    expires_in: expect.any(Number),
  });
  const wrong = await profile("client_secret_basic", "another-secret-that-is-wrong");
  const refused = await wrong.integ(["entities", "list"]);
  expect(refused.code).toBe(3);
  expect(seen).toEqual([]);
  expect(refused.stderr).not.toContain("another-secret-that-is-wrong");
});
