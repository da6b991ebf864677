// Owns: the edge. Arguments, environment, streams, signals and the exit code are read and set here and nowhere else;
// what a command asks for is built here, each part when it is first asked for.
// Must not know: a rule of the service.
import { writeSync } from "node:fs";
import { version } from "../package.json";

/**
 * Runs one command line.
 * @returns the exit code; the caller sets it, so that nothing that is still being written is cut
 */
export async function main(process: NodeJS.Process): Promise<number> {
  const words = process.argv.slice(2);
  if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) {
    return printVersion(process);
  }
  // Where Node has a compile cache (22.1 and later); for less than this program's parts it does not pay.
  const nodeModule: object = process.getBuiltinModule("node:module");
  if ("enableCompileCache" in nodeModule) (nodeModule.enableCompileCache as () => void)();
  const { runCommandLine } = await import("./edge/run.ts");
  return runCommandLine(process, { words, version });
}

/** Past the streams, which cost a start more than all the rest of this. @returns the exit code */
function printVersion(process: NodeJS.Process): number {
  try {
    writeSync(1, `${version}\n`);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A reader that is gone wanted no more; one that is slow is waited for by the stream.
    if (code !== "EAGAIN") return code === "EPIPE" ? 0 : 1;
    process.stdout.on("error", () => {});
    process.stdout.write(`${version}\n`);
  }
  return 0;
}
