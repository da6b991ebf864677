import fc from "fast-check";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { quickWidth } from "../../../src/output/unicode-width.ts";
import { visibleText } from "../../../src/output/visible-text.ts";
import { anyCharacter } from "../../support/any-text.ts";
import { sampled } from "../../support/sample.ts";

describe("characters measured alone", () => {
  it("are together as wide as string-width says", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 12 }), (given) => {
        const width = quickWidth(given, stringWidth);
        if (width === undefined) return;
        expect(width).toBe(stringWidth(given));
        expect(visibleText(given)).toBe(given);
      }),
      { numRuns: sampled(20_000) },
    );
  });

  it("are the letters of every script without joining, and nothing invisible", () => {
    for (const sure of ["Zoë Ångström", "Łukasz Żółć", "山田 太郎", "Дмитрий Орлов", "Ανδρέας Παππάς", "ﾊﾝｶｸ", "「」"])
      expect(quickWidth(sure, stringWidth), sure).toBe(stringWidth(sure));
    for (const unsure of ["e\u0301", "\u200b", "\u202e", "🙂", "\u3164", "\ufe0f", "한\u11a8", "\u00ad", "©\ufe0f"])
      expect(quickWidth(unsure, stringWidth), unsure).toBeUndefined();
  });
});
