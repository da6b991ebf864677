import { afterEach, describe, expect, test } from "vitest";
import type { ExchangeRequest, Transport } from "../../../src/api/http/exchange.ts";
import { type DebugEvent, logged } from "../../../src/edge/debug-log.ts";
import { answerJson, closePeers, startPeer, startRawPeer, transportTo } from "../api/peer.ts";

afterEach(closePeers);

function get(baseUrl: string, more: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return { method: "GET", baseUrl, path: "/v1/entities", headers: {}, ...more };
}

function loggingTransport(events: DebugEvent[]): Transport {
  return logged(transportTo(), { write: (event) => events.push(event), now: Date.now, userAgent: "integ-test/0" });
}

describe("the debug log", () => {
  test("shows harmless fields, and no secret in either direction", async () => {
    const peer = await startPeer((_, response) =>
      answerJson(
        response,
        200,
        { client_secret: "canary-body" },
        { "set-cookie": "a=canary-cookie", "x-secret": "canary-header", "retry-after": "3" },
      ),
    );
    const events: DebugEvent[] = [];
    await loggingTransport(events).exchange(
      get(peer.origin, {
        method: "POST",
        path: "/v1/x?page_token=p1&limit=5&client_secret=canary-query&apiKey=canary-key&%73ecret=canary-escaped",
        headers: {
          Authorization: "Basic canary-basic",
          Cookie: "canary-cookie",
          "Idempotency-Key": "k",
          accept: "application/json",
        },
        body: '{"secret":"canary-request"}',
      }),
    );
    expect(JSON.stringify(events)).not.toContain("canary");
    expect(events).toMatchObject([
      { kind: "request", id: 1, method: "POST", headers: { accept: "application/json", "user-agent": "integ-test/0" } },
      { kind: "response", id: 1, status: 200, headers: { "request-id": "req_1", "retry-after": "3" } },
    ]);
    expect(events[0]?.url).toBe(`${peer.origin}/v1/x?page_token=p1&limit=5&client_secret=…&apiKey=…&%73ecret=…`);
  });

  test("shows the attempt number of a request until its final response", async () => {
    const statuses = [503, 429, 200, 200, 404, 202, 500, 201, 201];
    const peer = await startPeer((_, response) => answerJson(response, statuses.shift() ?? 500, {}));
    const events: DebugEvent[] = [];
    const transport = loggingTransport(events);
    const create = (key: string): ExchangeRequest =>
      get(peer.origin, { method: "POST", headers: { "idempotency-key": key }, body: "{}" });
    const other = get(peer.origin, { path: "/v1/other" });
    const first = get(peer.origin);
    for (const request of [first, first, first, first, other, create("a"), create("a"), create("b"), create("a")])
      await transport.exchange(request);
    const attempts = (kind: string): number[] =>
      events.filter((event) => event.kind === kind).map(({ attempt }) => attempt);
    expect(attempts("request")).toEqual([1, 2, 3, 1, 1, 1, 2, 1, 3]);
    expect(attempts("response")).toEqual(attempts("request"));
  });

  test("counts a failed attempt", async () => {
    const peer = await startRawPeer((socket) => socket.once("data", () => socket.destroy()));
    const events: DebugEvent[] = [];
    const transport = loggingTransport(events);
    await transport.exchange(get(peer.origin));
    await transport.exchange(get(peer.origin));
    expect(events.map(({ kind, attempt }) => [kind, attempt])).toEqual([
      ["request", 1],
      ["broken", 1],
      ["request", 2],
      ["broken", 2],
    ]);
  });

  test("shows connection errors", async () => {
    const peer = await startRawPeer((socket) => socket.once("data", () => socket.destroy()));
    const events: DebugEvent[] = [];
    await loggingTransport(events).exchange(get(peer.origin));
    expect(events[1]).toMatchObject({ kind: "broken", id: 1, sent: true, reason: "closed" });
  });
});
