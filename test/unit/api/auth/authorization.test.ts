import { afterEach, describe, expect, test } from "vitest";
import { basicHeader } from "../../../../src/api/auth/authorization.ts";
import { connect, type ConnectOptions, type Service } from "../../../../src/api/connect.ts";
import type { Credential, LegacyCredential, TokenEndpoint } from "../../../../src/api/auth/credential.ts";
import { failureOf } from "../../../../src/api/call/attempt.ts";
import { type FetchPage, readPages } from "../../../../src/api/pages.ts";
import { Failure } from "../../../../src/errors.ts";
import { answerJson, closePeers, deadPort, type Peer, type Received, startPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

function serviceAt(baseUrl: string, more: Partial<ConnectOptions>): Service {
  return connect({
    transport: transportTo(),
    baseUrl,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    serviceVersion: "2026-07-01",
    credential: async () => ({ kind: "api_key", key: "k", style: "apikey-user" }),
    legacyCredential: async () => ({ kind: "access_token", token: "t" }),
    now: () => 0,
    ...more,
  });
}

describe("Basic (§5.1)", () => {
  test("has two forms", () => {
    expect(basicHeader("kéy:1", "apikey-user")).toBe(`Basic ${Buffer.from("apikey:kéy:1").toString("base64")}`);
    expect(basicHeader("key1", "key-as-user")).toBe(`Basic ${Buffer.from("key1:").toString("base64")}`);
  });
  test.each([
    ["", "apikey-user"],
    ["a\nb", "apikey-user"],
    ["a\0", "key-as-user"],
    ["a:b", "key-as-user"],
  ] as const)("refuses %j as %s", (key, style) => {
    expect(() => basicHeader(key, style)).toThrow(Failure);
  });
});

async function startBoth(token: (request: Received, n: number) => { status?: number; body: unknown }) {
  let count = 0;
  const tokens = await startPeer((request, response) => {
    const { status = 200, body } = token(request, ++count);
    answerJson(response, status, body);
  });
  const rejected = new Set<string>();
  const api = await startPeer(({ headers }, response) =>
    answerJson(response, rejected.has(headers.authorization ?? "") ? 401 : 200, {
      object: "list",
      data: [],
      next_page_token: null,
      has_more: false,
    }),
  );
  return { tokens, api, rejected };
}

function clientAt(tokens: Peer, more: Partial<Extract<Credential, { kind: "client_credentials" }>> = {}): Credential {
  return {
    kind: "client_credentials",
    clientId: "c:1",
    clientSecret: "s&cret ü",
    tokenEndpoint: `${tokens.origin}/oauth/token?x=1`,
    clientAuth: "client_secret_basic",
    ...more,
  };
}

function pagesOf(entities: Service["entities"]): FetchPage {
  return async (request) => {
    const attempt = await entities.page(request);
    if (attempt.kind !== "answered") throw new Error(attempt.kind);
    return attempt;
  };
}

function pageIn(url: string): number {
  return Number(new URLSearchParams(url.split("?")[1]).get("page_token") ?? 0);
}

function listOf(page: number, last: number): object {
  const hasMore = page < last;
  const token = hasMore ? String(page + 1) : null;
  return { object: "list", data: [{ id: `e${page}` }], next_page_token: token, has_more: hasMore };
}

const bearer = (n: number, more: object = {}): { body: unknown } => ({
  body: { access_token: `tok${n}`, token_type: "Bearer", expires_in: 900, ...more },
});

describe("OAuth client credentials (§5.2, RFC 6749 §4.4)", () => {
  test("client_secret_basic is form-encoded (RFC 6749 §2.3.1), client_secret_post is in the body, audience with either", async () => {
    const { tokens, api } = await startBoth((_, n) => bearer(n));
    for (const clientAuth of ["client_secret_basic", "client_secret_post"] as const)
      await serviceAt(api.origin, {
        credential: async () => clientAt(tokens, { clientAuth, audience: "https://aud" }),
      }).entities.page({});
    const [basic, post] = tokens.received;
    const [id, secret] = Buffer.from(basic!.headers.authorization!.slice(6), "base64")
      .toString()
      .split(":")
      .map((text) => new URLSearchParams(`x=${text}`).get("x"));
    expect([id, secret]).toEqual(["c:1", "s&cret ü"]);
    expect(Object.fromEntries(new URLSearchParams(basic!.body))).toEqual({
      grant_type: "client_credentials",
      audience: "https://aud",
    });
    expect(post!.headers.authorization).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(post!.body))).toEqual({
      grant_type: "client_credentials",
      audience: "https://aud",
      client_id: "c:1",
      client_secret: "s&cret ü",
    });
    expect(basic).toMatchObject({ method: "POST", url: "/oauth/token?x=1" });
    expect(api.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer tok1", "Bearer tok2"]);
    // Only the token endpoint receives the secret.
    expect(JSON.stringify(api.received)).not.toContain("cret");
  });

  test("one fetch at a time; a token is used until shortly before it expires, then replaced", async () => {
    const { tokens, api } = await startBoth((_, n) => bearer(n));
    let nowMs = 1_000_000;
    const { entities } = serviceAt(api.origin, { credential: async () => clientAt(tokens), now: () => nowMs });
    await Promise.all([1, 2, 3, 4].map(() => entities.page({})));
    expect(tokens.received).toHaveLength(1);
    nowMs += 869_000;
    await entities.page({});
    expect(tokens.received).toHaveLength(1);
    nowMs += 2000;
    await entities.page({});
    expect(tokens.received).toHaveLength(2);
    expect(api.received.at(-1)!.headers.authorization).toBe("Bearer tok2");
  });

  test("a token that expires during a listing: each page is requested once, the next one with the new token", async () => {
    const { tokens } = await startBoth((_, n) => bearer(n));
    let nowMs = 1_000_000;
    const last = 12;
    const api = await startPeer(({ url }, response) => {
      const page = pageIn(url);
      // A third of a token's life passes.
      nowMs += 300_000;
      answerJson(response, 200, listOf(page, last));
    });
    const { entities } = serviceAt(api.origin, { credential: async () => clientAt(tokens), now: () => nowMs });
    let count = 0;
    for await (const page of readPages(pagesOf(entities), { what: "list entities" })) count += page.rows.length;
    expect(count).toBe(last + 1);
    expect(api.received).toHaveLength(last + 1);
    expect(tokens.received).toHaveLength(5);
    expect(api.received.map(({ headers }) => headers.authorization)).toEqual(
      Array.from({ length: last + 1 }, (_, page) => `Bearer tok${Math.floor(page / 3) + 1}`),
    );
    expect(api.connections()).toBe(1);
  });

  test("a token that expires while the next page is in flight: that page is not requested again", async () => {
    const { tokens } = await startBoth((_, n) => bearer(n));
    let nowMs = 1_000_000;
    const last = 6;
    const api = await startPeer(({ url }, response) => {
      const page = pageIn(url);
      answerJson(response, 200, listOf(page, last));
    });
    const { entities } = serviceAt(api.origin, { credential: async () => clientAt(tokens), now: () => nowMs });
    let count = 0;
    const fetchPage: FetchPage = async (request) => {
      // The token expires before each request after the first.
      if (++count > 1) nowMs += 1_000_000;
      return pagesOf(entities)(request);
    };
    for await (const _ of readPages(fetchPage, { what: "list entities" }))
      await new Promise((done) => setTimeout(done, 5));
    expect(api.received).toHaveLength(last + 1);
    expect(api.connections()).toBe(1);
  });

  test("a token refused in the middle of a listing: that page gets one fresh token", async () => {
    const { tokens } = await startBoth((_, n) => bearer(n));
    const api = await startPeer(({ url, headers }, response) => {
      const page = pageIn(url);
      const isOld = page >= 3 && headers.authorization === "Bearer tok1";
      answerJson(response, isOld ? 401 : 200, listOf(page, 6));
    });
    const { entities } = serviceAt(api.origin, { credential: async () => clientAt(tokens) });
    let rows = 0;
    for await (const page of readPages(pagesOf(entities), { what: "list entities" })) rows += page.rows.length;
    expect([rows, tokens.received.length, api.received.length]).toEqual([7, 2, 8]);
  });

  test("a used token that is refused: a read gets one fresh token, once", async () => {
    const { tokens, api, rejected } = await startBoth((_, n) => bearer(n));
    const { entities, oauthClients } = serviceAt(api.origin, { credential: async () => clientAt(tokens) });
    expect(await entities.page({})).toMatchObject({ kind: "answered" });
    rejected.add("Bearer tok1");
    expect(await entities.page({})).toMatchObject({ kind: "answered" });
    expect([tokens.received.length, api.received.length]).toEqual([2, 3]);
    for (const n of [2, 3, 4]) rejected.add(`Bearer tok${n}`);
    expect(await entities.page({})).toMatchObject({ kind: "refused", status: 401 });
    expect([tokens.received.length, api.received.length]).toEqual([3, 5]);
    expect(await oauthClients.create("{}", "k")).toMatchObject({ kind: "refused", status: 401 });
    expect([tokens.received.length, api.received.length]).toEqual([4, 6]);
    expect(tokens.received.map(({ headers }) => headers["user-agent"])).toEqual(Array(4).fill("integ-test/0"));
  });

  test("a token that is not accepted is not reused", async () => {
    const { tokens, api, rejected } = await startBoth((_, n) => bearer(n));
    rejected.add("Bearer tok1");
    const { entities } = serviceAt(api.origin, { credential: async () => clientAt(tokens) });
    expect(await entities.page({})).toMatchObject({ kind: "refused", status: 401 });
    expect(await entities.page({})).toMatchObject({ kind: "answered" });
    expect(tokens.received).toHaveLength(2);
  });

  test.each([
    [400, { error: "invalid_client", error_description: "no such client" }, "auth"],
    [401, { error: "invalid_client" }, "auth"],
    [403, {}, "auth"],
    [503, {}, "failed"],
    [302, {}, "unreachable"],
    [200, { access_token: "t" }, "unreachable"],
    [200, { access_token: "t", token_type: "mac" }, "unreachable"],
    [200, { access_token: "t", token_type: "DPoP" }, "unreachable"],
    [200, { access_token: "a b", token_type: "bearer" }, "unreachable"],
    [200, { access_token: "", token_type: "bearer" }, "unreachable"],
    [200, "<html>", "unreachable"],
  ])("%d %j: no request reaches the API, and the result is %s", async (status, body, kind) => {
    const { tokens, api } = await startBoth(() => ({ status, body }));
    const attempt = await serviceAt(api.origin, { credential: async () => clientAt(tokens) }).oauthClients.create(
      "{}",
      "k",
    );
    expect(attempt.kind).toBe("not_sent");
    expect(failureOf(attempt, { what: "create the OAuth client", change: true }).kind).toBe(kind);
    expect(api.received).toEqual([]);
  });

  test("a missing endpoint is tried again the next time", async () => {
    const tokenEndpoint = `http://127.0.0.1:${await deadPort()}/token`;
    const { tokens, api } = await startBoth((_, n) => bearer(n));
    const attempt = await serviceAt(api.origin, {
      credential: async () => clientAt(tokens, { tokenEndpoint }),
    }).entities.page({});
    expect(attempt).toMatchObject({ kind: "not_sent", reason: "refused", temporary: true });
  });
});

describe("the legacy bearer (§5.3)", () => {
  async function list(legacy: LegacyCredential, api: Peer) {
    return serviceAt(api.origin, { legacyCredential: async () => legacy }).accessKeys.list();
  }

  test("comes from the token itself, from a command with the secret, or from an endpoint", async () => {
    const { tokens, api } = await startBoth((_, n) => ({ body: { accessToken: `tok${n}`, expiresIn: 60 } }));
    const given: string[] = [];
    await list({ kind: "access_token", token: "given" }, api);
    await list({ kind: "exchange_command", secret: "sec", run: async (secret) => (given.push(secret), "ran") }, api);
    await list({ kind: "exchange_endpoint", url: `${tokens.origin}/t`, secret: 's"ec' }, api);
    expect(api.received.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer given",
      "Bearer ran",
      "Bearer tok1",
    ]);
    expect(api.received[0]!.headers["x-organization-id"]).toBe("3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b");
    expect(given).toEqual(["sec"]);
    expect(tokens.received).toMatchObject([{ method: "POST", url: "/t", body: '{"secret":"s\\"ec"}' }]);
    expect(JSON.stringify(api.received)).not.toContain("sec");
  });

  test("a command must print a token, or nothing is sent", async () => {
    const { api } = await startBoth((_, n) => bearer(n));
    for (const token of ["", "two words", "a\r\nx: y", "ü"]) {
      const attempt = await list({ kind: "exchange_command", run: async () => token }, api);
      expect(failureOf(attempt, { what: "list", change: false }).kind).toBe("auth");
    }
    expect(api.received).toEqual([]);
  });

  test("a missing or invalid organization id is a usage error, nothing sent", async () => {
    const { api } = await startBoth((_, n) => bearer(n));
    for (const organizationId of [undefined, "", "acme", "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b\r\nx: y"]) {
      const attempt = await serviceAt(api.origin, { organizationId }).accessKeys.list();
      expect(failureOf(attempt, { what: "list", change: false }).kind).toBe("usage");
    }
    expect(api.received).toEqual([]);
  });

  test("a POST answered with 401 is not repeated with a new token", async () => {
    const { tokens, api, rejected } = await startBoth((_, n) => bearer(n));
    rejected.add("Bearer tok1");
    const { accessKeys } = serviceAt(api.origin, {
      legacyCredential: async () => ({ kind: "exchange_endpoint", url: `${tokens.origin}/t`, secret: "s" }),
    });
    expect((await accessKeys.create("{}")).kind).toBe("refused");
    expect(api.received).toHaveLength(1);
  });
});

describe("tokens: the proof of a new secret", () => {
  test.each(["client_secret_basic", "client_secret_post", "endpoint"] as const)(
    "no error contains the secret if the endpoint repeats it: %s",
    async (way) => {
      const secret = "s&cret/of+a=client";
      const peer = await startPeer(({ body, headers: { authorization = "" } }, response) => {
        const pair = Buffer.from(authorization.slice("Basic ".length), "base64").toString();
        answerJson(response, 400, { error: "bad", error_description: `${body} ${pair} ${authorization} ${secret}` });
      });
      const tokenEndpoint = { tokenEndpoint: `${peer.origin}/t`, clientAuth: way } as TokenEndpoint;
      const { tokens } = serviceAt(peer.origin, { tokenEndpoint });
      const attempt = await (way === "endpoint"
        ? tokens.exchangeAccessKey(secret, `${peer.origin}/t`)
        : tokens.exchangeClient({ clientId: "c1", clientSecret: secret }));
      const { detail = "" } = attempt?.kind === "refused" ? attempt.problem : {};
      expect(detail).toContain("[secret]");
      for (const form of [secret, encodeURIComponent(secret), new URLSearchParams({ secret }).toString().slice(7)])
        expect(detail).not.toContain(form);
    },
  );

  test("uses the profile's credential, and fails if it has none", async () => {
    const { tokens, api } = await startBoth((_, n) => bearer(n));
    const tokenEndpoint = { tokenEndpoint: `${tokens.origin}/t`, clientAuth: "client_secret_post" as const };
    const service = serviceAt(api.origin, {
      tokenEndpoint,
      legacyCredential: async () => ({ kind: "exchange_endpoint", url: `${tokens.origin}/l`, secret: "old" }),
    });
    expect(await service.tokens.exchangeClient({ clientId: "c", clientSecret: "s" })).toMatchObject({
      kind: "answered",
      value: { token: "tok1", expiresInSeconds: 900 },
    });
    expect(await service.tokens.exchangeAccessKey("new")).toMatchObject({ kind: "answered" });
    expect(tokens.received[1]!.body).toBe('{"secret":"new"}');
    const bare = serviceAt(api.origin, {});
    expect(await bare.tokens.exchangeClient({ clientId: "c", clientSecret: "s" })).toBeUndefined();
    expect(await bare.tokens.exchangeAccessKey("new")).toBeUndefined();
  });
});
