// Answers that are ready before anything is loaded: help screens as the program printed them once, when it was built
// (scripts/ready-help.mts).
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** The file beside the built program that holds the tree of commands, for completion. */
export const readyTreeFile = "commands.json";

/** Help screens by the words of the command, `""` for `integ` itself, and by the topic. */
export interface ReadyHelp {
  readonly commands: Readonly<Record<string, string>>;
  readonly topics: Readonly<Record<string, string>>;
}

/**
 * @param folder where the built program is
 * @returns the answer, if these words have one and it needs nothing that is not at hand
 */
export function readyAnswer(process: NodeJS.Process, folder: string): string | undefined {
  const words = process.argv.slice(2);
  const isTopic = words[0] === "help";
  const isFlag = words.at(-1) === "--help" || words.at(-1) === "-h";
  if (words.length > 0 && isTopic === isFlag) return undefined;
  const screens = readBeside(folder, readyHelpFile(helpWidth(process)));
  if (screens === undefined) return undefined;
  const { commands, topics } = JSON.parse(screens) as ReadyHelp;
  const path = (isTopic ? words.slice(1) : words.slice(0, -1)).join(" ");
  return own(commands, path) ?? (isTopic ? own(topics, path) : undefined);
}

function own(texts: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(texts, name) ? texts[name] : undefined;
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

/** The file beside the built program that holds the help screens at a width. */
export function readyHelpFile(width: number): string {
  return `help-${width}.json`;
}

/**
 * Writes past the streams, which cost a start more than the answer.
 * @returns the exit code; nothing if writing failed, which the slow way then finds and says
 */
export function printReady(process: NodeJS.Process, answer: string): number | undefined {
  const bytes = Buffer.from(answer);
  let done = 0;
  try {
    while (done < bytes.length) done += writeSync(1, bytes, done);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A reader that no longer exists wanted no more; one that is slow is waited for by the stream.
    if (code === "EPIPE") return 0;
    if (code !== "EAGAIN") return undefined;
    process.stdout.on("error", () => {});
    process.stdout.write(bytes.subarray(done));
  }
  return 0;
}
