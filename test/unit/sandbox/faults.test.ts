// Every fault as it looks from the other end of the wire.
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { hostileTexts, strangeBody } from "../../../src/sandbox/delivery.ts";
import { aSandbox, ask, basic, control, create, list, setTime } from "./a-sandbox.ts";

const faulty = (...faults: string[]) => aSandbox({ faults });

async function clientsOf(us: Parameters<typeof control>[0]): Promise<{ status: string; idempotency_key: string }[]> {
  return (await control(us, "/oauth_clients")) as { status: string; idempotency_key: string }[];
}

describe("answers in place of the service's", () => {
  it("status, with and without Retry-After", async () => {
    const { us } = await faulty("GET /v1/* status=503 times=1", "GET /v1/* status=429 retry-after=7 after=1");
    const first = await list(us);
    expect([first.status, first.headers["retry-after"]]).toEqual([503, undefined]);
    expect(JSON.parse(first.text)).toMatchObject({ status: 503, retryable: true, code: "service_unavailable" });
    const second = await list(us);
    expect([second.status, second.headers["retry-after"]]).toEqual([429, "7"]);
  });

  it("Retry-After as a date, and as any text", async () => {
    setTime(Date.UTC(2026, 10, 21, 4, 8));
    const { us } = await aSandbox({
      faults: ["GET /v1/* retry-after=date+90 times=1", "GET /v1/* retry-after=soon"],
    });
    expect(await list(us)).toMatchObject({ status: 429, headers: { "retry-after": "Sat, 21 Nov 2026 04:09:30 GMT" } });
    expect(await list(us)).toMatchObject({ status: 429, headers: { "retry-after": "soon" } });
  });

  it("redirect", async () => {
    const { us } = await faulty("GET /v1/* redirect=https://elsewhere.example/x");
    expect(await list(us)).toMatchObject({ status: 307, headers: { location: "https://elsewhere.example/x" } });
  });

  it("status that leaves nothing, the full effect, a given up reservation, or an uncertain creation", async () => {
    const { us } = await faulty(
      "POST /v1/oauth_clients status=500 times=1",
      "POST /v1/oauth_clients status=502 effect=kept after=1 times=1",
      "POST /v1/oauth_clients effect=abandoned after=2 times=1",
      "POST /v1/oauth_clients effect=uncertain after=3 times=1",
    );
    for (const [key, status] of [
      ["a", 500],
      ["b", 502],
      ["c", 503],
      ["d", 503],
    ] as const)
      expect((await create(us, key)).status).toBe(status);
    const clients = await clientsOf(us);
    expect(clients.map(({ status, idempotency_key }) => [idempotency_key, status])).toEqual([
      ["b", "active"],
      ["d", "pending"],
    ]);
  });
});

describe("broken connections", () => {
  it("dropped before anything happened", async () => {
    const { us } = await faulty("POST /v1/oauth_clients drop=before times=1");
    await expect(create(us, "k")).rejects.toThrow("socket hang up");
    expect(await clientsOf(us)).toEqual([]);
  });

  it("dropped after it took effect", async () => {
    const { us } = await faulty("POST /v1/oauth_clients drop=after times=1");
    await expect(create(us, "k")).rejects.toThrow("socket hang up");
    expect(await clientsOf(us)).toMatchObject([{ status: "active", idempotency_key: "k" }]);
    expect(JSON.parse((await create(us, "k")).text)).toMatchObject({ status: "active", client_secret: null });
    expect(await clientsOf(us)).toHaveLength(1);
  });

  it("cut after so many bytes of the body", async () => {
    const { us } = await faulty("GET /v1/* cut=40");
    const came = await list(us);
    expect(came).toMatchObject({ status: 200, whole: false });
    expect(came.text).toHaveLength(40);
    expect(Number(came.headers["content-length"])).toBeGreaterThan(40);
  });

  it.each([0, 1, 12, 60, 110])("cut after %i bytes of the head", async (bytes) => {
    const { us } = await faulty(`GET /v1/* cut=wire:${bytes}`);
    await expect(list(us)).rejects.toThrow(/hang up|Parse Error|ECONNRESET/);
  });

  it("cut beyond its end is whole", async () => {
    const { us } = await faulty("GET /v1/* cut=wire:1000000");
    const came = await list(us, "?limit=2");
    expect(came.whole).toBe(true);
    expect(JSON.parse(came.text).data).toHaveLength(2);
  });
});

describe("time", () => {
  it("latency holds nobody else up", async () => {
    const { us } = await faulty("POST /v1/oauth_clients latency=400ms times=1");
    const started = performance.now();
    const slow = create(us, "slow").then(() => performance.now() - started);
    const quick = create(us, "quick").then(() => performance.now() - started);
    expect(await quick).toBeLessThan(await slow);
    expect(await slow).toBeGreaterThan(390);
  });

  it("a slow answer is whole in the end", async () => {
    const { us } = await faulty("GET /v1/* slow=8000");
    const started = performance.now();
    const came = await list(us, "?limit=10");
    expect(JSON.parse(came.text).data).toHaveLength(10);
    expect(performance.now() - started).toBeGreaterThan((came.text.length / 8000) * 1000 - 250);
  });
});

describe("bodies", () => {
  it("html, truncated, empty and deep", async () => {
    const { us } = await faulty(
      ...["html", "truncated", "empty", "deep"].map((kind, index) => `GET /v1/* body=${kind} after=${index} times=1`),
    );
    const html = await list(us);
    expect(html.headers["content-type"]).toContain("text/html");
    expect(html.text).toMatch(/^<!DOCTYPE html>/);
    const truncated = await list(us);
    expect(truncated.whole).toBe(true);
    expect(() => JSON.parse(truncated.text)).toThrow();
    expect((await list(us)).text).toBe("");
    expect((await list(us)).text).toMatch(/^\[{200000}\]{200000}$/);
    expect((await list(us)).status).toBe(200);
  });

  it("enormous: a reader that goes away is enough", async () => {
    const { us, describe } = await faulty("GET /v1/* body=enormous times=1");
    const leave = new AbortController();
    const answer = await fetch(`${us.base_url}/v1/entities`, { headers: basic(us.api_key), signal: leave.signal });
    let size = 0;
    for await (const piece of answer.body!) {
      size += piece.length;
      if (size > 5_000_000) break;
    }
    leave.abort();
    expect(size).toBeGreaterThan(5_000_000);
    expect((await list(describe().us)).status).toBe(200);
  });

  it("a gzip bomb is sound gzip, and more than a gigabyte", () => {
    const { headers, pieces } = strangeBody("gzip-bomb", "");
    const members = [...pieces].map((piece) => Buffer.from(piece));
    const packed = Buffer.concat(members);
    expect(headers["Content-Encoding"]).toBe("gzip");
    expect(packed.length).toBeLessThan(10_000_000);
    expect(gunzipSync(members[0]!).length * members.length).toBeGreaterThan(2 ** 30);
    expect(() => gunzipSync(packed, { maxOutputLength: 50_000_000 })).toThrow(/larger than/);
  });

  it("comes after the effect", async () => {
    const { us } = await faulty("POST /v1/oauth_clients body=html times=1");
    expect((await create(us, "k")).text).toMatch(/^<!DOCTYPE/);
    expect(await clientsOf(us)).toHaveLength(1);
  });
});

describe("lists that break the rules", () => {
  it.each([
    ["broken", { has_more: true, next_page_token: null }],
    ["token-at-end", { has_more: false, next_page_token: expect.any(String) }],
    ["empty-token", { has_more: true, next_page_token: "" }],
  ])("envelope=%s", async (how, wanted) => {
    const { us } = await faulty(`GET /v1/* envelope=${how}`);
    expect(JSON.parse((await list(us)).text)).toMatchObject(wanted);
  });

  it("envelope=no-token-key and no-data", async () => {
    const { us } = await faulty("GET /v1/* envelope=no-token-key times=1", "GET /v1/* envelope=no-data after=1");
    expect(Object.keys(JSON.parse((await list(us)).text))).toEqual(["object", "data", "has_more"]);
    expect(Object.keys(JSON.parse((await list(us)).text))).toEqual(["object", "next_page_token", "has_more"]);
  });

  it("token=repeated gives back what was sent", async () => {
    const { us } = await faulty("GET /v1/* token=repeated");
    const token: string = JSON.parse((await list(us, "?limit=5")).text).next_page_token;
    expect(JSON.parse((await list(us, `?limit=5&page_token=${token}`)).text).next_page_token).toBe(token);
  });

  it("text=hostile is in names and details", async () => {
    const { us } = await faulty("* * text=hostile");
    const page: { data: { display_name: string }[] } = JSON.parse((await list(us, "?limit=12")).text);
    expect(page.data.map((row) => row.display_name)).toEqual(hostileTexts);
    expect(hostileTexts).toContain(JSON.parse((await list(us, "?limit=0")).text).detail);
  });
});

describe("creation and revocation", () => {
  it("secret=withheld: active, and no secret ever", async () => {
    const { us } = await faulty("POST /v1/oauth_clients secret=withheld times=1");
    expect(JSON.parse((await create(us, "k")).text)).toMatchObject({ status: "active", client_secret: null });
    expect(JSON.parse((await create(us, "k")).text)).toMatchObject({ status: "active", client_secret: null });
  });

  it("cleanup for a while holds the slot for as long", async () => {
    const now = Date.UTC(2026, 10, 21);
    setTime(now);
    const { us } = await aSandbox({ faults: ["DELETE * cleanup=30s"] });
    const { id } = JSON.parse((await create(us, "k")).text) as { id: string };
    await ask(`${us.base_url}/v1/oauth_clients/${id}`, { method: "DELETE", headers: basic(us.api_key) });
    const slots = async () => ((await control(us, "/service_accounts")) as { slots: number }[])[0]!.slots;
    expect(await slots()).toBe(1);
    setTime(now + 30_000);
    expect(await slots()).toBe(0);
  });
});
