import * as fc from "fast-check";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { aSandbox, send, type RawResponse, basic, create, list } from "./a-sandbox.ts";
import { isFull, sampled } from "../../support/sample.ts";

const runs = isFull ? 5000 : 200;

const parts = "v1 api entities cohorts cohort_us_large members oauth_clients access-keys rotate".split(" ");
const segment = fc.oneof(
  fc.constantFrom(...parts, "people", "search", "membership", "access-tokens", "oauth", "token", "v1-reference"),
  fc.constantFrom("..", ".", "%2e%2e", "%00", "%ZZ", "__proto__", "constructor", "{id}", "openapi", "*", ""),
  fc.string().map(encodeURIComponent),
);
const query = fc.array(
  fc.tuple(
    fc.constantFrom("limit", "page_token", "type", "query", "__proto__", ""),
    fc.oneof(fc.string(), fc.constantFrom("0", "1", "500", "501", "1e3", "NaN", "person")),
  ),
  { maxLength: 3 },
);
const path = fc
  .tuple(fc.array(segment, { maxLength: 5 }), query)
  .map(([names, pairs]) => `/${names.join("/")}${pairs.length > 0 ? `?${new URLSearchParams(pairs).toString()}` : ""}`);

const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
});
const body = fc.oneof(
  fc.string(),
  fc.json(),
  fc.json({ maxDepth: 20 }),
  fc.constantFrom("null", "[]", '{"__proto__":{}}', '{"scopes":null}', "[".repeat(50_000), '"\\ud800"'),
  fc
    .record(
      {
        service_account_id: fc.oneof(fc.string(), fc.integer(), fc.constant("sa_us_automation")),
        scopes: fc.oneof(fc.array(fc.string()), fc.array(fc.anything()), fc.constant(["entity:read"])),
        name: fc.anything(),
        expiresAt: fc.oneof(
          fc.string(),
          fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        ),
        secret: fc.anything(),
      },
      { requiredKeys: [] },
    )
    .map(
      (value) =>
        JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner)) ?? "",
    ),
);

function expectValid({ status, text, headers }: RawResponse): void {
  expect(status).toBeGreaterThanOrEqual(200);
  expect(status, text).toBeLessThan(500);
  expect(headers["request-id"]).toMatch(/^req_us_[0-9a-f]{32}$/);
  const value: { status?: number; error?: string } = JSON.parse(text);
  if (status >= 400 && value.error === undefined) expect(value.status).toBe(status);
}

describe("any request", () => {
  it(`gets a valid response (${runs} of them)`, async () => {
    const { us } = await aSandbox();
    const credentials = [
      basic(us.api_key),
      { authorization: `Bearer ${us.access_token}`, "x-organization-id": us.organization_id },
      {},
    ];
    const request = fc.record({
      method: fc.constantFrom("GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"),
      path,
      body,
      as: fc.nat({ max: 2 }),
      mediaType: fc.oneof(fc.constantFrom("application/json", "application/x-www-form-urlencoded"), headerText),
      key: fc.option(fc.oneof(fc.constant("k"), headerText), { nil: undefined }),
      version: fc.option(fc.oneof(fc.constant("2026-07-01"), headerText), { nil: undefined }),
      authorization: fc.option(headerText, { nil: undefined, freq: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ method, path, body, as, mediaType, key, version, authorization }) => {
        const headers: Record<string, string> = { ...credentials[as], "content-type": mediaType };
        if (key !== undefined) headers["idempotency-key"] = key;
        if (version !== undefined) headers["service-version"] = version;
        if (authorization !== undefined) headers.authorization = authorization;
        const sent = method === "GET" ? {} : { body };
        expectValid(await send(us.base_url + path, { method, headers, ...sent }));
      }),
      { numRuns: runs },
    );
    expect((await list(us)).status).toBe(200);
  });

  it("that is not HTTP is refused, and the next is served", async () => {
    const { us } = await aSandbox();
    const port = Number(new URL(us.base_url!).port);
    const sendBytes = (bytes: Uint8Array | string) =>
      new Promise<string>((resolve) => {
        let text = "";
        const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
        socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        socket.on("error", () => undefined).on("close", () => resolve(text));
      });
    const refused = await sendBytes("nonsense\r\n\r\n");
    expect(refused).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*Request-Id: req_us_/);
    expect(JSON.parse(refused.split("\r\n\r\n")[1]!)).toMatchObject({ status: 400, code: "invalid_request" });
    const head = "POST /v1/oauth_clients HTTP/1.1\r\nHost: x\r\n";
    for (const bytes of [
      "\0\0\0\0",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${head}Content-Length: 100\r\n\r\nshort`,
      `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `${head}X: ${"y".repeat(100_000)}\r\n\r\n`,
      "GET http://elsewhere.example/v1/entities HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET //v1/entities HTTP/1.1\r\nHost: x\r\n\r\n",
      "CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /v1/entities HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ])
      await sendBytes(bytes);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => void (await sendBytes(bytes))),
      { numRuns: sampled(120) },
    );
    expect((await list(us)).status).toBe(200);
  });

  it("that is aborted halfway affects no other request", async () => {
    const { us } = await aSandbox();
    const port = Number(new URL(us.base_url!).port);
    const sockets = await Promise.all(
      Array.from(
        { length: 50 },
        () =>
          new Promise<ReturnType<typeof connect>>((resolve) => {
            const socket = connect(port, "127.0.0.1", () => {
              socket.write("POST /v1/oauth_clients HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{", () =>
                resolve(socket),
              );
            });
            socket.on("error", () => undefined);
          }),
      ),
    );
    expect((await create(us, "k")).status).toBe(201);
    for (const socket of sockets) socket.destroy();
    expect((await create(us, "k")).status).toBe(201);
  });
});

describe("a hundred concurrent clients", () => {
  it("each get their own results", async () => {
    const entities = isFull ? 2000 : 400;
    const { us } = await aSandbox({ entities });
    const walk = async (limit: number): Promise<number> => {
      const ids = new Set<string>();
      let token: string | null = null;
      do {
        const next: string = token === null ? "" : `&page_token=${token}`;
        const page: { data: { id: string }[]; next_page_token: string | null } = JSON.parse(
          (await list(us, `?limit=${limit}${next}`)).text,
        );
        for (const { id } of page.data) ids.add(id);
        token = page.next_page_token;
      } while (token !== null);
      return ids.size;
    };
    const sizes = await Promise.all(Array.from({ length: 100 }, (_, index) => walk(100 + index * 4)));
    expect(new Set(sizes)).toEqual(new Set([entities]));
  });

  it("can change things in one state file", async () => {
    const stateDir = (await import("./a-sandbox.ts")).folder();
    const { us } = await aSandbox({ stateDir });
    const legacy = {
      authorization: `Bearer ${us.access_token}`,
      "x-organization-id": us.organization_id,
      "content-type": "application/json",
    };
    const url = `${us.base_url}/api/v1/access-keys`;
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        send(url, { method: "POST", headers: legacy, body: JSON.stringify({ name: `key ${index}` }) }),
      ),
    );
    expect(made.every(({ status }) => status === 201)).toBe(true);
    const names: { data: { name: string }[] } = JSON.parse((await send(url, { headers: legacy })).text);
    expect(names.data.filter(({ name }) => /^key \d+$/.test(name))).toHaveLength(100);
  });
});
