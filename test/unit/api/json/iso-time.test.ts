import { describe, expect, test } from "vitest";
import { fullTime, isDate, isTime } from "../../../../src/api/json/iso-time.ts";

describe("iso-time", () => {
  test.each([
    ["2026-07-01", true],
    ["2028-02-29", true],
    ["2026-02-29", false],
    ["2026-02-30", false],
    ["2026-13-01", false],
    ["2026-00-10", false],
    ["2026-7-1", false],
    ["2026-07-01T00:00Z", false],
  ])("%s is a date: %s", (text, is) => expect(isDate(text)).toBe(is));

  test.each([
    ["2027-01-31T00:00Z", "2027-01-31T00:00:00.000Z"],
    ["2027-01-31T00:00:00Z", "2027-01-31T00:00:00.000Z"],
    ["2027-01-31T00:00:00.123456Z", "2027-01-31T00:00:00.123Z"],
    ["2027-01-31T02:00:00+02:00", "2027-01-31T00:00:00.000Z"],
    ["2027-02-30T00:00:00Z", "2027-02-30T00:00:00Z"],
    ["2027-01-31T00:00:00", "2027-01-31T00:00:00"],
    ["tomorrow", "tomorrow"],
  ])("%s is sent as %s", (text, full) => {
    expect(fullTime(text)).toBe(full);
    expect(isTime(fullTime(text))).toBe(full.endsWith(".000Z") || full.endsWith(".123Z"));
  });
});
