// Owns: the edge. Arguments, environment, streams, signals and the exit code are read and set here and nowhere else;
// what a command asks for is built here, each part when it is first asked for.
// Must not know: a rule of the service.
import { version } from "../package.json";
import { helpWidth, printReady, readyAnswer } from "./edge/ready-answer.ts";

/**
 * Runs one command line.
 * @param folder where the help screens are that the build printed, if there are any
 * @returns the exit code; the caller sets it, so that nothing that is still being written is cut
 */
export async function main(process: NodeJS.Process, folder?: string): Promise<number> {
  const words = process.argv.slice(2);
  const isVersion = words.length === 1 && (words[0] === "--version" || words[0] === "-V");
  const ready = isVersion ? `${version}\n` : folder && readyAnswer(process, folder);
  const code = ready === undefined ? undefined : printReady(process, ready);
  if (code !== undefined) return code;
  // Where Node has a compile cache (22.1 and later); for less than this program's parts it does not pay.
  const nodeModule: object = process.getBuiltinModule("node:module");
  if ("enableCompileCache" in nodeModule) (nodeModule.enableCompileCache as () => void)();
  const { runCommandLine } = await import("./edge/run.ts");
  return runCommandLine(process, { words, version, width: helpWidth(process) });
}
