// A process that acts as a machine of a team with its own host name. It runs commands of the built program, which it reads from
// standard input as one JSON line each, and prints their results.
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
