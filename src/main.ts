// Answers what is ready before anything is loaded; the edge does everything else.
import { version } from "../package.json";
import {
  helpWidth,
  keptForm,
  type NewPart,
  printReady,
  readyAnswer,
  readyTree,
  useCompiledCode,
} from "./edge/ready.ts";

/**
 * Runs one command line.
 * @param folder where the built program lies; absent if it is one file and reads nothing beside it
 * @param first the module that this is, as Node knows it; absent if it keeps no compiled code
 * @returns the exit code; the caller sets it, so that nothing that is still being written is cut
 */
export async function main(process: NodeJS.Process, folder?: string, first?: NodeJS.Module): Promise<number> {
  const words = process.argv.slice(2);
  const ready = readyWords(process, words, folder);
  const code = ready === undefined ? undefined : printReady(process, ready);
  if (code !== undefined) return code;
  const anew = folder && first && useCompiledCode(process, { folder, version, first });
  if (words[0] === "__complete") {
    const { completionAnswer } = await import("./edge/complete.ts");
    const tree = folder === undefined ? undefined : readyTree(folder);
    const told = printReady(process, await completionAnswer(process, words.slice(1), tree));
    if (told !== undefined) return told;
  }
  const { runCommandLine } = await import("./edge/run.ts");
  const run = runCommandLine(process, { words, version, width: helpWidth(process) });
  return anew ? run.then((end) => keepFor(end, anew)) : run;
}

async function keepFor(end: number, anew: readonly NewPart[]): Promise<number> {
  const isCutOff = end > 128;
  try {
    if (anew.length > 0 && !isCutOff) (await import("./edge/keep-compiled.ts")).keepCompiled(anew, keptForm);
  } catch {
    // Another version was put in the place of this one meanwhile: how the command ended stays.
  }
  return end;
}

function readyWords(process: NodeJS.Process, words: readonly string[], folder: string | undefined): string | undefined {
  if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) return `${version}\n`;
  return folder === undefined || words[0] === "__complete" ? undefined : readyAnswer(process, folder);
}
