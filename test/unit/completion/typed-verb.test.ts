// Completion loads only the typed verb, and must offer the same as with every verb loaded.
import { expect, it } from "vitest";
import { candidatesAt } from "../../../src/completion/candidates.ts";
import { nodesBelow, type Tree, treeOf } from "../../../src/completion/tree.ts";
import { treeAt, wholeTree } from "../../../src/program.ts";
import type { WholeTree } from "../../../src/commands/verb.ts";

const asData = ({ root, verbOf }: WholeTree): Tree => treeOf(root, verbOf);

it("completion offers the same after every command as the whole tree", async () => {
  const whole = asData(await wholeTree());
  const paths = [...nodesBelow(whole.root)].map(({ path }) => [...path]);
  const lines = [...paths, ["help", "keys", "create"], ["key", "rotate"], ["-p", "keys", "entities", "list"]];
  expect(lines.length).toBeGreaterThan(60);
  for (const words of lines) {
    const part = asData(await treeAt(words));
    for (const current of ["", "-"])
      expect(candidatesAt(part, words, current), words.join(" ")).toEqual(candidatesAt(whole, words, current));
  }
});
