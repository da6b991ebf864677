import { afterEach, describe, expect, test } from "vitest";
import { connect } from "../../../src/api/connect.ts";
import { checkRaw, type RawRequest } from "../../../src/api/raw.ts";
import { Failure } from "../../../src/errors.ts";
import { answerJson, closePeers, startPeer, transportTo } from "./peer.ts";

afterEach(closePeers);

const get = (path: string, more: Partial<RawRequest> = {}): RawRequest => ({ method: "GET", path, ...more });

describe("checkRaw", () => {
  test.each([
    ["/v1", "v1"],
    ["/v1/entities", "v1"],
    ["/v1/entities?limit=1&x=//..%2f", "v1"],
    ["/v1/a%20b", "v1"],
    ["/v1-reference/openapi-v1.json", "v1"],
    ["/api/v1", "legacy"],
    ["/api/v1/people/search?query=a", "legacy"],
    ["/v1/...", "v1"],
    ["/v1/a..b", "v1"],
  ])("%s belongs to %s", (path, contract) => expect(checkRaw(get(path))).toBe(contract));

  const refused = {
    "another path": ["", "v1", "/", "/v2", "/v10", "/v1x/y", "/V1", "/api", "/api/v2", "/api/v10", "/oauth/token"],
    "another host": ["//evil.example/v1", "https://evil.example/v1", "http://x", "/v1@evil.example", "/v1:80/x"],
    "a way out": ["/v1/..", "/v1/../x", "/v1/./x", "/v1/..;/x", "/v1/%2e%2e/x", "/v1/%2E./x", "/v1/%252e%252e/x"],
    "something encoded": ["/v1/a%2fb", "/v1/a%5cb", "/v1/%00", "/v1/%0d%0ax", "/v1/%7f", "/v1/%zz", "/v1/%"],
    "no path": ["/v1//x", "/v1/a\\b", "/v1/a b", "/v1/\n", "/v1/é", "/v1#x", "/v1/x#y"],
  };
  test.each(Object.values(refused).flat())("refuses %j", (path) => {
    expect(() => checkRaw(get(path))).toThrow(Failure);
  });

  test.each(["Authorization", "authorization", "COOKIE", "X-Organization-Id", "Service-Version", "User-Agent"])(
    "refuses the header %s",
    (name) => {
      expect(() => checkRaw(get("/v1/x", { headers: { [name]: "x" } }))).toThrow(Failure);
    },
  );

  test.each([
    "/v1/oauth_clients",
    "/v1/oauth_clients/",
    "/v1/oauth_clients?x=1",
    "/v1/oauth%5fclients",
    "/v1/%6fauth_clients",
    "/v1/oauth_clients;a=b",
    "/v1/OAuth_Clients",
  ])("POST %s needs an explicit key", (path) => {
    const request = get(path, { method: "POST", body: "{}" });
    expect(() => checkRaw(request)).toThrow("idempotency key");
    expect(checkRaw({ ...request, headers: { "idempotency-KEY": "k" } })).toBe("v1");
  });
});

test("each contract gets its own credential, and any 2xx is success", async () => {
  const peer = await startPeer((_, response) => response.writeHead(206, { "content-type": "text/csv" }).end("a,b"));
  const { raw } = connect({
    transport: transportTo(),
    baseUrl: peer.origin,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    credential: async () => ({ kind: "api_key", key: "k", style: "key-as-user" }),
    legacyCredential: async () => ({ kind: "access_token", token: "t" }),
    now: () => 0,
  });
  const answer = await raw.send(get("/v1/x"));
  expect(answer.kind === "answered" && [answer.value.status, answer.value.body.toString()]).toEqual([206, "a,b"]);
  await raw.send(get("/api/v1/x", { method: "DELETE" }));
  const [v1, legacy] = peer.received.map(({ headers }) => headers);
  expect([v1!.authorization, v1!["service-version"], v1!["x-organization-id"]]).toEqual([
    "Basic azo=",
    "2026-07-01",
    undefined,
  ]);
  expect([legacy!.authorization, legacy!["service-version"], legacy!["x-organization-id"]]).toEqual([
    "Bearer t",
    undefined,
    "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
  ]);
  await expect(raw.send(get("/v1/../x"))).rejects.toBeInstanceOf(Failure);
  expect(peer.received).toHaveLength(2);
});

test("the published document is requested without a credential unless one is asked for", async () => {
  let open = true;
  const peer = await startPeer(({ headers }, response) =>
    answerJson(response, open || headers.authorization ? 200 : 401, { openapi: "3.1.0" }),
  );
  const { contract } = connect({
    transport: transportTo(),
    baseUrl: peer.origin,
    credential: async () => ({ kind: "api_key", key: "k", style: "key-as-user" }),
    legacyCredential: () => Promise.reject(new Error("not asked for")),
    now: () => 0,
  });
  expect(await contract.published()).toMatchObject({ kind: "answered", value: { openapi: "3.1.0" } });
  expect(peer.received[0]!.headers.authorization).toBeUndefined();
  open = false;
  expect((await contract.published("2026-07-01")).kind).toBe("answered");
  expect(peer.received.map(({ url, headers }) => [url, headers.authorization])).toEqual([
    ["/v1-reference/openapi-v1.json", undefined],
    ["/v1-reference/openapi/2026-07-01.json", undefined],
    ["/v1-reference/openapi/2026-07-01.json", "Basic azo="],
  ]);
});
