import { describe, expect, test } from "vitest";
import {
  type FetchPage,
  type Page,
  type PageRequest,
  SeenTokens,
  readPages,
  type PagesOptions,
} from "../../../src/api/pages.ts";
import { Failure } from "../../../src/errors.ts";

function body(rows: number, next: string | null, from = 0): Buffer {
  const data = Array.from({ length: rows }, (_, i) => ({ id: `e${from + i}` }));
  return Buffer.from(JSON.stringify({ object: "list", data, next_page_token: next, has_more: next !== null }));
}

function idsOf({ rows }: Page): string[] {
  return rows.map(({ text }) => (JSON.parse(text) as { id: string }).id);
}

/** A service whose page tokens are offsets. `shorten` makes pages shorter than requested. */
function serviceOf(total: number, shorten: (limit: number) => number = (limit) => limit) {
  const requests: PageRequest[] = [];
  const fetchPage: FetchPage = async (request) => {
    requests.push(request);
    const from = Number(request.pageToken ?? 0);
    const to = Math.min(total, from + shorten(request.limit ?? 25));
    return { value: { body: body(to - from, to < total ? String(to) : null, from), requestId: `r${from}` } };
  };
  return { requests, fetchPage };
}

const what = { what: "list entities" };

async function collect(fetchPage: FetchPage, options: Partial<PagesOptions> = {}) {
  const ids: string[] = [];
  let failure: unknown;
  try {
    for await (const page of readPages(fetchPage, { ...what, ...options })) ids.push(...idsOf(page));
  } catch (error) {
    failure = error;
  }
  return { ids, failure };
}

describe("a listing", () => {
  test.each([0, 1, 9, 10, 11, 100])("has all of %d rows, once each and in order, from any start", async (total) => {
    const expected = Array.from({ length: total }, (_, i) => `e${i}`);
    const service = serviceOf(total);
    expect(await collect(service.fetchPage, { limit: 10 })).toEqual({ ids: expected, failure: undefined });
    expect(service.requests.map(({ limit }) => limit).every((limit) => limit === 10)).toBe(true);
    if (total > 3)
      expect((await collect(service.fetchPage, { limit: 10, pageToken: "3" })).ids).toEqual(expected.slice(3));
  });

  test("continues after short and empty pages", async () => {
    let turn = 0;
    const { fetchPage } = serviceOf(30, () => [3, 1, 7, 2][turn++ % 4]!);
    expect((await collect(fetchPage, { limit: 10 })).ids).toHaveLength(30);
    const pages: Record<string, Buffer> = { start: body(0, "a"), a: body(0, "b"), b: body(2, null) };
    const empties: FetchPage = async ({ pageToken = "start" }) => ({
      value: { body: pages[pageToken]!, requestId: undefined },
    });
    expect((await collect(empties)).ids).toEqual(["e0", "e1"]);
  });

  test("requests the next page before it returns the last, and is never two ahead", async () => {
    const service = serviceOf(50);
    const requests: number[] = [];
    for await (const page of readPages(service.fetchPage, { ...what, limit: 10 }))
      requests.push(page.rows.length && service.requests.length);
    expect(requests).toEqual([2, 3, 4, 5, 5]);
  });

  test("frees a page's memory when the next is requested, unless others use it", async () => {
    const bodies = [body(20_000, "next"), Buffer.from("shared memory"), body(20_000, null)];
    const [first, shared, last] = bodies as [Buffer, Buffer, Buffer];
    const small = Buffer.from(body(1, "last"));
    const pages: Record<string, Buffer> = { start: first, next: small, last };
    const fetchPage: FetchPage = async ({ pageToken = "start" }) => ({
      value: { body: pages[pageToken]!, requestId: undefined },
    });
    const seen: number[] = [];
    for await (const page of readPages(fetchPage, what)) {
      expect(idsOf(page)).toHaveLength(page.rows.length);
      seen.push(first.length);
    }
    const canRelease = "transfer" in ArrayBuffer.prototype;
    expect([seen[0]! > Buffer.poolSize, seen[1]]).toEqual([true, canRelease ? 0 : seen[0]]);
    expect([last.length === 0, small.length > 0, shared.toString()]).toEqual([canRelease, true, "shared memory"]);
  });

  test("sends its request before a consumer can block: only promises and two turns of the event loop lie between", async () => {
    const { fetchPage } = serviceOf(30);
    let left = 0;
    const given: number[] = [];
    const sending: FetchPage = async (request) => {
      for (let promise = 0; promise < 100; promise++) await Promise.resolve();
      setImmediate(() => setImmediate(() => left++));
      return fetchPage(request);
    };
    for await (const _ of readPages(sending, { ...what, limit: 10 })) given.push(left);
    expect(given.slice(0, 2)).toEqual([2, 3]);
  });

  test("sends tokens back unchanged", async () => {
    const token = 'a]b}"\\é\u2028 %2F';
    const requests: (string | undefined)[] = [];
    const fetchPage: FetchPage = async ({ pageToken }) => {
      requests.push(pageToken);
      return { value: { body: pageToken === undefined ? body(1, token) : body(1, null), requestId: undefined } };
    };
    await collect(fetchPage);
    expect(requests).toEqual([undefined, token]);
  });

  test.each([
    ["itself", { start: "a", a: "a" }, 2],
    ["the previous page", { start: "a", a: "b", b: "a" }, 3],
    ["the first page", { start: "b", b: "start" }, 2],
  ])("ends at a token that leads back to %s, after the valid rows", async (_, next, good) => {
    const requests: (string | undefined)[] = [];
    const fetchPage: FetchPage = async ({ pageToken = "start" }) => {
      requests.push(pageToken);
      return { value: { body: body(1, (next as Record<string, string>)[pageToken]!), requestId: undefined } };
    };
    const { ids, failure } = await collect(fetchPage, { pageToken: "start" });
    expect(ids).toHaveLength(good);
    expect((failure as Failure).kind).toBe("unreachable");
    expect((failure as Failure).message).toContain("repeated a page token");
    expect((failure as Failure).details).toMatchObject({ endsList: true });
    // integ detects a repeated token without another request.
    expect(requests).toHaveLength(good);
  });

  test.each([
    '{"object":"list"',
    "<html></html>",
    '{"object":"list","data":[1],"next_page_token":"x","has_more":true}',
    "",
  ])("ends at a broken page (%s) after the valid ones, without any of its rows", async (text) => {
    const fetchPage: FetchPage = async ({ pageToken }) => ({
      value: { body: pageToken === undefined ? body(2, "a") : Buffer.from(text), requestId: "req_7" },
    });
    const { ids, failure } = await collect(fetchPage);
    expect(ids).toEqual(["e0", "e1"]);
    expect(failure).toMatchObject({ kind: "unreachable", details: { problem: { request_id: "req_7" } } });
  });

  test("ends at a page that failed with its error, after the valid ones", async () => {
    const gone = new Failure("rate_limited", "too many");
    const fetchPage: FetchPage = async ({ pageToken }) => {
      if (pageToken !== undefined) throw gone;
      return { value: { body: body(2, "a"), requestId: undefined } };
    };
    const { ids, failure } = await collect(fetchPage);
    expect(ids).toEqual(["e0", "e1"]);
    expect(failure).toBe(gone);
  });

  test("refuses a page with two tokens, and follows neither", async () => {
    const lying = Buffer.from(
      '{"object":"list","next_page_token":"right","has_more":true,"data":[{"id":"x"}],"next_page_token":"wrong"}',
    );
    const requests: (string | undefined)[] = [];
    const fetchPage: FetchPage = async ({ pageToken }) => {
      requests.push(pageToken);
      return { value: { body: pageToken === undefined ? lying : body(1, null), requestId: undefined } };
    };
    const { ids, failure } = await collect(fetchPage);
    expect(ids).toEqual([]);
    expect(failure).toBeInstanceOf(Failure);
    expect(requests).toEqual([undefined]);
  });

  test("cancels the pending request when the consumer stops early", async () => {
    const signals: AbortSignal[] = [];
    const { fetchPage } = serviceOf(100);
    for await (const page of readPages((request) => (signals.push(request.signal), fetchPage(request)), {
      ...what,
      limit: 10,
    }))
      if (page.rows.length > 0) break;
    expect(signals).toHaveLength(2);
    expect(signals.every((signal) => signal.aborted)).toBe(true);
  });

  test.each([1, 9, 10, 11, 19, 20, 21, 35, 49, 50, 51])(
    "requests exactly %d rows, and the last token is exact",
    async (max) => {
      const service = serviceOf(50);
      let taken = 0;
      let token: string | null = null;
      for await (const page of readPages(service.fetchPage, { ...what, limit: 10, left: () => max - taken })) {
        taken += page.rows.length;
        token = page.nextPageToken;
      }
      expect(taken).toBe(Math.min(max, 50));
      expect(token).toBe(max < 50 ? String(max) : null);
      for (const { pageToken, limit } of service.requests)
        expect(Number(pageToken ?? 0) + limit!).toBeLessThanOrEqual(max);
    },
  );
});

describe("SeenTokens", () => {
  test("detects a short circle immediately, a long one in bounded memory", () => {
    for (const length of [1, 2, 9999, 25_000]) {
      const seen = new SeenTokens();
      let steps = 0;
      while (seen.add(`t${steps % length}`)) if (++steps > 4 * length) throw new Error(`not noticed: ${length}`);
      if (length < 10_000) expect(steps).toBe(length);
    }
  });

  test("never confuses two tokens", () => {
    const seen = new SeenTokens();
    for (let i = 0; i < 50_000; i++) if (!seen.add(`t${i}`)) throw new Error(`t${i}`);
  });
});
