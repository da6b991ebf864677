import { describe, expect, it } from "vitest";
import { keysIn, keysListed } from "../../../src/commands/keys/pick-key.ts";
import { clientsIn, requestsIn } from "../../../src/commands/oauth-clients/clients.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { entry, scope } from "../policy/an-entry.ts";

const here = scope.baseUrl;

describe("clients", () => {
  it("are those of this address, newest first, each once, in their last known state", () => {
    const entries = [
      entry({ operation: "oauth_client.revoke", resource_id: "c_revoked", request_text: "" }),
      entry({ operation: "oauth_client.revoke", resource_id: "c_tried", request_text: "", state: "unknown" }),
      entry({ operation: "oauth_client.revoke", resource_id: "c_new", base_url: "https://eu.example.com" }),
      entry({ resource_id: "c_pending", state: "pending" }),
      entry({ resource_id: "c_new", detail: { client_id: "cid_new" } }),
      entry({ resource_id: "c_new", created_at: "2026-01-01T00:00:00.000Z" }),
      entry({ resource_id: "c_elsewhere", base_url: "https://eu.example.com" }),
      entry({ resource_id: "c_revoked" }),
      entry({ resource_id: "c_tried" }),
      entry({ resource_id: "c_replaced", state: "replaced" }),
      entry({ resource_id: null, state: "refused", replaces: "lost", attempts: 1 }),
      entry({ id: "lost", resource_id: "c_lost", state: "secret_lost" }),
      entry({ resource_id: null, state: "unknown" }),
      entry({ operation: "oauth_client.rotate", resource_id: "c_new", detail: { old_client: "c_old" } }),
      entry({ operation: "oauth_client.rotate", detail: { old_client: "c_kept", keep_old: true } }),
      entry({ operation: "oauth_client.rotate", detail: { old_client: "c_waits" }, state: "waiting" }),
      ...["c_old", "c_kept", "c_waits"].map((resource_id) => entry({ resource_id })),
    ];
    expect(clientsIn(entries, here).map(({ id, status, client_id }) => [id, status, client_id])).toEqual([
      ["c_pending", "pending", null],
      ["c_new", "active", "cid_new"],
      ["c_revoked", "revoked", null],
      ["c_tried", "active", null],
      ["c_replaced", "revoked", null],
      ["c_lost", "revoked", null],
      ["c_old", "revoked", null],
      ["c_kept", "active", null],
      ["c_waits", "active", null],
    ]);
  });
});

describe("requests", () => {
  it("are those of creations at this address that were not refused: a typing error is not offered again", () => {
    const body = (account: string): string => JSON.stringify({ service_account_id: account, scopes: ["s"] });
    const entries = [
      entry({ request_text: body("sa_mistyped"), state: "refused" }),
      entry({ request_text: body("sa_unknown"), state: "unknown" }),
      entry({ request_text: body("sa_done") }),
      entry({ request_text: body("sa_elsewhere"), base_url: "https://eu.example.com" }),
      entry({ operation: "oauth_client.rotate", request_text: '{"id":"c1"}' }),
    ];
    expect(requestsIn(entries, here).map((request) => request.service_account_id)).toEqual(["sa_unknown", "sa_done"]);
  });
});

describe("keys", () => {
  const key = (given: Partial<Entry>): Entry =>
    entry({ operation: "access_key.create", request_text: '{"name":"ci"}', ...given });

  it("are those of this address not known to be revoked, each once, the profile's own last", () => {
    const entries = [
      key({ operation: "access_key.revoke", request_text: '{"id":"k_1"}', detail: { key_id: "k_1" } }),
      key({ operation: "access_key.revoke", detail: { key_id: "k_2" }, state: "unknown", resource_id: "k_2" }),
      key({ operation: "access_key.rotate", resource_id: "k_5", detail: { mode: "replacement", old_key: "k_4" } }),
      key({ operation: "access_key.rotate", resource_id: "k_6", detail: { key_id: "k_6" }, request_text: "" }),
      key({ resource_id: "k_own" }),
      key({ resource_id: "k_1" }),
      key({ resource_id: "k_2" }),
      key({ resource_id: "k_3", state: "replaced" }),
      key({ resource_id: "k_4" }),
      key({ resource_id: "k_5" }),
      key({ resource_id: "k_7", base_url: "https://eu.example.com" }),
      entry({ resource_id: "oac_1" }),
    ];
    expect(keysIn(entries, { baseUrl: here, own: "k_own" })).toEqual([
      { value: "k_5", hint: "ci, 2026-09-22" },
      { value: "k_6", hint: "2026-09-22" },
      { value: "k_2", hint: "ci, 2026-09-22" },
      { value: "k_own", hint: "the key that this profile uses" },
    ]);
    expect(keysIn(entries, { baseUrl: here }).map(({ value }) => value)).toEqual(["k_5", "k_6", "k_own", "k_2"]);
  });

  it("are those of the service that are not revoked, with name, owner, status and age", () => {
    const createdAt = "2026-11-18T00:00:00.000Z";
    const rows = [
      { id: "k_own", name: "mine", status: "active", createdAt },
      { id: "k_1", name: "ci", keyType: "service_account", status: "active", createdAt },
      { id: "k_2", name: "old", status: "revoked", createdAt },
      { id: "k_3", boundEmail: "a@example.com" },
      { name: "without an id" },
    ].map((value) => ({ value, text: JSON.stringify(value) }));
    const now = Date.parse("2026-11-21T00:00:00.000Z");
    expect(keysListed({ rows }, { own: "k_own", now })).toEqual([
      { value: "k_1", hint: "ci, service_account, active, created 3 days ago" },
      { value: "k_3", hint: "a@example.com" },
      { value: "k_own", hint: "mine, the key that this profile uses, active, created 3 days ago" },
    ]);
  });
});
