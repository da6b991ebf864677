import { afterEach, describe, expect, test } from "vitest";
import { type Attempt, failureOf, retryAfterOf } from "../../../../src/api/call/attempt.ts";
import { connect, type ConnectOptions, type Service } from "../../../../src/api/connect.ts";
import { checkCreation, creationBody, decideCreation } from "../../../../src/api/oauth-client-creation.ts";
import { readProblem } from "../../../../src/api/call/caller.ts";
import { Failure } from "../../../../src/errors.ts";
import { answerJson, closePeers, deadPort, startPeer, startRawPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

function serviceAt(baseUrl: string, more: Partial<ConnectOptions> = {}): Service {
  return connect({
    transport: transportTo(),
    baseUrl,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    serviceVersion: "2026-07-01",
    credential: async () => ({ kind: "api_key", key: "key-canary", style: "apikey-user" }),
    legacyCredential: async () => ({ kind: "access_token", token: "legacy-token" }),
    now: () => 0,
    ...more,
  });
}

const client = {
  object: "oauth_client",
  id: "oc_1",
  service_account_id: "sa_1",
  client_id: "cid_1",
  scopes: ["entity:read"],
  status: "active",
  created_at: "2026-01-01T00:00:00.000Z",
  client_secret: "s3cret",
};
const bodyText = creationBody({ service_account_id: "sa_1", scopes: ["entity:read"] });

async function createAgainst(status: number, body: string, headers: Record<string, string> = {}) {
  const peer = await startPeer((_, response) => answerJson(response, status, body, headers));
  const attempt = await serviceAt(peer.origin).oauthClients.create(bodyText, "k1");
  return { attempt, decision: decideCreation(attempt), peer };
}

describe("a creation", () => {
  test("sends the stored bytes, key, version and Basic, and returns the response unchanged", async () => {
    const text = JSON.stringify({ later: 12345678901234567890n.toString(), ...client }).replace(
      '"12345678901234567890"',
      "12345678901234567890",
    );
    const { attempt, decision, peer } = await createAgainst(201, text);
    expect(attempt).toMatchObject({ kind: "answered", status: 201, body: Buffer.from(text), requestId: "req_1" });
    expect(decision).toMatchObject({ kind: "store_secret", secret: "s3cret", text });
    expect(peer.received).toMatchObject([
      {
        method: "POST",
        url: "/v1/oauth_clients",
        body: bodyText,
        headers: {
          "idempotency-key": "k1",
          "service-version": "2026-07-01",
          "content-type": "application/json",
          authorization: `Basic ${Buffer.from("apikey:key-canary").toString("base64")}`,
        },
      },
    ]);
  });

  test.each([
    [{}, "store_secret"],
    [{ client_secret: null }, "secret_lost"],
    [{ client_secret: undefined }, "secret_lost"],
    [{ client_secret: "" }, "secret_lost"],
    [{ status: "pending", client_id: null, client_secret: null }, "pending"],
    [{ status: "pending", client_secret: null }, "pending"],
    [{ status: "revoked", client_secret: null }, "unusable"],
    [{ status: "disabled", client_secret: null }, "unusable"],
    [{ status: "expired", client_secret: null }, "unusable"],
    [{ status: "suspended", client_secret: null }, "unusable"],
    [{ later: { nested: true } }, "store_secret"],
  ])("201 with %j: %s", async (change, kind) => {
    const { decision } = await createAgainst(201, JSON.stringify({ ...client, ...change }));
    expect(decision.kind).toBe(kind);
  });

  test.each([
    { object: "entity" },
    { object: undefined },
    { id: undefined },
    { id: "" },
    { id: 5 },
    { status: undefined },
    { client_id: 5 },
    { client_id: undefined },
    { client_id: null },
    { client_id: "" },
    { scopes: "x" },
    { service_account_id: null },
    { status: "pending" },
    { status: "revoked" },
  ])("201 with %j violates the contract: unknown, and its secret is kept", async (change) => {
    const { decision } = await createAgainst(201, JSON.stringify({ ...client, ...change }));
    expect(decision).toMatchObject({ kind: "unknown", secret: { secret: "s3cret" } });
  });

  test("a secret with an undocumented status is delivered first (§9 rule 3)", async () => {
    const { decision } = await createAgainst(201, JSON.stringify({ ...client, status: "later" }));
    expect(decision).toMatchObject({ kind: "store_secret", secret: "s3cret" });
  });

  const html = "<html>secret</html>";
  const bodies = [
    JSON.stringify(client),
    "",
    "{",
    html,
    "null",
    "[]",
    '"x"',
    JSON.stringify({ code: "invalid_request" }),
  ];

  test("no status but 201 is success, whatever the body says", async () => {
    let body = "";
    let status = 200;
    const peer = await startPeer((_, response) => {
      response.writeHead(status, { "content-type": body === html ? "text/html" : "application/json" });
      response.end(body);
    });
    const { oauthClients } = serviceAt(peer.origin);
    const statuses = [200, 202, 204, 299, 300, 302, 308, 400, 401, 403, 404, 408, 409, 422, 429, 499, 500, 503, 599];
    for (status of statuses)
      for (body of bodies) {
        const place = `${status} ${body}`;
        const attempt = await oauthClients.create(bodyText, "k1");
        if (status >= 300 && status < 400) expect(attempt, place).toMatchObject({ reason: "redirect", status });
        const refused = status >= 400 && status < 500 && status !== 408;
        expect(attempt.kind, place).toBe(refused ? "refused" : "unknown");
        expect(failureOf(attempt, { what: "create the OAuth client", change: true }).kind, place).toBe(kindOf(status));
      }
    status = 201;
    for (body of bodies.slice(1)) expect((await oauthClients.create(bodyText, "k1")).kind, body).toBe("unknown");
    for (const contentType of ["text/html", "text/plain", "application/jsonx", "image/png"]) {
      const other = await createAgainst(201, JSON.stringify(client), { "content-type": contentType });
      expect(other.decision).toMatchObject({ kind: "unknown", secret: { secret: "s3cret" } });
    }
    for (const contentType of ["application/json; charset=utf-8", "Application/JSON", "application/problem+json"])
      expect((await createAgainst(201, JSON.stringify(client), { "content-type": contentType })).decision.kind).toBe(
        "store_secret",
      );
  });

  function kindOf(status: number): string {
    if (status < 400 || status === 408 || status >= 500) return "outcome_unknown";
    return { 401: "auth", 403: "auth", 404: "not_found", 409: "conflict", 429: "rate_limited" }[status] ?? "failed";
  }

  test("distinguishes the two 409s and 429", async () => {
    const decided = async (status: number, body: string, after?: string) => {
      const { attempt, decision } = await createAgainst(status, body, after ? { "retry-after": after } : {});
      return { ...decision, after: retryAfterOf(attempt) };
    };
    expect(await decided(409, '{"code":"idempotency_key_reuse"}')).toEqual({ kind: "key_reuse" });
    expect(await decided(409, '{"code":"invalid_request"}')).toEqual({ kind: "refused" });
    expect(await decided(429, "{}", "7")).toEqual({ kind: "wait", after: 7 });
    expect(await decided(429, "{}", "soon")).toEqual({ kind: "wait" });
    expect(await decided(503, "{}", "8")).toEqual({ kind: "unknown", after: 8 });
  });

  test("truncated at every byte of its body: unknown, with the secret once its closing quote arrived", async () => {
    const text = JSON.stringify({ ...client, client_secret: 'q"uo\\ted é' });
    const end = Buffer.byteLength(text.slice(0, text.length - 1));
    let length = 0;
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        const head = `HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n`;
        socket.end(Buffer.concat([Buffer.from(head), Buffer.from(text).subarray(0, length)]));
      });
    });
    const { oauthClients } = serviceAt(peer.origin);
    for (length = 0; length < Buffer.byteLength(text); length++) {
      const attempt = await oauthClients.create(bodyText, "k1");
      expect(attempt, `${length}`).toMatchObject({ kind: "unknown", reason: "closed" });
      const salvage = attempt.kind === "unknown" ? attempt.salvage?.secret : "";
      expect(salvage, `${length}`).toBe(length >= end ? 'q"uo\\ted é' : undefined);
    }
  });

  test("a closed port, or a missing credential: reported as not sent", async () => {
    const dead = await serviceAt(`http://127.0.0.1:${await deadPort()}`).oauthClients.create(bodyText, "k1");
    expect(decideCreation(dead).kind).toBe("not_sent");
    expect(failureOf(dead, { what: "x", change: true }).kind).toBe("unreachable");
    const none = new Failure("auth", "no credential");
    const peer = await startPeer((_, response) => answerJson(response, 201, client));
    const bare = await serviceAt(peer.origin, { credential: () => Promise.reject(none) }).oauthClients.create(
      bodyText,
      "k1",
    );
    expect(bare).toMatchObject({ kind: "not_sent", reason: "unsendable" });
    expect(failureOf(bare, { what: "x", change: true }).kind).toBe("auth");
    const odd = await serviceAt(peer.origin).oauthClients.create(bodyText, "k\r\nx: y");
    expect(failureOf(odd, { what: "x", change: true }).kind).toBe("usage");
    expect(peer.received).toEqual([]);
  });

  test("a bug is thrown unchanged, not returned as an attempt", async () => {
    const bug = new TypeError("bug");
    await expect(
      serviceAt("http://127.0.0.1:1", { credential: () => Promise.reject(bug) }).oauthClients.get("a"),
    ).rejects.toBe(bug);
  });
});

describe("get and revoke", () => {
  test("reject a response about another client", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, { ...client, client_secret: undefined }));
    const { oauthClients } = serviceAt(peer.origin);
    expect((await oauthClients.get("oc_1")).kind).toBe("answered");
    for (const attempt of [await oauthClients.get("oc_2"), await oauthClients.revoke("oc_2")])
      expect(attempt).toMatchObject({ kind: "unknown", reason: "malformed" });
  });

  test("send any id as one segment of the path", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 404, {}));
    const { oauthClients } = serviceAt(peer.origin);
    for (const id of ["a/b", "../x", "a?b", "a#b", "a b", "a%2fb", "é", "a\r\nb", "a;b"]) await oauthClients.get(id);
    for (const { url } of peer.received) expect(url).toMatch(/^\/v1\/oauth_clients\/[^/?#\s]+$/);
    expect(peer.received).toHaveLength(9);
    for (const id of ["", ".", "..", "\ud800"]) await expect(oauthClients.revoke(id)).rejects.toBeInstanceOf(Failure);
    expect(peer.received).toHaveLength(9);
  });
});

describe("a response body", () => {
  const attemptWith = async (body: string | Buffer): Promise<Attempt<unknown>> => {
    const peer = await startPeer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(body);
    });
    return serviceAt(peer.origin).people.membership("p");
  };

  test("cannot change a prototype", async () => {
    for (const key of ["__proto__", "\\u005f_proto__"]) {
      const attempt = await attemptWith(`{"a":{"${key}":{"polluted":true}}}`);
      expect(attempt.kind === "answered" && JSON.stringify(attempt.value)).toBe('{"a":{}}');
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("is refused if it is nested too deep, too large, or not UTF-8", async () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect((await attemptWith(nested(200))).kind).toBe("answered");
    expect(await attemptWith(nested(201))).toMatchObject({ kind: "unknown", reason: "too_large" });
    expect(await attemptWith(nested(400_000))).toMatchObject({ kind: "unknown", reason: "too_large" });
    expect((await attemptWith(JSON.stringify("[".repeat(300)))).kind).toBe("answered");
    expect(await attemptWith(" ".repeat(1024 * 1024 + 1))).toMatchObject({ kind: "unknown", reason: "too_large" });
    expect(await attemptWith(Buffer.from([0x22, 0xff, 0x22]))).toMatchObject({ kind: "unknown", reason: "malformed" });
  });
});

describe("checkCreation (§4.2, §8)", () => {
  const fine = { service_account_id: "sa", scopes: ["a"] };
  test.each([
    fine,
    { ...fine, scopes: Array.from({ length: 100 }, (_, i) => `s${i}`) },
    { ...fine, scopes: ["x".repeat(4096)] },
    { ...fine, scopes: ["😀".repeat(4096)] },
    { ...fine, idempotencyKey: "!" },
    { ...fine, idempotencyKey: "~".repeat(255) },
  ])("accepts %j", (request) => expect(() => checkCreation(request)).not.toThrow());
  test.each([
    { ...fine, service_account_id: "" },
    { ...fine, scopes: [] },
    { ...fine, scopes: Array.from({ length: 101 }, (_, i) => `s${i}`) },
    { ...fine, scopes: ["x".repeat(4097)] },
    { ...fine, scopes: ["x".repeat(4096), "y"] },
    { ...fine, scopes: ["a", ""] },
    { ...fine, scopes: [" "] },
    { ...fine, scopes: ["*"] },
    { ...fine, scopes: ["entity:*"] },
    { ...fine, idempotencyKey: "" },
    { ...fine, idempotencyKey: "a b" },
    { ...fine, idempotencyKey: "é" },
    { ...fine, idempotencyKey: "a\n" },
    { ...fine, idempotencyKey: "x".repeat(256) },
  ])("refuses %j", (request) => {
    expect(() => checkCreation(request)).toThrow(Failure);
  });
});

describe("readProblem (§7)", () => {
  test("reads every field of /v1, and status and header before the body's", () => {
    const body = {
      type: "https://docs/x",
      title: "t",
      status: 1,
      detail: "d",
      code: "c",
      param: "p",
      request_id: "body",
      doc_url: "https://docs/x",
      retryable: false,
    };
    expect(readProblem(400, body, "header")).toEqual({
      status: 400,
      code: "c",
      title: "t",
      detail: "d",
      param: "p",
      request_id: "header",
      doc_url: "https://docs/x",
      retryable: false,
    });
  });
  test.each([
    [
      { error: "invalid_client", error_description: "no" },
      { status: 400, code: "invalid_client", detail: "no" },
    ],
    [{ error: { code: "x", message: "m" } }, { status: 400, code: "x", detail: "m" }],
    [{ errors: [{ code: "x", message: "m" }] }, { status: 400, code: "x", detail: "m" }],
    [{ message: "m" }, { status: 400, detail: "m" }],
    [{ code: 5, title: [], detail: null, retryable: "yes", type: "word" }, { status: 400 }],
    [null, { status: 400 }],
    ["text", { status: 400 }],
    [[1], { status: 400 }],
  ])("%j", (body, problem) => expect(readProblem(400, body)).toEqual(problem));
  test("limits the length of every text", () => {
    const { detail, code } = readProblem(400, { detail: "x".repeat(1e6), code: "y".repeat(1e6) });
    expect(detail!.length).toBeLessThanOrEqual(2001);
    expect(code!.length).toBeLessThanOrEqual(301);
  });
});
