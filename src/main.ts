// Owns: the edge. Arguments, environment, streams, signals and the exit code are read and set here and nowhere else;
// what a command asks for is built here, each part when it is first asked for.
// Must not know: a rule of the service.
import { version } from "../package.json";

/**
 * Runs one command line.
 * @returns the exit code; the caller sets it, so that nothing that is still being written is cut
 */
export async function main(process: NodeJS.Process): Promise<number> {
  const words = process.argv.slice(2);
  if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) {
    process.stdout.on("error", () => {});
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const { runCommandLine } = await import("./edge/run.ts");
  return runCommandLine(process, { words, version });
}
