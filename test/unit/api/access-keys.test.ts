// The API document shows little of the legacy contract's access keys, so a response may wrap the key in an object.
import { afterEach, describe, expect, test } from "vitest";
import { accessKeyBody, type AccessKeyRequest, checkAccessKey } from "../../../src/api/access-keys.ts";
import { Failure } from "../../../src/errors.ts";
import { closePeers, serviceAnswering } from "./peer.ts";

afterEach(closePeers);

describe("checkAccessKey (§2.4, §8)", () => {
  const now = Date.UTC(2026, 10, 21);
  test.each<AccessKeyRequest>([
    { name: "x" },
    { name: "😀".repeat(255) },
    { name: "x", scopes: ["*", "push-ingest:*"] },
    { name: "x", keyType: "service_account" },
    { name: "x", expiresAt: "2026-11-21T00:00:01Z" },
    { name: "x", expiresAt: "2028-02-29T12:00:00.123+05:30" },
  ])("accepts %j", (request) => expect(() => checkAccessKey(request, now)).not.toThrow());
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
  test("the body has only the requested fields", () => {
    expect(accessKeyBody({ name: "n" })).toBe('{"name":"n"}');
    expect(accessKeyBody({ scopes: ["*", "*"], keyType: "user_bound", name: "n", expiresAt: "e" })).toBe(
      '{"name":"n","expiresAt":"e","keyType":"user_bound","scopes":["*"]}',
    );
  });
});

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
  ])("creation, %d %j: outcome unknown, the secret kept", async (status, body) => {
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
});
