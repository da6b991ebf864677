import { describe, expect, it } from "vitest";
import { proseOf, proseOfDocument, replacedWords } from "../../scripts/words.mjs";
import { wholeTree } from "../../src/program.ts";
import { treeOf } from "../../src/completion/tree.ts";

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
    ['const a = `--limit: "${b}" is not a number.`;', ['strings: --limit: "…"']],
    ['const a = `Invalid limit "${b}".`;', ['strings: Invalid limit "…"']],
    [
      'const a = "Add it: integ profiles edit p --token-endpoint <url>.";',
      [expect.stringContaining("strings: Add it")],
    ],
    ["const a = `Add it: ${b} --token-endpoint <url>.`;", [expect.stringContaining("strings: Add it")]],
    ['const a = "Add it to the profile with --token-endpoint.";', []],
    ['import { a } from "../nobody/told.ts";', []],
    ['const a = "The old secret no longer works";', []],
  ])("in %j finds %j", (text, found) => expect(wordsIn("a.ts", text)).toEqual(found));

  it("reads the strings of a test as titles, without the rules for screens", () => {
    const text = 'it("sends nothing after a dead lock (§8)");';
    expect(wordsIn("test/a.test.ts", text)).toEqual(["titles: dead"]);
    expect(wordsIn("src/a.ts", text)).toEqual(["strings: dead", "strings: §"]);
  });

  it("ignores code in a document", () => {
    const text = "Mend it.\n\n```\nmend it\n```\n\nType `mend`, then “go”.\n";
    expect(wordsIn("README.md", text)).toEqual(["documents: Mend", "documents: “"]);
    const block = "```sh\ninteg told  # it is told\n# Mend it.\nmend '#' it\n```\n";
    expect(wordsIn("README.md", block)).toEqual(["documents: told", "documents: Mend"]);
  });

  it("finds one notation for defaults and variables of options", async () => {
    const { root: command, verbOf } = await wholeTree();
    const tree = treeOf(command, verbOf);
    const summaries: string[] = [];
    const does: string[] = [];
    const collect = (node: (typeof tree)["root"]): void => {
      for (const { long, summary } of node.flags) summaries.push(`${node.path.join(" ")} ${long}: ${summary}`);
      for (const { name, summary } of node.arguments) summaries.push(`${node.path.join(" ")} ${name}: ${summary}`);
      does.push(...node.examples.map((example) => example.does));
      for (const below of node.nodes) collect(below);
    };
    collect(tree.root);
    for (const { long, summary } of tree.globals) summaries.push(`${long}: ${summary}`);
    expect(summaries.length).toBeGreaterThan(100);
    // A summary begins with a verb or a noun, never with a clause.
    expect(summaries.filter((summary) => !/: (?!What|Where|Which|Whether|Who)[A-Z/]/.test(summary))).toEqual([]);
    expect(does.length).toBeGreaterThan(80);
    expect(does.filter((words) => /\?$|^asks? /.test(words))).toEqual([]);
    const marked = summaries.filter((summary) =>
      /\(.*default|one of:|\[env|INTEG_/.test(summary.replace(/^.*?: /, "")),
    );
    const notation = / (\((one of: [^()]+; )?default: [^()]+\))?( ?\[env: [A-Z_]+\])?$/;
    expect(marked.filter((summary) => !notation.test(summary))).toEqual([]);
    expect(summaries.filter((summary) => summary.endsWith("."))).toEqual([]);
  });
});
