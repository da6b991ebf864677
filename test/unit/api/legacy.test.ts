// The legacy contract, of which the document shows little: rows under any name, a secret wherever it is.
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { accessKeyBody, type AccessKeyRequest, checkAccessKey } from "../../../src/api/access-keys.ts";
import { connect, type Service } from "../../../src/api/connect.ts";
import { BrokenBody } from "../../../src/api/json/json-body.ts";
import { readRows } from "../../../src/api/json/unknown-list.ts";
import { Failure } from "../../../src/errors.ts";
import { answerJson, closePeers, startPeer, transportTo } from "./peer.ts";

afterEach(closePeers);

const read = (text: string) => readRows({ text, value: JSON.parse(text) as unknown });

describe("readRows", () => {
  test.each([
    ['[{"id":1},{"id":2}]', undefined, 2],
    ["[]", undefined, 0],
    ['{"data":[{"id":1}]}', "data", 1],
    ['{"items":[]}', "items", 0],
    ['{"accessKeys":[{"id":1}],"warnings":[]}', "accessKeys", 1],
    ['{"tags":["a"],"keys":[{"id":1}]}', "keys", 1],
    ['{"nothing":[]}', "nothing", 0],
    ['{"data":[],"others":[{"id":1}]}', "data", 0],
  ])("%s", (text, wrappedIn, count) => {
    const { rows, ...rest } = read(text);
    expect(rows).toHaveLength(count);
    expect(rest).toEqual({ wrappedIn, saysMore: false });
  });

  test.each(["{}", "null", "5", '"x"', '{"a":[{}],"b":[{}]}', "[1]", '{"data":[null]}', '{"data":{"id":1}}', "[[]]"])(
    "%s is no list",
    (text) => {
      expect(() => read(text)).toThrow(BrokenBody);
    },
  );

  test.each(['{"data":[],"has_more":true}', '{"data":[],"nextPageToken":"x"}', '{"data":[],"next":"/x"}'])(
    "%s says that there are more",
    (text) => {
      expect(read(text).saysMore).toBe(true);
    },
  );

  test("rows are the API's own text, whatever surrounds them", () => {
    const text =
      ' { "a\\u0062" : "]" , "rows" : [ {"n":12345678901234567890,"s":"}]\\""} , { "é" : [1,{"x":[]}] } ] , "z":[] } ';
    expect(read(text).rows.map((row) => row.text)).toEqual([
      '{"n":12345678901234567890,"s":"}]\\""}',
      '{ "é" : [1,{"x":[]}] }',
    ]);
  });

  test("every row of every list parses to its value", () => {
    const row = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
    const list = fc.tuple(fc.array(row), fc.constantFrom(undefined, "data", 'x"y'), fc.constantFrom(0, 2, "\t"));
    fc.assert(
      fc.property(list, ([rows, name, indent]) => {
        const { rows: found } = read(
          JSON.stringify(name === undefined ? rows : { first: 1, [name]: rows, last: "[" }, null, indent),
        );
        expect(found.map(({ text }) => JSON.parse(text) as unknown)).toEqual(JSON.parse(JSON.stringify(rows)));
      }),
    );
  });
});

describe("checkAccessKey (§2.4, §8)", () => {
  const now = Date.UTC(2026, 10, 21);
  test.each<AccessKeyRequest>([
    { name: "x" },
    { name: "😀".repeat(255) },
    { name: "x", scopes: ["*", "push-ingest:*"] },
    { name: "x", keyType: "service_account" },
    { name: "x", expiresAt: "2026-11-21T00:00:01Z" },
    { name: "x", expiresAt: "2028-02-29T12:00:00.123+05:30" },
  ])("takes %j", (request) => expect(() => checkAccessKey(request, now)).not.toThrow());
  test.each([
    { name: "" },
    { name: "x".repeat(256) },
    { name: "x", scopes: [] },
    { name: "x", scopes: ["entity:read"] },
    { name: "x", keyType: "robot" },
    ...[
      "2026-11-21T00:00:00Z",
      "2025-01-01T00:00:00Z",
      "2027-02-29T00:00:00Z",
      "2027-02-31T00:00:00Z",
      "2027-13-01T00:00:00Z",
      "2027-01-01",
      "2027-01-01T00:00:00",
      "2027-01-01T25:00:00Z",
      "tomorrow",
      "1",
      "",
    ].map((expiresAt) => ({ name: "x", expiresAt })),
  ])("refuses %j", (request) => {
    expect(() => checkAccessKey(request as AccessKeyRequest, now)).toThrow(Failure);
  });
  test("the body says what was asked for, and nothing else", () => {
    expect(accessKeyBody({ name: "n" })).toBe('{"name":"n"}');
    expect(accessKeyBody({ scopes: ["*", "*"], keyType: "user_bound", name: "n", expiresAt: "e" })).toBe(
      '{"name":"n","expiresAt":"e","keyType":"user_bound","scopes":["*"]}',
    );
  });
});

async function serviceAnswering(status: number, body: unknown): Promise<{ service: Service; urls: () => string[] }> {
  const peer = await startPeer((_, response) =>
    body === undefined ? void response.writeHead(status).end() : answerJson(response, status, body),
  );
  const service = connect({
    transport: transportTo(),
    baseUrl: peer.origin,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    credential: () => Promise.reject(new Error("not asked for")),
    legacyCredential: async () => ({ kind: "access_token", token: "t" }),
    now: () => 0,
  });
  return { service, urls: () => peer.received.map(({ method, url }) => `${method} ${url}`) };
}

describe("access keys on the wire", () => {
  test.each([
    [201, { id: "ak_1", name: "n", secret: "s" }, "s"],
    [201, { id: "ak_1", secret: null }, undefined],
    [201, { data: { id: "ak_1", secret: "s" } }, "s"],
  ])("creation, %d %j", async (status, body, secret) => {
    const { service } = await serviceAnswering(status, body);
    expect(await service.accessKeys.create("{}")).toMatchObject({
      kind: "answered",
      value: { key: { id: "ak_1" }, secret },
    });
  });

  test.each([
    [201, { secret: "s3" }],
    [200, { id: "ak_1", secret: "s3" }],
    [500, { secret: "s3" }],
  ])("creation, %d %j: unknown, the secret kept", async (status, body) => {
    const { service, urls } = await serviceAnswering(status, body);
    expect(await service.accessKeys.create("{}")).toMatchObject({ kind: "unknown", salvage: { secret: "s3" } });
    expect(urls()).toHaveLength(1);
  });

  test.each([
    [200, { secret: "s" }, "s"],
    [201, { accessKey: { id: "a", secret: "s" } }, "s"],
    [200, { id: "a" }, undefined],
  ])("rotation, %d %j", async (status, body, secret) => {
    const { service, urls } = await serviceAnswering(status, body);
    expect(await service.accessKeys.rotate("a/b")).toMatchObject({ kind: "answered", value: { secret } });
    expect(urls()).toEqual(["POST /api/v1/access-keys/a%2Fb/rotate"]);
  });

  test.each([
    [204, undefined],
    [200, undefined],
    [200, { id: "a", status: "revoked" }],
    [202, {}],
  ])("revocation, %d %j", async (status, body) => {
    const { service } = await serviceAnswering(status, body);
    expect((await service.accessKeys.revoke("a")).kind).toBe("answered");
  });

  test("people: the default parameter, and those that replace it", async () => {
    const { service, urls } = await serviceAnswering(200, { people: [{ id: 1 }] });
    await service.people.search({ text: "a&b" });
    await service.people.search({
      params: [
        ["q", "é"],
        ["q", "2"],
      ],
    });
    await service.people.membership("p/1");
    expect(urls()).toEqual([
      "GET /api/v1/people/search?query=a%26b",
      "GET /api/v1/people/search?q=%C3%A9&q=2",
      "GET /api/v1/people/p%2F1/membership",
    ]);
    await expect(service.people.search({})).rejects.toBeInstanceOf(Failure);
    await expect(service.people.search({ params: [["", "x"]] })).rejects.toBeInstanceOf(Failure);
  });
});
