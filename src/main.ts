// Answers what is ready before anything is loaded; the edge does everything else.
import { version } from "../package.json";
import { helpWidth, printReady, readyAnswer, readyTree } from "./edge/ready-answer.ts";

/**
 * Runs one command line.
 * @param folder where the answers lie that the build made ready; absent if the program is one file and reads nothing beside it
 * @returns the exit code; the caller sets it, so that nothing that is still being written is cut
 */
export async function main(process: NodeJS.Process, folder?: string): Promise<number> {
  const words = process.argv.slice(2);
  const ready = await earlyAnswer(process, words, folder);
  const code = ready === undefined ? undefined : printReady(process, ready);
  if (code !== undefined) return code;
  // Node 22.1 and later have a compile cache; it is worth its cost only if parts of this program are loaded.
  const nodeModule: object = process.getBuiltinModule("node:module");
  if ("enableCompileCache" in nodeModule) (nodeModule.enableCompileCache as () => void)();
  const { runCommandLine } = await import("./edge/run.ts");
  return runCommandLine(process, { words, version, width: helpWidth(process) });
}

async function earlyAnswer(
  process: NodeJS.Process,
  words: readonly string[],
  folder: string | undefined,
): Promise<string | undefined> {
  if (words[0] === "__complete") {
    const { completionAnswer } = await import("./edge/complete.ts");
    return completionAnswer(process, words.slice(1), folder === undefined ? undefined : readyTree(folder));
  }
  if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) return `${version}\n`;
  return folder === undefined ? undefined : readyAnswer(process, folder);
}
