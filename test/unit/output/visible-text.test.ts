import * as fc from "fast-check";
import { anyCharacter } from "../../support/any-text.ts";
import { describe, expect, it } from "vitest";
import { shortened, visibleJson, visibleLines, visibleText, visibleYaml } from "../../../src/output/visible-text.ts";
import { parse } from "yaml";
import { sampled } from "../../support/sample.ts";

/** Characters that the standards define as invisible, or as controls of a terminal. */
const invisible: readonly (readonly [first: number, last: number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180e],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0xe0000, 0xe0fff],
];

function* each(): Generator<string> {
  for (const [first, last] of invisible) {
    for (let code = first; code <= last; code += 1) yield String.fromCodePoint(code);
  }
}

const anyText = fc.string({ unit: anyCharacter, maxLength: 40 });
const control = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

describe("visibleText", () => {
  it("escapes every invisible or controlling character", () => {
    for (const character of each()) {
      const code = (character.codePointAt(0) ?? 0).toString(16);
      expect(visibleText(`a${character}b`)).toBe(`a\\u{${code}}b`);
    }
  });

  it("leaves readable text unchanged", () => {
    for (const text of ["", "plain", "Zoë Müller-Łukasiewicz", "山田 太郎", "عمر", "🙂", "a\\nb", "e\u0301"]) {
      expect(visibleText(text)).toBe(text);
    }
  });

  it("leaves nothing invisible, and changes nothing the second time", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const once = visibleText(text);
        expect(once).not.toMatch(control);
        expect(visibleText(once)).toBe(once);
      }),
      { numRuns: sampled(2000) },
    );
  });

  it("keeps only newlines, if lines are allowed", () => {
    expect(visibleLines("a\u001b[2J\nb\r\n\tc")).toBe("a\\u{1b}[2J\nb\\u{d}\n\\u{9}c");
  });
});

describe("visibleJson and visibleYaml", () => {
  it("contain no control character, and keep their value", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const json = visibleJson(JSON.stringify({ text }, undefined, 2));
        expect(json.replaceAll("\n", "")).not.toMatch(control);
        expect(JSON.parse(json)).toEqual({ text });
        const yaml = visibleYaml(text);
        expect(yaml).not.toMatch(control);
        if (!/\p{Cs}/u.test(text)) expect(parse(yaml)).toBe(text);
      }),
      { numRuns: sampled(2000) },
    );
  });
});

describe("shortened", () => {
  it("truncates between characters", () => {
    expect(shortened("abcdef", 6)).toBe("abcdef");
    expect(shortened("abcdefg", 6)).toBe("abcde…");
    expect(shortened("ab🙂def", 4)).toBe("ab…");
  });
});
