// The rules of scripts/words.mjs, and the tree that they hold for.
import { describe, expect, it } from "vitest";
import { proseOf, proseOfDocument, replacedWords } from "../../scripts/words.mjs";

const wordsIn = (file: string, text: string): string[] =>
  replacedWords(file.endsWith(".md") ? proseOfDocument(text) : proseOf(file, text)).map(
    ({ kind, word }) => `${kind}: ${word}`,
  );

describe("the lint of words", () => {
  it.each([
    ['throw new Error("The old secret is dead now");', ["strings: dead"]],
    ["const a = `Going on with ${b}, and go on with it`;", ["strings: go on with"]],
    ['const a = "A limit (§8)";', ["strings: §"]],
    ["// Nobody holds it.\nconst a = 1;", ["comments: Nobody"]],
    ["/** Told once (§4.2). */\nconst a = 1;", ["comments: Told"]],
    ['const a = "dead";', []],
    ['import { a } from "../nobody/told.ts";', []],
    ['const a = "The old secret no longer works";', []],
  ])("in %j finds %j", (text, found) => expect(wordsIn("a.ts", text)).toEqual(found));

  it("reads a document without its code", () => {
    const text = "Mend it.\n\n```\nmend it\n```\n\nType `mend`, then “go”.\n";
    expect(wordsIn("a.md", text)).toEqual(["documents: Mend", "documents: “"]);
  });
});
