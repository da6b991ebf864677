import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRetryAfter } from "../../../../src/api/http/retry.ts";

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
    // A leap second is the grammar's own.
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
  ])("%j is absent", (value) => {
    expect(parseRetryAfter(value, now)).toBeUndefined();
  });

  test("a two-digit year is never more than fifty years ahead", () => {
    const in2026 = Date.UTC(2026, 0, 1);
    expect(parseRetryAfter("Friday, 01-Jan-27 00:00:00 GMT", in2026)).toBe(365 * 86_400);
    // 76 would be fifty years ahead to the year, 77 is 1977.
    expect(parseRetryAfter("Saturday, 01-Jan-77 00:00:00 GMT", in2026)).toBe(0);
  });

  test("every HTTP date in the future is its distance in seconds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000_000_000 }), (seconds) => {
        const value = new Date(now + seconds * 1000).toUTCString();
        expect(parseRetryAfter(value, now)).toBe(seconds);
      }),
    );
  });

  test("whatever else stands there is absent, or whole seconds from 0", () => {
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
