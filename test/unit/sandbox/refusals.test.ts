// A refusal names the field and its valid values: §7 requires an explanation for people.
import { describe, expect, it } from "vitest";
import { aSandbox, send, basic } from "./a-sandbox.ts";

type Case = readonly [body: unknown, param: string, detail: string];

const scopes = ["entity:read"];
const client: readonly Case[] = [
  [{ scopes }, "service_account_id", "service_account_id: it must be given, as string."],
  [{ service_account_id: 5, scopes }, "service_account_id", "service_account_id: it must be string."],
  [{ service_account_id: "", scopes }, "service_account_id", "service_account_id: it must have at least 1 character."],
  [{ service_account_id: "sa" }, "scopes", "scopes: it must be given, as array."],
  [{ service_account_id: "sa", scopes: [] }, "scopes", "scopes: it must have at least 1 item."],
  [
    { service_account_id: "sa", scopes: Array.from({ length: 101 }, (_, n) => `s${n}`) },
    "scopes",
    "scopes: it must have at most 100 items.",
  ],
  [
    { service_account_id: "sa", scopes: ["a".repeat(4097)] },
    "scopes",
    "scopes: they must not be longer than 4096 characters together.",
  ],
  [
    { service_account_id: "sa", scopes: ["entity:*"] },
    "scopes",
    "scopes: they must be explicit permissions without wildcards or spaces.",
  ],
  [{ service_account_id: "sa", scopes, more: 1 }, "more", "The body has an unknown field."],
];
const key: readonly Case[] = [
  [{}, "name", "name: it must be given, as string."],
  [{ name: "" }, "name", "name: it must have at least 1 character."],
  [{ name: "n".repeat(256) }, "name", "name: it must have at most 255 characters."],
  [{ name: "n", keyType: "other" }, "keyType", "keyType: it must be one of user_bound, service_account."],
  [{ name: "n", scopes: ["all"] }, "scopes", "scopes: it must be one of *, push-ingest:*."],
  [{ name: "n", expiresAt: "tomorrow" }, "expiresAt", "expiresAt: it must be an ISO 8601 timestamp with its offset."],
];

describe("a refused credential", () => {
  it("of the legacy contract is explained", async () => {
    const { us } = await aSandbox();
    const detailOf = async (headers: Readonly<Record<string, string>>): Promise<string> => {
      const given = { ...headers, "x-organization-id": us.organization_id };
      const response = await send(`${us.base_url}/api/v1/access-keys`, { headers: given });
      expect(response.status).toBe(401);
      return JSON.parse(response.text).detail;
    };
    expect(await detailOf({})).toContain("no Authorization header");
    expect(await detailOf(basic(us.api_key))).toContain("is not Bearer");
    expect(await detailOf({ authorization: `Bearer ${us.api_key}` })).toContain("not one of the us region's");
  });
});

describe("a refused body", () => {
  it.each(client)("of an OAuth client: %j", async (body, param, detail) => {
    const { us } = await aSandbox();
    const headers = { ...basic(us.api_key), "content-type": "application/json", "idempotency-key": "k" };
    const url = `${us.base_url}/v1/oauth_clients`;
    const response = await send(url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(JSON.parse(response.text)).toMatchObject({ status: 400, param, detail });
  });

  it.each(key)("of an access key: %j", async (body, param, detail) => {
    const { us } = await aSandbox();
    const headers = {
      authorization: `Bearer ${us.access_token}`,
      "x-organization-id": us.organization_id,
      "content-type": "application/json",
    };
    const url = `${us.base_url}/api/v1/access-keys`;
    const response = await send(url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(JSON.parse(response.text)).toMatchObject({ status: 400, param, detail });
  });
});
