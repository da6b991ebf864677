// Writes what is ready before the program starts, once, when it is built, into files beside it: the first help screen and
// the tree of commands that completion reads. The program itself prints both, so that there is one source; main.ts reads
// them back instead of building the command tree. Without the files nothing is missing but time.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Plugin } from "rolldown";
import { readyHelpFile, readyTreeFile } from "../src/edge/ready-answer.ts";

const require = createRequire(import.meta.url);

/** What nobody says the width of, and a wide terminal. Other widths are wrapped when they are asked for. */
const widths = [80, 100];

type Main = (process: unknown) => Promise<number>;

export function readyHelp(): Plugin {
  return {
    name: "ready-help",
    async writeBundle({ dir = "dist" }) {
      const program = resolve(dir, "main.cjs");
      delete require.cache[program];
      const { main } = require(program) as { main: Main };
      const write = async (file: string, words: readonly string[], columns: number): Promise<void> =>
        writeFileSync(join(dir, file), await printedBy(main, words, columns));
      for (const width of widths) await write(readyHelpFile(width), ["--help"], width);
      await write(readyTreeFile, ["__complete"], 80);
    },
  };
}

/** Runs a command line on a terminal of so many columns, in a process that has nothing else. */
async function printedBy(main: Main, words: readonly string[], columns: number): Promise<string> {
  let printed = "";
  const stream = {
    columns,
    on: () => {},
    write(data: string, done?: () => void) {
      printed += data;
      done?.();
    },
  };
  const argv = ["node", "integ", ...words];
  const code = await main({ argv, env: {}, stdout: stream, stderr: stream, getBuiltinModule: () => ({}) });
  if (code !== 0 || printed === "") throw new Error(`integ ${words.join(" ")} ended with ${code}: ${printed}`);
  return printed;
}
