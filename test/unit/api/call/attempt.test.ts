// The advice for a refusal depends on the attempt's resource, never on the words of the failure.
import { describe, expect, test } from "vitest";
import { failureOf, type Resource } from "../../../../src/api/call/attempt.ts";

function hintOf(status: number, resource?: Resource): string | undefined {
  const attempt = { kind: "refused", status, problem: {}, resource } as const;
  return failureOf(attempt, { what: "do an OAuth thing with an access key", change: true }).details.hint;
}

describe("failureOf", () => {
  test("mentions OAuth access only for an OAuth client that is not found", () => {
    expect(hintOf(404, "oauth_client")).toContain("OAuth access is enabled");
    expect(hintOf(404, "access_key")).not.toContain("OAuth");
    expect(hintOf(404)).not.toContain("OAuth");
  });

  test("explains a conflict as the document does for that resource", () => {
    expect(hintOf(409, "oauth_client")).toContain("limit of 20 clients");
    expect(hintOf(409, "access_key")).toBeUndefined();
    expect(hintOf(409)).toBeUndefined();
  });

  test("explains a conflict of the idempotency key before one of the resource", () => {
    const attempt = { kind: "refused", status: 409, problem: { code: "idempotency_key_reuse" } } as const;
    const { details } = failureOf({ ...attempt, resource: "oauth_client" }, { what: "x", change: true });
    expect(details.hint).toContain("--idempotency-key");
  });
});
