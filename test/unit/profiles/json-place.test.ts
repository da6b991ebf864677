import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mapJson, positionAt, positionOfValue } from "../../../src/profiles/json-place.ts";
import { sampled } from "../../support/sample.ts";

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("mapJson", () => {
  it("agrees with JSON.parse on every text", () => {
    const valid = fc.json({ maxDepth: 4 });
    const mutated = fc
      .tuple(valid, fc.nat(), fc.constantFrom("", ",", "}", "]", '"', "\\", "\n", "0", "e", "x", "\u0000"), fc.nat(2))
      .map(([text, at, put, cut]) => {
        const offset = text.length === 0 ? 0 : at % text.length;
        return text.slice(0, offset) + put + text.slice(offset + cut);
      });
    fc.assert(
      fc.property(fc.oneof(valid, mutated, fc.string()), (text) => {
        expect(mapJson(text).brokenAt === undefined).toBe(parses(text));
      }),
      { numRuns: sampled(3000) },
    );
  });

  it.each([
    ['{\n  "a": 1,\n}', { line: 3, column: 1 }],
    ['{"a" 1}', { line: 1, column: 6 }],
    ['{"a": [1, 2\n', { line: 2, column: 1 }],
    ["", { line: 1, column: 1 }],
    ['{"a": 1} x', { line: 1, column: 10 }],
    ['{"a": nul}', { line: 1, column: 7 }],
  ])("finds the first error of %j", (text, place) => {
    const { brokenAt } = mapJson(text);
    expect(positionAt(text, brokenAt ?? -1)).toEqual(place);
  });

  it("rejects absurd nesting without a crash", () => {
    expect(mapJson("[".repeat(100_000)).brokenAt).toBe(101);
  });
});

describe("positionOfValue", () => {
  const text = JSON.stringify({ profiles: [{ name: "a" }, { name: "b", region: "mars" }] }, null, 2);
  it("finds a value by its path", () => {
    const place = positionOfValue(text, ["profiles", 1, "region"]);
    expect(text.split("\n")[place.line - 1]?.slice(place.column - 1)).toBe('"mars"');
  });
  it("finds the parent of a missing value", () => {
    const place = positionOfValue(text, ["profiles", 0, "region"]);
    expect(text.split("\n")[place.line - 1]?.slice(place.column - 1)).toBe("{");
  });
});
