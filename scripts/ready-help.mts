// Prints the first help screen once, when the program is built, into files beside it: the program itself prints it, so
// that there is one source; main.ts reads it back instead of building the command tree. Without the files nothing is
// missing but time.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Plugin } from "rolldown";
import { readyHelpFile } from "../src/edge/ready-answer.ts";

const require = createRequire(import.meta.url);

/** What nobody says the width of, and a wide terminal. Other widths are wrapped when they are asked for. */
const widths = [80, 100];

export function readyHelp(): Plugin {
  return {
    name: "ready-help",
    async writeBundle({ dir = "dist" }) {
      const program = resolve(dir, "main.cjs");
      delete require.cache[program];
      const { main } = require(program) as { main: (process: unknown) => Promise<number> };
      for (const width of widths) writeFileSync(join(dir, readyHelpFile(width)), await helpAt(width, main));
    },
  };
}

/** Runs `integ --help` on a terminal of so many columns, in a process that has nothing else. */
async function helpAt(columns: number, main: (process: unknown) => Promise<number>): Promise<string> {
  let printed = "";
  const stream = {
    columns,
    on: () => {},
    write(data: string, done?: () => void) {
      printed += data;
      done?.();
    },
  };
  const argv = ["node", "integ", "--help"];
  const code = await main({ argv, env: {}, stdout: stream, stderr: stream, getBuiltinModule: () => ({}) });
  if (code !== 0 || printed === "") throw new Error(`the first help screen ended with ${code}: ${printed}`);
  return printed;
}
