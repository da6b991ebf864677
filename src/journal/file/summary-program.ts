// Where the program of a thread lies that summarizes pieces of a journal. An executable is one file and has none.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** @returns its file beside this one; undefined if it is not there, and one thread does the work */
export function summaryProgram(): string | undefined {
  const program = join(dirname(fileURLToPath(import.meta.url)), "summary-thread.cjs");
  return existsSync(program) ? program : undefined;
}
