import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Attempt } from "../../src/api/call/attempt.ts";
import type { RawPage } from "../../src/api/entities-and-cohorts.ts";
import { checkPage } from "../../src/api/pages.ts";
import { Failure } from "../../src/errors.ts";
import { type Json, type JsonObject, readShapes } from "./case.ts";
import { AnsweringServer, jsonAnswer } from "./client-answers.ts";
import { type OpenClient, openClient } from "./client-service.ts";

const server = new AnsweringServer();
let service: OpenClient;

beforeAll(async () => {
  service = openClient(await server.start(), { kind: "access_token", token: "a-token" });
});

afterAll(() => {
  service.close();
  server.close();
});

describe("a field that differs from the documentation is an error", () => {
  const shapes = readShapes();
  const whole = (name: string): JsonObject => ({ ...shapes[name], id: "the-id", service_account_id: "the-account" });
  const wrong = (value: Json | undefined): Json => (typeof value === "string" ? 7 : "not-this");
  const create = (): Promise<Attempt<unknown>> => service.oauthClients.create("{}", "k");
  const get = (): Promise<Attempt<unknown>> => service.oauthClients.get("the-id");
  const revoke = (): Promise<Attempt<unknown>> => service.oauthClients.revoke("the-id");
  const malformed = { kind: "unknown", reason: "malformed" };

  for (const [verb, shape, status, send] of [
    ["create", "receipt", 201, create],
    ["get", "oauth_client", 200, get],
    ["revoke", "oauth_client", 200, revoke],
  ] as const)
    it.each(Object.keys(shapes[shape]!))(`oauth client, ${verb}: %s (§2.3)`, async (field) => {
      const { [field]: value, ...rest } = whole(shape);
      server.next = jsonAnswer(status, whole(shape));
      expect(await send()).toMatchObject({ kind: "answered" });
      server.next = jsonAnswer(status, { ...rest, [field]: wrong(value || "") });
      expect(await send(), "wrong type").toMatchObject(malformed);
      // The secret is optional, because a retrieved client does not include it.
      server.next = jsonAnswer(status, rest);
      expect(await send(), "left out").toMatchObject(field === "client_secret" ? { kind: "answered" } : malformed);
    });

  it("unknown fields, statuses and scopes are accepted unchanged (§9 rule 3)", async () => {
    const later = { ...whole("oauth_client"), status: "resting", scopes: ["new:one"], added: { n: 1 } };
    server.next = jsonAnswer(200, later);
    expect(await get()).toMatchObject({ kind: "answered", value: later, body: Buffer.from(JSON.stringify(later)) });
  });

  it("a response about another client is an error (§4.2)", async () => {
    server.next = jsonAnswer(200, { ...whole("oauth_client"), id: "another" });
    for (const send of [get, revoke]) expect(await send()).toMatchObject(malformed);
  });

  it.each(Object.keys(shapes.list!))("list envelope: %s (§2.1)", async (field) => {
    const { [field]: value, ...rest } = { ...shapes.list };
    for (const body of [rest, { ...rest, [field]: wrong(value) }])
      for (const ask of [() => service.entities.page({}), () => service.cohorts.membersPage("c", {})]) {
        server.next = jsonAnswer(200, body);
        const attempt = await ask();
        expect(attempt.kind).toBe("answered");
        expect(() => checkPage((attempt as { value: RawPage }).value, { what: "it" })).toThrow(Failure);
      }
  });

  it("has_more that contradicts the page token is an error (§2.1)", async () => {
    for (const [next_page_token, has_more] of [
      [null, true],
      ["", true],
      ["t", false],
    ] as const) {
      server.next = jsonAnswer(200, { ...shapes.list, next_page_token, has_more });
      const attempt = await service.entities.page({});
      expect(() => checkPage((attempt as { value: RawPage }).value, { what: "it" })).toThrow(/ failed: /);
    }
  });

  it("a created access key without an id is an error that keeps the secret (§2.4)", async () => {
    const { id: _id, ...rest } = whole("created_access_key");
    server.next = jsonAnswer(201, { ...rest, secret: "the-secret" });
    expect(await service.accessKeys.create("{}")).toMatchObject({ ...malformed, salvage: { secret: "the-secret" } });
  });

  it("a creation answered with 200 does not count as created (§4.2)", async () => {
    server.next = jsonAnswer(200, whole("receipt"));
    expect(await create()).toMatchObject(malformed);
  });
});
