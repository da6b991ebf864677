import { describe, expect, it } from "vitest";
import { hashOf } from "../../../src/sandbox/credentials.ts";
import { aSandbox, send, basic, control, create, list } from "./a-sandbox.ts";

interface Log {
  readonly faults: { fault: string; seen: number; met: number }[];
  readonly requests: Record<string, unknown>[];
}

describe("the control address", () => {
  it("shows every request, and no credential", async () => {
    const { us } = await aSandbox();
    const made = JSON.parse((await create(us, "k1")).text) as { client_id: string; client_secret: string };
    await send(us.token_endpoint!, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: "client_credentials", ...made }).toString(),
    });
    await send(us.access_token_endpoint!, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret: us.access_key_secret }),
    });
    const log = (await control(us)) as Log;
    expect(log.requests).toHaveLength(3);
    expect(log.requests[0]).toMatchObject({
      method: "POST",
      path: "/v1/oauth_clients",
      authorization_sha256: hashOf(basic(us.api_key).authorization!),
      idempotency_key: "k1",
      status: 201,
      body: expect.stringContaining(us.service_account_id),
    });
    expect(log.requests[1]).toMatchObject({
      path: "/oauth/token",
      body: null,
      authorization_sha256: null,
      status: 200,
    });
    const text = JSON.stringify(log);
    for (const secret of [us.api_key, made.client_secret, us.access_key_secret, basic(us.api_key).authorization!])
      expect(text).not.toContain(secret);
  });

  it("adds faults, counts them, and removes them and the log", async () => {
    const { us } = await aSandbox();
    await control(us, "", { fault: "GET /v1/* status=503 times=2" });
    expect((await list(us)).status).toBe(503);
    expect(((await control(us)) as Log).faults).toEqual([{ fault: "GET /v1/* status=503 times=2", seen: 1, met: 1 }]);
    expect((await send(us.control_url!, { method: "DELETE" })).status).toBe(200);
    expect((await list(us)).status).toBe(200);
    expect(await control(us)).toMatchObject({ faults: [], requests: [{ status: 200 }] });
  });

  it("belongs to one region", async () => {
    const sandbox = await aSandbox();
    const { us, eu } = sandbox.describe();
    await control(us, "", { fault: "* * status=503" });
    expect((await list(us)).status).toBe(503);
    expect((await list(eu)).status).toBe(200);
  });

  it("cannot be guessed, nor used by the other region's address", async () => {
    const sandbox = await aSandbox();
    const { us, eu } = sandbox.describe();
    const elsewhere = eu.control_url!.replace(eu.base_url!, us.base_url!);
    for (const url of [`${us.base_url}/sandbox-control/`, `${us.control_url}x`, elsewhere])
      expect((await send(url)).status).toBe(404);
  });

  it.each([
    ["", { fault: "nonsense" }],
    ["", { more: 1 }],
    ["/oauth_clients/nobody", { status: "revoked" }],
    ["/nothing/x", {}],
    ["/organization", { oauth_enabled: "yes" }],
    ["/contract_versions", { version: "latest" }],
    ["/access_keys/ak_us_idle", { secret: "x" }],
  ])("refuses POST %s %j with an error object", async (path, body) => {
    const { us } = await aSandbox();
    const response = await send(us.control_url + path, { method: "POST", body: JSON.stringify(body) });
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.status).toBeLessThan(500);
    expect(JSON.parse(response.text)).toMatchObject({ status: response.status, detail: expect.any(String) });
    expect((await list(us)).status).toBe(200);
  });

  it("refuses other methods and bodies that are not JSON", async () => {
    const { us } = await aSandbox();
    expect((await send(us.control_url!, { method: "POST", body: "{" })).status).toBe(400);
    expect((await send(us.control_url!, { method: "PUT", body: "{}" })).status).toBe(405);
    expect((await send(`${us.control_url}/%ZZ`)).status).toBe(400);
  });

  it("completes a pending client, sets any state, and shows who holds each credential", async () => {
    const { us } = await aSandbox({ faults: ["POST /v1/oauth_clients pending=99 times=1"] });
    const { id } = JSON.parse((await create(us, "k")).text) as { id: string };
    expect(await control(us, `/oauth_clients/${id}`, { status: "active" })).toMatchObject({
      status: "active",
      client_id: expect.any(String),
    });
    expect(await control(us, "/oauth_clients")).toMatchObject([{ id, status: "active", idempotency_key: "k" }]);
    for (const status of ["disabled", "expired", "revoked"])
      expect(await control(us, `/oauth_clients/${id}`, { status })).toMatchObject({ status });
    expect(JSON.stringify(await control(us, "/oauth_clients"))).not.toContain("ash");
    expect(JSON.stringify(await control(us, "/access_keys"))).not.toContain("Hash");
    expect(JSON.stringify(await control(us, "/api_keys"))).not.toContain("Hash");
  });
});
