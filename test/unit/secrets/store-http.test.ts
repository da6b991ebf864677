import { describe, expect, it } from "vitest";
import type { ExchangeRequest, Transport } from "../../../src/api/http/exchange.ts";
import { Failure } from "../../../src/errors.ts";
import { waitSeconds, fieldOf, isTemporary, StoreClient, type StoreServer } from "../../../src/secrets/store-http.ts";

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function storeOf(answers: readonly (Answer | "lost" | { readonly hint: string })[], more: Partial<StoreServer> = {}) {
  const requests: ExchangeRequest[] = [];
  const slept: number[] = [];
  const exchange = async (request: ExchangeRequest) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)]!;
    requests.push(request);
    if (answer === "lost") return { kind: "broken", detail: "the connection was cut" };
    if ("hint" in answer) return { kind: "broken", detail: "no such name", hint: answer.hint };
    return {
      kind: "complete",
      status: answer.status,
      headers: answer.headers ?? {},
      body: Buffer.from(answer.body ?? "{}"),
    };
  };
  const client = new StoreClient({
    name: "Vault",
    baseUrl: "https://vault.example",
    headers: { "x-token": "t0ken" },
    token: "t0ken",
    http: async () => ({ exchange }) as unknown as Transport,
    sleep: async (ms) => void slept.push(ms),
    ...more,
  });
  return { client, requests, slept };
}

const get = { method: "GET", path: "/v1/x" } as const;

describe("a read", () => {
  it.each([
    ["with a response is sent once", [{ status: 200 }], 200, []],
    ["that is refused is sent once", [{ status: 404 }], 404, []],
    ["that gets an error is repeated", [{ status: 500 }, { status: 200 }], 200, [300]],
    ["that is lost is repeated", ["lost", { status: 200 }], 200, [300]],
    ["is repeated four times at most", [{ status: 503 }], 503, [300, 600, 1200, 2400]],
    ["waits as long as requested", [{ status: 429, headers: { "retry-after": "20" } }, { status: 200 }], 200, [20_000]],
    ["does not wait too long", [{ status: 429, headers: { "retry-after": "21" } }], 429, []],
    ["waits at least its own pause", [{ status: 429, headers: { "retry-after": "0" } }, { status: 200 }], 200, [300]],
  ] as const)("%s", async (_what, answers, status, slept) => {
    const store = storeOf(answers);
    expect((await store.client.read(get)).status).toBe(status);
    expect(store.slept).toEqual(slept);
    expect(store.requests).toHaveLength(slept.length + 1);
  });

  it("with a permanent error is not repeated", async () => {
    const store = storeOf([{ status: 503 }], { isLasting: async ({ status }) => status === 503 });
    expect((await store.client.read(get)).status).toBe(503);
    expect(store.slept).toEqual([]);
  });

  it.each([
    ["lost", "Check the store's address, and that the server runs.", "the connection was cut"],
    [{ hint: "Name another host." }, "Name another host.", "no such name"],
  ] as const)("that is lost each time fails (%j)", async (answer, hint, why) => {
    const store = storeOf([answer]);
    const failure = (await store.client.read(get).catch((error: unknown) => error)) as Failure;
    expect(failure).toMatchObject({
      kind: "unreachable",
      message: `Vault gave no response: ${why}.`,
      details: { hint },
    });
    expect(store.slept).toHaveLength(4);
  });

  it.each([
    [299, false],
    [300, true],
    [307, true],
    [399, true],
    [400, false],
  ])("with status %i is a redirect: %s", async (status, isRedirect) => {
    const reading = storeOf([{ status }]).client.read(get);
    const refusal = `Vault responded with a redirect (${status}), which integ does not follow.`;
    if (isRedirect) await expect(reading).rejects.toThrow(refusal);
    else expect((await reading).status).toBe(status);
  });

  it("of an interrupted command is not sent", async () => {
    const store = storeOf([{ status: 200 }], { signal: AbortSignal.abort(new Failure("failed", "Interrupted.")) });
    await expect(store.client.read(get)).rejects.toThrow("Interrupted.");
    expect(store.requests).toEqual([]);
  });
});

describe("a response", () => {
  it.each([
    ["of JSON", { status: 200, body: '{"a":1}' }, { kind: "response", body: { a: 1 } }],
    ["without a body", { status: 204, body: "" }, { kind: "response", body: undefined }],
    ["of a success that is not JSON", { status: 200, body: "<html>" }, { kind: "lost" }],
    ["of the last success that is not JSON", { status: 299, body: "<html>" }, { kind: "lost" }],
    ["of a redirect that is not JSON", { status: 300, body: "<html>" }, { kind: "response", body: undefined }],
    [
      "of an error that is not JSON",
      { status: 502, body: "<html>" },
      { kind: "response", body: undefined, text: "<html>" },
    ],
  ] as const)("%s", async (_what, answer, expected) => {
    expect(await storeOf([answer]).client.send(get)).toMatchObject(expected);
  });
});

describe("a request", () => {
  it.each([
    ["without a body", {}, { body: undefined, headers: { "x-token": "t0ken" }, secrets: ["t0ken"] }],
    [
      "with one",
      { body: { a: 1 } },
      { body: '{"a":1}', headers: { "x-token": "t0ken", "content-type": "application/json" } },
    ],
    [
      "of another type",
      { body: {}, contentType: "application/merge-patch+json" },
      { headers: { "x-token": "t0ken", "content-type": "application/merge-patch+json" } },
    ],
    ["with a secret", { body: {}, secret: "s3cret" }, { secrets: ["t0ken", "s3cret"] }],
  ])("%s", async (_what, request, expected) => {
    const store = storeOf([{ status: 200 }]);
    await store.client.send({ ...get, ...request });
    expect(store.requests[0]).toMatchObject({ baseUrl: "https://vault.example", path: "/v1/x", ...expected });
  });
});

describe("an error", () => {
  it.each([
    [200, {}, false],
    [400, {}, false],
    [403, {}, false],
    [403, { "retry-after": "1" }, true],
    [403, { "x-ratelimit-remaining": "0" }, true],
    [403, { "x-ratelimit-remaining": "1" }, false],
    [404, { "retry-after": "1" }, false],
    [408, {}, true],
    [429, {}, true],
    [499, {}, false],
    [500, {}, true],
    [503, {}, true],
  ])("%i with %j is temporary: %s", (status, headers, is) => {
    expect(isTemporary({ kind: "response", status, headers, text: "", body: undefined })).toBe(is);
  });

  const now = Date.parse("2026-11-21T02:00:00.000Z");
  const reset = String(now / 1000 + 60);
  it.each([
    [{}, undefined],
    [{ "retry-after": "7" }, 7],
    [{ "retry-after": "7", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset }, 7],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset }, 60],
    [{ "x-ratelimit-remaining": "1", "x-ratelimit-reset": reset }, undefined],
    [{ "x-ratelimit-reset": reset }, undefined],
    [{ "x-ratelimit-remaining": "0" }, undefined],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon" }, undefined],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "9".repeat(12) }, undefined],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1" }, 0],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, date: "Sat, 21 Nov 2026 02:00:20 GMT" }, 40],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, date: "soon" }, 60],
  ])("with %j requests a wait of %j seconds", (headers, seconds) => {
    expect(waitSeconds(headers, now)).toBe(seconds);
  });
});

it.each([
  [{ a: { b: 1 } }, ["a", "b"], 1],
  [{ a: 1 }, [], { a: 1 }],
  [{ a: null }, ["a", "b"], undefined],
  [{ a: "text" }, ["a", "length"], undefined],
  [undefined, ["a"], undefined],
  [{}, ["constructor"], undefined],
  [[5], ["0"], 5],
])("the field of %j at %j is %j", (value, names, found) => {
  expect(fieldOf(value, ...names)).toEqual(found);
});
