// A machine of a team: runs commands of the built program as they come on its standard input, a line of JSON each, and prints
// how each ended. Its host name is its own.
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
