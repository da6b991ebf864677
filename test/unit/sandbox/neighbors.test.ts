import { expect, it } from "vitest";
import { documentChanges, parseFault } from "../../../src/sandbox/fault.ts";
import { aSandbox, send, basic, type RawResponse, create, list } from "./a-sandbox.ts";

type Region = Awaited<ReturnType<typeof aSandbox>>["us"];

function createAs(us: Region, given: { key: string; account?: string; idempotencyKey?: string }): Promise<RawResponse> {
  return send(`${us.base_url}/v1/oauth_clients`, {
    method: "POST",
    headers: {
      ...basic(given.key),
      "content-type": "application/json",
      "idempotency-key": given.idempotencyKey ?? "k",
    },
    body: JSON.stringify({ service_account_id: given.account ?? us.service_account_id, scopes: ["entity:read"] }),
  });
}

it("the sandbox keeps two organizations of a region apart", async () => {
  const { us } = await aSandbox();
  const there = basic(us.other_organization_api_key);
  const { id } = JSON.parse((await create(us, "k")).text) as { id: string };
  expect((await send(`${us.base_url}/v1/oauth_clients/${id}`, { headers: there })).status).toBe(404);
  expect((await send(`${us.base_url}/v1/oauth_clients/${id}`, { method: "DELETE", headers: there })).status).toBe(404);
  expect((await createAs(us, { key: us.other_organization_api_key, idempotencyKey: "m" })).status).toBe(404);
  const account = us.other_organization_service_account_id;
  expect((await createAs(us, { key: us.api_key, account, idempotencyKey: "l" })).status).toBe(404);
  // Idempotency keys are per organization: the other organization can use the same key.
  const own = await createAs(us, { key: us.other_organization_api_key, account });
  expect(JSON.parse(own.text)).toMatchObject({ status: "active", service_account_id: account });
  expect(
    (await send(`${us.base_url}/v1/oauth_clients/${JSON.parse(own.text).id}`, { headers: basic(us.api_key) })).status,
  ).toBe(404);
  const { next_page_token, data } = JSON.parse((await list(us, "?limit=5")).text);
  const answer = await send(`${us.base_url}/v1/entities?limit=5&page_token=${next_page_token}`, { headers: there });
  expect(JSON.parse(answer.text)).toMatchObject({ status: 400, param: "page_token" });
  const others = await send(`${us.base_url}/v1/entities?limit=5`, { headers: there });
  expect(JSON.parse(others.text).data).not.toEqual(data);
  expect((await send(`${us.base_url}/v1/cohorts/${us.cohort_ids[0]}/members`, { headers: there })).status).toBe(404);
});

it("the sandbox treats another account's key as another principal", async () => {
  const { us } = await aSandbox();
  expect((await create(us, "k")).status).toBe(201);
  const other = await createAs(us, { key: us.other_account_api_key });
  expect(JSON.parse(other.text)).toMatchObject({ status: 409, code: "idempotency_key_reuse" });
  expect((await createAs(us, { key: us.second_api_key })).status).toBe(201);
  const { next_page_token } = JSON.parse((await list(us, "?limit=5")).text);
  const answer = await send(`${us.base_url}/v1/entities?limit=5&page_token=${next_page_token}`, {
    headers: basic(us.other_account_api_key),
  });
  expect(JSON.parse(answer.text)).toMatchObject({ status: 400, param: "page_token" });
});

it.each(["/v1/entitites", "/v2/*", "/v1/oauth_clients/a/b", "/api/v1/access-keys/*/turn", "/v1/cohorts//members"])(
  "refuses a fault for %s: no operation has this path",
  (path) => expect(() => parseFault(`GET ${path} status=500`)).toThrow("no path"),
);

it.each([
  "/*",
  "*",
  "/v1/*",
  "/v1/entities",
  "/v1/oauth_clients/*",
  "/v1/oauth_clients/oac_1",
  "*/rotate",
  "/v1/c*s/x/mem*",
])("accepts a fault for %s", (path) => expect(() => parseFault(`GET ${path} status=500`)).not.toThrow());

it.each(documentChanges)("the sandbox publishes a document with %s if a fault requests it", async (change) => {
  const { us } = await aSandbox({ faults: [`GET /*/openapi* document=${change} times=2`] });
  const paths = ["/v1-reference/openapi-v1.json", "/api/v1-reference/openapi.json"];
  const publish = (path: string): Promise<string> => send(us.base_url + path).then(({ text }) => text);
  const changed = [await publish(paths[0]!), await publish(paths[1]!)];
  const unchanged = [await publish(paths[0]!), await publish(paths[1]!)];
  for (const [index, text] of changed.entries()) {
    expect(JSON.parse(text).openapi).toBe("3.1.0");
    expect(text).not.toBe(unchanged[index]);
  }
});
