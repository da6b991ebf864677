// The same faults for a part of the program alone: a driver of a few lines, bundled, that makes its file calls on the main
// thread, so that only those are counted.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { temporaryFolder } from "../support/bundle-driver.ts";
import { type Point, spread } from "../support/strace.ts";
import { countsOnly } from "./harness.ts";
import { isFull } from "../support/sample.ts";
import { isMissing } from "../support/tools.mjs";

// The `at` forms are what some architectures have instead; `?` lets strace pass over what this one has not.
const calls = "openat write pwrite64 fsync ftruncate link linkat rename renameat renameat2 unlink unlinkat fchmod close"
  .split(" ")
  .map((call) => `?${call}`)
  .join(",");

function strace(
  args: readonly string[],
  command: readonly string[],
): ReturnType<typeof spawnSync> & { stdout: string } {
  const run = spawnSync("strace", [...args, process.execPath, ...command], { encoding: "utf8", timeout: 30_000 });
  if (run.error) throw run.error;
  return run;
}

/** Skips the test, and says so, where nothing can be traced. */
export function needStrace(context: Pick<TestContext, "skip">): void {
  if (isMissing("strace")) context.skip("strace is missing");
}

/** The points of one undisturbed run: its calls on paths that begin like `folder`, and on files opened there. */
export function pointsOf(command: readonly string[], folder: string): Point[] {
  const log = join(temporaryFolder(), "trace");
  const run = strace(["-y", "-e", `trace=${calls}`, "-o", log], command);
  if (run.status !== 0) throw new Error(`the driver failed: ${String(run.stderr)}`);
  const counts = new Map<string, number>();
  const points: Point[] = [];
  for (const line of readFileSync(log, "utf8").split("\n")) {
    const [, call, text = ""] = /^(\w+)\((.*)/.exec(line) ?? [];
    if (call === undefined) continue;
    const nth = (counts.get(call) ?? 0) + 1;
    counts.set(call, nth);
    if (line.includes(folder)) points.push({ call, nth, text });
  }
  return points;
}

/** All points, or a sample: the first and the last, and some between them. */
export function chosenOf(points: readonly Point[], { name, sample }: { name: string; sample: number }): Point[] {
  if (countsOnly) console.log(`count: ${name}: ${points.length}`);
  return isFull ? [...points] : spread(points, sample);
}

/** What happens at a point: the process dies, or the call fails, once or from then on. */
export type Fault = "kill" | "nothing written+" | `${"EIO" | "ENOSPC"}${"" | "+"}`;

/**
 * Runs the driver with a fault at one point.
 * @param fresh makes the folder as it was before; some versions of Node open a file more or less while they start, and
 *   a run that did not come to the point is begun again
 */
export function runWithFault(
  command: readonly string[],
  { point, fault, fresh }: { readonly point: Point; readonly fault: Fault; readonly fresh: () => void },
): { stdout: string; stderr: string } {
  const effects: Partial<Record<Fault, string>> = { kill: "signal=KILL", "nothing written+": "retval=0" };
  const what = effects[fault] ?? `error=${fault.replace("+", "")}`;
  const when = fault.endsWith("+") ? `${point.nth}+` : String(point.nth);
  const log = join(temporaryFolder(), "trace");
  const inject = `inject=${point.call}:${what}:when=${when}`;
  for (let attempt = 0; attempt < 8; attempt++) {
    fresh();
    const run = strace(["-e", `trace=${point.call}`, "-e", inject, "-o", log], command);
    if (/INJECTED|KILL/.test(readFileSync(log, "utf8"))) return { stdout: run.stdout, stderr: String(run.stderr) };
  }
  throw new Error(`${point.call} ${point.nth} was not met`);
}

/** Names of the file calls of one undisturbed run, in order, see `pointsOf`. */
export function callsOf(command: readonly string[], folder: string): string {
  return pointsOf(command, folder)
    .map((point) => point.call.replace(/at2?$/, "").replace(/^open$/, "openat"))
    .join(" ");
}
