// Records every next step that a tested program prints, for typed-steps.ts and recorded-steps.ts.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

export interface Step {
  readonly typed: readonly string[];
  readonly code: number | null;
  readonly next: string;
}

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const { INTEG_TEST_STEPS: folder } = process.env;
const known = new Set<string>();

/** @returns the same text for steps with one exit code that differ only in words with a digit: ids, folders and ports */
export function kindOf({ code, next }: Pick<Step, "code" | "next">): string {
  return `${code} ${withoutNames(next)}`;
}

export function withoutNames(text: string): string {
  return text.replaceAll(/[\w./:-]*\d[\w./:-]*/g, "#");
}

export function stepsIn({ stdout, stderr }: Said): string[] {
  const printed = [...stderr.matchAll(/^ *Next: (.+)$/gm), ...stdout.matchAll(/^ *Next: (.+)$/gm)];
  const inJson = [...`${stderr}\n${stdout}`.matchAll(/"(?:next_command|next_step)": ?("(?:[^"\\]|\\.)*")/g)];
  return [...printed.map(([, text = ""]) => text), ...inJson.map(([, text = '""']) => JSON.parse(text) as string)];
}

export function recordSteps(typed: readonly string[], said: Said): void {
  if (!folder) return;
  for (const next of stepsIn(said)) {
    const step = { typed, code: said.code, next };
    if (known.has(kindOf(step))) continue;
    known.add(kindOf(step));
    appendFileSync(join(folder, `${process.pid}.ndjson`), `${JSON.stringify(step)}\n`);
  }
}
