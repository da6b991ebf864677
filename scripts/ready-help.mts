// Writes what is ready before the program starts, once, when it is built, into files beside it: the help screens and the
// tree of commands that completion reads. The program itself prints both, so that there is one source; main.ts reads
// them back instead of building the command tree. Without the files nothing is missing but time.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Plugin } from "rolldown";
import { helpTopics } from "../src/completion/help-topics.ts";
import { nodesBelow, type Tree } from "../src/completion/tree.ts";
import { type ReadyHelp, readyHelpFile, readyTreeFile } from "../src/edge/ready.ts";

const require = createRequire(import.meta.url);

/** For an unknown width and for a wide terminal. Other widths are wrapped when they are asked for. */
const widths = [80, 100];

type Main = (process: unknown) => Promise<number>;

export function readyHelp(): Plugin {
  return {
    name: "ready-help",
    async writeBundle({ dir = "dist" }) {
      const program = resolve(dir, "main.cjs");
      delete require.cache[program];
      const { main } = require(program) as { main: Main };
      const tree = await printedBy(main, ["__complete"], 80);
      writeFileSync(join(dir, readyTreeFile), tree);
      const commands = [...nodesBelow((JSON.parse(tree) as Tree).root)].map(({ path }) => path.join(" "));
      for (const width of widths) {
        const screens: ReadyHelp = {
          commands: await printedAll(commands, (path) =>
            printedBy(main, [...path.split(" "), "--help"].filter(Boolean), width),
          ),
          topics: await printedAll(Object.keys(helpTopics), (topic) => printedBy(main, ["help", topic], width)),
        };
        writeFileSync(join(dir, readyHelpFile(width)), inLines(screens));
      }
    },
  };
}

/** As JSON, one line per screen: a start looks for its line, and reads no other. */
function inLines(screens: ReadyHelp): string {
  const lines = (texts: Readonly<Record<string, string>>): string =>
    Object.entries(texts)
      .map(([name, text]) => `\n ${JSON.stringify(name)}: ${JSON.stringify(text)}`)
      .join(",");
  return `{"commands": {${lines(screens.commands)}\n},\n"topics": {${lines(screens.topics)}\n}}\n`;
}

async function printedAll(
  names: readonly string[],
  print: (name: string) => Promise<string>,
): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const name of names) texts[name] = await print(name);
  return texts;
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
