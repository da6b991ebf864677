import type { Entry } from "../../../src/journal/entry.ts";

export const now = Date.parse("2026-11-22T03:00:00.000Z");
export const scope = { baseUrl: "https://us.example", organizationId: "o1" };

export const own = "pol_of_this_test";

let number = 0;

export function entry(over: Partial<Entry>): Entry {
  number += 1;
  const createdAt = new Date(now - 61 * 86_400_000).toISOString();
  return {
    id: `e${String(number).padStart(4, "0")}`,
    operation: "oauth_client.create",
    state: "done",
    idempotency_key: null,
    profile: "prod",
    profile_id: "p",
    organization_id: null,
    region: "us",
    base_url: scope.baseUrl,
    service_version: "2026-07-01",
    request_text: '{"service_account_id":"sa","scopes":["entity:read"]}',
    fingerprint: "",
    replaces: null,
    parent: null,
    created_at: createdAt,
    updated_at: createdAt,
    resource_id: null,
    attempts: 1,
    request_ids: [],
    clock_offset_ms: null,
    last_error: null,
    destination: null,
    replaced_by: null,
    detail: {},
    sequence: 1,
    ...over,
  };
}
