// Owns: answers that are ready before anything is loaded: the version, and the first help screen as the build printed it.
// Must not know: what a help screen says; it is printed by the program itself once, when it is built (scripts/ready-help.mts).
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** `integ --help` in each of its ways. */
const helpWords: ReadonlySet<string> = new Set(["--help", "-h", "help"]);

/**
 * @param folder where the built program is
 * @returns the answer, where these words have one and it needs nothing that is not at hand
 */
export function readyAnswer(process: NodeJS.Process, folder: string): string | undefined {
  const [word, ...more] = process.argv.slice(2);
  if (word === undefined || !helpWords.has(word) || more.length > 0) return undefined;
  try {
    return readFileSync(join(folder, readyHelpFile(helpWidth(process))), "utf8");
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
