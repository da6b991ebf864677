// Fails a run whose tests leave files in the source tree.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./program.ts";

/** Folders that npm, the build and the tools create. */
const expected = /^(node_modules|dist|build|coverage|\.vitest)\//;

function untrackedFiles(): string[] {
  const words = ["status", "--porcelain", "--ignored"];
  const status = execFileSync("git", words, { cwd: root, encoding: "utf8" });
  const paths = status.split("\n").flatMap((line) => (/^(\?\?|!!) /.test(line) ? [line.slice(3)] : []));
  return paths.filter((path) => !expected.test(path));
}

/** Runs before the first test. @returns a function for the end, which throws if files were added; undefined without Git */
export default function watchTree(): (() => void) | undefined {
  if (!existsSync(join(root, ".git"))) return undefined;
  const before = new Set(untrackedFiles());
  return () => {
    const left = untrackedFiles().filter((path) => !before.has(path));
    if (left.length === 0) return;
    // Vitest prints a teardown error but does not set its exit code.
    process.exitCode = 1;
    throw new Error(`the tests left in the tree: ${left.join(", ")}`);
  };
}
