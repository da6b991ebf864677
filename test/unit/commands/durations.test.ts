import { describe, expect, test } from "vitest";
import { parseDuration, parseLifetime } from "../../../src/commands/options/global.ts";

describe("a bare number", () => {
  test.each(["90", "1", "1.5", " 30 "])("is no lifetime and no age: %j", (text) =>
    expect(() => parseLifetime(text, "--max-age")).toThrow("no unit"),
  );
  test.each([
    ["90", 90_000],
    ["0", 0],
  ])("is seconds of a time limit: %s", (text, ms) => expect(parseDuration(text, "--timeout")).toBe(ms));
  test.each([
    ["0", 0],
    ["90s", 90_000],
    ["90d", 7_776_000_000],
    ["PT30S", 30_000],
  ])("with a unit, or nothing at all: %s", (text, ms) => expect(parseLifetime(text, "--max-age")).toBe(ms));
});
