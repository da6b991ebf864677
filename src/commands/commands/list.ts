// Owns: `integ commands`.
import type { Surface } from "../../completion/surface.ts";
import { pageOf } from "../../output/row-page.ts";
import { defineVerb, type Verb, type WholeTree } from "../verb.ts";
import { environment } from "./environment.ts";
import { exitCodeList } from "./exit-codes.ts";

const view = {
  columns: [
    { path: "command", heading: "command" },
    { path: "summary", heading: "summary" },
  ],
  singular: "command",
  plural: "commands",
};

/** @param wholeTree what is told of; asked for when the command runs */
export function over(wholeTree: () => Promise<WholeTree>): { command: Verb } {
  const command = defineVerb({
    configure: (command) => command,
    examples: [
      { line: "integ commands", does: "every command, a line each" },
      { line: "integ commands --json | jq '.exit_codes'", does: "the exit codes, for a program" },
      { line: "integ commands --json | jq -r '.environment[].name'", does: "the environment variables" },
    ],
    more: "With --json or -o yaml: one document with every command, flag, argument, environment variable and exit code.",
    async run({ output, settings }) {
      const surface = await surfaceOf(wholeTree);
      const { surfaceDocument, nodeDocument } = await import("../../completion/surface.ts");
      if (output.format === "json" || output.format === "yaml")
        return output.document(surfaceDocument(surface, settings.version));
      const { nodesBelow } = await import("../../completion/tree.ts");
      const runnable = [...nodesBelow(surface.tree.root)].filter((node) => node.nodes.length === 0);
      const list = output.list(view);
      await list.page(pageOf(runnable.map((node) => JSON.stringify(nodeDocument(node)))));
      await list.end({ nextPageToken: null, hasMore: false });
    },
  });
  return { command };
}

/** All that is told of the program, for `commands`, the man pages and the reference. */
export async function surfaceOf(wholeTree: () => Promise<WholeTree>): Promise<Surface> {
  const { treeOf } = await import("../../completion/tree.ts");
  const { root, verbOf } = await wholeTree();
  return { tree: treeOf(root, verbOf), environment, exitCodes: exitCodeList };
}
