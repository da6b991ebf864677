import { describe, expect, test } from "vitest";
import { parseDuration, parseLifetime } from "../../../src/commands/options/global.ts";

describe("a bare number", () => {
  test.each(["90", "1", "1.5", " 30 "])("is neither a lifetime nor an age: %j", (text) =>
    expect(() => parseLifetime(text, "--max-age")).toThrow("no unit"),
  );
  test.each([
    ["90", 90_000],
    ["0", 0],
  ])("is a time limit in seconds: %s", (text, ms) => expect(parseDuration(text, "--timeout")).toBe(ms));
  test.each([
    ["0", 0],
    ["90s", 90_000],
    ["90d", 7_776_000_000],
    ["PT30S", 30_000],
  ])("is a lifetime only with a unit, or if it is 0: %s", (text, ms) =>
    expect(parseLifetime(text, "--max-age")).toBe(ms),
  );
});
