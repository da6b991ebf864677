// Answers --version without loading the commands; the edge handles every other command line.
import { writeSync } from "node:fs";
import { version } from "../package.json";
import { useCompileCache } from "./edge/compile-cache.ts";

/** Returns the exit code. The caller sets it, so that pending output is not cut. */
export async function main(process: NodeJS.Process): Promise<number> {
  const words = process.argv.slice(2);
  if (isVersion(words) && tryPrint(`${version}\n`)) return 0;
  useCompileCache(process);
  if (words[0] === "__complete") {
    const { complete } = await import("./edge/complete.ts");
    return complete(process, words.slice(1));
  }
  const { runCommandLine } = await import("./edge/run.ts");
  return runCommandLine(process, { words, version });
}

function isVersion([word, ...more]: readonly string[]): boolean {
  return more.length === 0 && (word === "--version" || word === "-V");
}

/** Writes without loading streams. Returns false if writing failed: the normal path then reports the error. */
function tryPrint(text: string): boolean {
  try {
    writeSync(1, text);
    return true;
  } catch {
    return false;
  }
}
