// Checks that a POSIX shell accepts every next step that the run printed, and that integ's parser accepts those with `integ`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommandLine } from "../../src/edge/run.ts";
import { recordFigure } from "./figures.mjs";
import { kindOf, type Step } from "./record-steps.ts";

/** Exit codes of errors that a repetition cannot change: usage, not found, conflict, unusable. */
const permanentCodes: ReadonlySet<number | null> = new Set([2, 4, 5, 13]);

/** Runs before the first test. @returns a function to run after the last test, which checks each step */
export default function recordSteps(): (() => Promise<void>) | undefined {
  if (process.env.INTEG_TEST_STEPS) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "integ-steps-"));
  process.env.INTEG_TEST_STEPS = folder;
  return async () => {
    const of = <T>(kind: RegExp): T[] =>
      readdirSync(folder).flatMap((name) => (kind.test(name) ? linesOf<T>(join(folder, name)) : []));
    const steps = of<Step>(/^\d+\.ndjson$/);
    const noted = of<Noted>(/\.typed\.ndjson$/);
    const checked = of<{ values: number }>(/\.checked\.ndjson$/).map(({ values }) => values);
    recordFigure("JSON outputs of commands compared with their schemas", {
      commands: checked.length,
      values: checked.reduce((sum, count) => sum + count, 0),
    });
    rmSync(folder, { recursive: true, force: true });
    delete process.env.INTEG_TEST_STEPS;
    const wrong: string[] = [];
    for (const step of steps) {
      const why = await stepError(step);
      if (why !== undefined)
        wrong.push(`${step.next}\n    after integ ${step.typed.join(" ")}, exit ${step.code}: ${why}`);
    }
    const kinds = new Set(steps.map(kindOf));
    const typed = new Set(noted.filter(({ reason }) => reason === undefined).map(({ kind }) => kind));
    const reasons = new Map(noted.flatMap(({ kind, reason }) => (reason && !typed.has(kind) ? [[kind, reason]] : [])));
    const counts: Record<string, number> = {};
    for (const reason of reasons.values()) counts[reason] = (counts[reason] ?? 0) + 1;
    const others = [...kinds].filter((kind) => !typed.has(kind) && !reasons.has(kind));
    recordFigure("next steps that tests printed", {
      read: kinds.size,
      typed: typed.size,
      "ended the same way": noted.filter(({ isSame }) => isSame === true).length,
      ...counts,
      "printed by a process that the test drives": others.length,
      wrong: wrong.length,
    });
    if (wrong.length === 0) return;
    process.exitCode = 1;
    throw new Error(`${wrong.length} next steps cannot be typed:\n${wrong.slice(0, 20).join("\n")}`);
  };
}

interface Noted {
  readonly kind: string;
  readonly reason?: string;
  readonly isSame?: boolean;
}

function linesOf<T>(path: string): T[] {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as T);
}

export async function stepError({ typed, code, next }: Step): Promise<string | undefined> {
  if (!next.startsWith("integ"))
    return spawnSync("/bin/sh", ["-nc", next]).status === 0 ? undefined : "a shell cannot read it";
  // With `set -u` and an empty PATH the shell fails for an unquoted variable or command.
  const { stdout, stderr, status } = spawnSync("/bin/sh", ["-c", `set -u; integ() { printf '%s\\0' "$@"; }; ${next}`], {
    encoding: "utf8",
    env: { PATH: "" },
  });
  if (status !== 0 || stderr !== "") return `a shell says: ${stderr}`;
  const words = stdout.split("\0").slice(0, -1);
  if (permanentCodes.has(code) && words.join("\0") === typed.join("\0")) return "it is the command that just ended so";
  return readCommandLine(words, { width: 80, version: "0" }).then(
    (read) => ("missing" in read ? "an argument is missing" : undefined),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
