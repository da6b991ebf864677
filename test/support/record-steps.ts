// Every next step that a program under test printed, in any process of the run: written down as it is printed, and read by a
// shell and by the program's own parser when the run is over (recorded-steps.ts).
import { appendFileSync } from "node:fs";
import { join } from "node:path";

/** A command to paste, and the command that ended with it. */
export interface Step {
  readonly typed: readonly string[];
  readonly code: number | null;
  readonly next: string;
}

const { INTEG_TEST_STEPS: folder } = process.env;
const known = new Set<string>();

/** Ids, folders and ports differ from run to run. */
function kindOf({ code, next }: Step): string {
  return `${code} ${next.replaceAll(/[\w./:-]*\d[\w./:-]*/g, "#")}`;
}

/** Keeps the next steps in what a command printed, one of each kind. */
export function recordSteps(
  typed: readonly string[],
  { code, stdout, stderr }: { readonly code: number | null; readonly stdout: string; readonly stderr: string },
): void {
  if (!folder) return;
  const printed = [...stderr.matchAll(/^ *Next: (.+)$/gm), ...stdout.matchAll(/^ *Next: (.+)$/gm)];
  const inJson = [...`${stderr}\n${stdout}`.matchAll(/"(?:next_command|next_step)": ?("(?:[^"\\]|\\.)*")/g)];
  const all = [...printed.map(([, text = ""]) => text), ...inJson.map(([, text = '""']) => JSON.parse(text) as string)];
  for (const next of all) {
    const step = { typed, code, next };
    if (known.has(kindOf(step))) continue;
    known.add(kindOf(step));
    appendFileSync(join(folder, `${process.pid}.ndjson`), `${JSON.stringify(step)}\n`);
  }
}
