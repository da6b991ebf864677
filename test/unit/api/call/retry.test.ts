import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Attempt } from "../../../../src/api/call/attempt.ts";
import {
  mayRetryRead,
  nextDelay,
  parseRetryAfter,
  retryRead,
  type RetryReadOptions,
} from "../../../../src/api/call/retry.ts";
import { Failure } from "../../../../src/errors.ts";

describe("nextDelay", () => {
  const state = fc.record({
    attempt: fc.integer({ min: 1, max: 1000 }),
    elapsedMs: fc.integer({ min: 0, max: 1_000_000 }),
    retryForMs: fc.integer({ min: 0, max: 1_000_000 }),
    retryAfterSeconds: fc.option(fc.nat({ max: 10_000 }), { nil: undefined }),
    chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });

  test("a wait that fits is never shorter than Retry-After, and without one never longer than 30 s", () => {
    fc.assert(
      fc.property(state, ({ chance, ...rest }) => {
        const delay = nextDelay({ ...rest, random: () => chance });
        if (delay === null) return;
        expect(rest.elapsedMs + delay).toBeLessThanOrEqual(rest.retryForMs);
        expect(delay).toBeGreaterThanOrEqual((rest.retryAfterSeconds ?? 0) * 1000);
        if (rest.retryAfterSeconds === undefined) expect(delay).toBeLessThan(30_000);
      }),
    );
  });

  test("a wait that does not fit is skipped, never shortened", () => {
    const at = { attempt: 1, elapsedMs: 0, retryForMs: 10_000, random: () => 0 };
    expect(nextDelay({ ...at, retryAfterSeconds: 10 })).toBe(10_000);
    expect(nextDelay({ ...at, retryAfterSeconds: 11 })).toBeNull();
    expect(nextDelay({ ...at, retryAfterSeconds: Number.MAX_SAFE_INTEGER })).toBeNull();
  });

  test("0 allows one attempt", () => {
    expect(nextDelay({ attempt: 1, elapsedMs: 0, retryForMs: 0, random: () => 0 })).toBeNull();
  });

  test("uses full jitter: from 0 to a cap that doubles with each attempt", () => {
    const at = { elapsedMs: 0, retryForMs: 1e9 };
    expect(nextDelay({ ...at, attempt: 1, random: () => 0 })).toBe(0);
    expect([1, 2, 3, 7, 8].map((attempt) => nextDelay({ ...at, attempt, random: () => 0.999999 }))).toEqual([
      499, 999, 1999, 29_999, 29_999,
    ]);
  });
});

const answered: Attempt<string> = { kind: "answered", status: 200, value: "ok", body: Buffer.from('"ok"') };
const refused = (status: number, retryAfterSeconds?: number): Attempt<never> => ({
  kind: "refused",
  status,
  problem: { status, request_id: "req_9" },
  retryAfterSeconds,
});
const unknown = (
  reason: "status" | "closed" | "timeout" | "malformed" | "too_large" | "redirect" | "interrupted",
): Attempt<never> => ({
  kind: "unknown",
  reason,
  status: reason === "status" ? 503 : undefined,
  detail: "it broke",
});
const notSent = (reason: "dns" | "refused" | "tls" | "proxy" | "timeout" | "unsendable"): Attempt<never> => ({
  kind: "not_sent",
  reason,
  detail: "no connection",
});

function clockOf(waits: number[]): RetryReadOptions["clock"] {
  let time = 0;
  return {
    elapsed: () => time,
    async sleep(ms) {
      waits.push(ms);
      time += ms;
    },
  };
}

async function run(attempts: Attempt<string>[], options: Partial<RetryReadOptions> = {}) {
  const waits: number[] = [];
  let calls = 0;
  const outcome = await retryRead(async () => attempts[Math.min(calls++, attempts.length - 1)]!, {
    what: "list entities",
    clock: clockOf(waits),
    retryForMs: 60_000,
    random: () => 0.5,
    ...options,
  }).catch((error: unknown) => error);
  return { outcome, waits, calls };
}

describe("retryRead", () => {
  test.each([
    refused(429),
    unknown("status"),
    unknown("closed"),
    unknown("timeout"),
    notSent("refused"),
    notSent("timeout"),
  ])("continues after %j", async (first) => {
    const { outcome, calls } = await run([first, first, answered]);
    expect(outcome).toBe(answered);
    expect(calls).toBe(3);
  });

  test.each([
    [refused(400), "failed"],
    [refused(401), "auth"],
    [refused(403), "auth"],
    [refused(404), "not_found"],
    [refused(409), "conflict"],
    [unknown("malformed"), "unreachable"],
    [unknown("too_large"), "unreachable"],
    [unknown("redirect"), "unreachable"],
    [unknown("interrupted"), "interrupted"],
    [notSent("dns"), "unreachable"],
    [notSent("tls"), "unreachable"],
    [notSent("proxy"), "unreachable"],
    [notSent("unsendable"), "unreachable"],
  ])("stops immediately on %j: %s", async (first, kind) => {
    const { outcome, calls } = await run([first, answered]);
    expect(calls).toBe(1);
    expect(outcome).toBeInstanceOf(Failure);
    expect((outcome as Failure).kind).toBe(kind);
  });

  test.each([
    [refused(429), "rate_limited"],
    [unknown("status"), "failed"],
    [unknown("closed"), "unreachable"],
    [notSent("timeout"), "unreachable"],
  ])("a constant %j ends as %s after the time limit", async (always, kind) => {
    const { outcome, waits } = await run([always]);
    expect((outcome as Failure).kind).toBe(kind);
    const waited = waits.reduce((sum, ms) => sum + ms, 0);
    expect(waited).toBeGreaterThan(30_000);
    expect(waited).toBeLessThanOrEqual(60_000);
  });

  test("gives up after three refused connections in a row, within 10 s", async () => {
    const { outcome, waits, calls } = await run([notSent("refused")]);
    expect([calls, (outcome as Failure).kind]).toEqual([3, "unreachable"]);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(10_000);
    const refusals = [notSent("refused"), notSent("refused")];
    expect((await run([...refusals, unknown("closed"), ...refusals, answered])).outcome).toBe(answered);
  });

  test("repeats a read after 429, even if retryable is false (§8)", () => {
    for (const retryable of [true, false, undefined])
      expect(mayRetryRead({ ...refused(429), problem: { retryable } } as Attempt<never>)).toBe(true);
  });

  test("follows the error's retryable field, and the defaults without it", () => {
    const problem = (attempt: Attempt<never>, retryable: boolean): Attempt<never> =>
      ({ ...attempt, problem: { retryable } }) as Attempt<never>;
    for (const attempt of [refused(400), refused(409), unknown("status")]) {
      expect(mayRetryRead(problem(attempt, true))).toBe(true);
      expect(mayRetryRead(problem(attempt, false))).toBe(false);
    }
    expect(mayRetryRead(problem(unknown("malformed"), true))).toBe(false);
  });

  test("waits for Retry-After, and gives up if that does not fit", async () => {
    expect((await run([refused(429, 7), answered])).waits).toEqual([7000]);
    const { outcome, waits } = await run([refused(429, 61), answered]);
    expect(waits).toEqual([]);
    expect((outcome as Failure).kind).toBe("rate_limited");
    expect((outcome as Failure).details.problem?.request_id).toBe("req_9");
  });

  test("makes one attempt if retryForMs is 0", async () => {
    expect((await run([unknown("status"), answered], { retryForMs: 0 })).calls).toBe(1);
  });

  test("starts no attempt after an interruption, and ends with its failure", async () => {
    const interruption = new AbortController();
    const terminated = new Failure("terminated", "SIGTERM");
    const attempt = async (): Promise<Attempt<string>> => {
      interruption.abort(terminated);
      return unknown("closed");
    };
    const options = { what: "x", clock: clockOf([]), retryForMs: 1000, random: () => 0, signal: interruption.signal };
    await expect(retryRead(attempt, options)).rejects.toBe(terminated);
    let calls = 0;
    const counting = async (): Promise<Attempt<string>> => (calls++, answered);
    await expect(retryRead(counting, options)).rejects.toBe(terminated);
    expect(calls).toBe(0);
  });

  test("repeats the query to a busy name server, but not for an unknown name", () => {
    expect(mayRetryRead(notSent("dns"))).toBe(false);
    expect(mayRetryRead({ kind: "not_sent", reason: "dns", detail: "busy", temporary: true })).toBe(true);
  });
});

const now = Date.UTC(1994, 10, 6, 8, 49, 7);

describe("parseRetryAfter (RFC 9110 §10.2.3, §5.6.7)", () => {
  test.each([
    ["0", 0],
    ["120", 120],
    ["007", 7],
    ["99999999999999999999999", Number.MAX_SAFE_INTEGER],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 30],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 30],
    ["Sun Nov  6 08:49:37 1994", 30],
    ["Sat, 05 Nov 1994 08:49:37 GMT", 0],
    // The grammar of HTTP dates allows a leap second.
    ["Sun, 06 Nov 1994 08:49:60 GMT", 53],
    ["Thu, 29 Feb 1996 00:00:00 GMT", (Date.UTC(1996, 1, 29) - now) / 1000],
  ])("%j is %j seconds", (value, seconds) => {
    expect(parseRetryAfter(value, now)).toBe(seconds);
  });

  test.each([
    undefined,
    "",
    " 5",
    "5 ",
    "-1",
    "+5",
    "1.5",
    "1e3",
    "0x10",
    "٣",
    "5, 6",
    "Infinity",
    "tomorrow",
    "1994-11-06T08:49:37Z",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "sun, 06 nov 1994 08:49:37 gmt",
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 31 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:00 GMT",
    "Wed, 29 Feb 1995 00:00:00 GMT",
    "Sunday, 06-Nov-1994 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "Sun, 06 Nov 1994 08:49:37 GMT\n",
  ])("%j counts as absent", (value) => {
    expect(parseRetryAfter(value, now)).toBeUndefined();
  });

  test("a two-digit year is never more than fifty years ahead", () => {
    const in2026 = Date.UTC(2026, 0, 1);
    expect(parseRetryAfter("Friday, 01-Jan-27 00:00:00 GMT", in2026)).toBe(365 * 86_400);
    // 77 means 1977, not 2077.
    expect(parseRetryAfter("Saturday, 01-Jan-77 00:00:00 GMT", in2026)).toBe(0);
  });

  test("gives the seconds until every HTTP date in the future", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000_000_000 }), (seconds) => {
        const value = new Date(now + seconds * 1000).toUTCString();
        expect(parseRetryAfter(value, now)).toBe(seconds);
      }),
    );
  });

  test("any other text is absent, or whole seconds from 0", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\dA-Za-z :,-]{0,40}$/)), (value) => {
        const seconds = parseRetryAfter(value, now);
        if (seconds === undefined) return;
        expect(/^\d+$/.test(value) || value.includes(":")).toBe(true);
        expect(Number.isSafeInteger(seconds) && seconds >= 0).toBe(true);
      }),
    );
  });
});
