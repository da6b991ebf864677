// A process that acts as one machine of a team. It runs the commands that it reads from standard input, one JSON line each.
import { createInterface } from "node:readline";
import { type Run, runMain } from "../support/main-here.ts";

async function work(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const run = JSON.parse(line) as Run;
    process.chdir(run.cwd);
    const { code, stderr } = await runMain(run);
    process.stdout.write(`${JSON.stringify({ code, stderr })}\n`);
  }
}

void work();
