// Answers that are ready before anything is loaded: the first help screen as the program printed it once, when it was
// built (scripts/ready-help.mts).
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** The file beside the built program that holds the tree of commands, for completion. */
export const readyTreeFile = "commands.json";

/** `integ --help` in each of its ways. */
const helpWords: ReadonlySet<string> = new Set(["--help", "-h", "help"]);

/**
 * @param folder where the built program is
 * @returns the answer, where these words have one and it needs nothing that is not at hand
 */
export function readyAnswer(process: NodeJS.Process, folder: string): string | undefined {
  const [word, ...more] = process.argv.slice(2);
  if (word === undefined || !helpWords.has(word) || more.length > 0) return undefined;
  return readBeside(folder, readyHelpFile(helpWidth(process)));
}

/** The tree of commands as JSON, for completion. @returns nothing if it is not ready */
export function readyTree(folder: string): string | undefined {
  return readBeside(folder, readyTreeFile);
}

function readBeside(folder: string, file: string): string | undefined {
  try {
    return readFileSync(join(folder, file), "utf8");
  } catch {
    // A width that nothing is ready for.
    return undefined;
  }
}

/** Columns of a help screen: the terminal's, as many as are read with ease. */
export function helpWidth({ stdout, stderr }: Pick<NodeJS.Process, "stdout" | "stderr">): number {
  const columns = stdout.columns ?? stderr.columns ?? 0;
  return columns > 0 ? Math.min(columns, 100) : 80;
}

/** The file beside the built program that holds the first help screen at a width. */
export function readyHelpFile(width: number): string {
  return `help-${width}.txt`;
}

/**
 * Writes past the streams, which cost a start more than the answer.
 * @returns the exit code; nothing where writing failed, which the slow way then finds and tells
 */
export function printReady(process: NodeJS.Process, answer: string): number | undefined {
  const bytes = Buffer.from(answer);
  let done = 0;
  try {
    while (done < bytes.length) done += writeSync(1, bytes, done);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A reader that is gone wanted no more; one that is slow is waited for by the stream.
    if (code === "EPIPE") return 0;
    if (code !== "EAGAIN") return undefined;
    process.stdout.on("error", () => {});
    process.stdout.write(bytes.subarray(done));
  }
  return 0;
}
