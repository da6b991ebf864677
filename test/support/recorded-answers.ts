// Checks every sandbox response of the run against the published OpenAPI documents. A copy of the recorder is preloaded into the
// processes that tests start (program.ts) and into the test processes (record-here.ts), and writes next to itself. The check
// reads all records after the run.
import { copyFileSync, createReadStream, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AnswersCheck, type RecordedAnswer } from "../contract/answers-check.ts";
import { readDocuments } from "../contract/openapi-check.ts";
import { startWorld } from "../contract/world.ts";

/** How many kinds of wrong responses are printed in full. */
const mostPrinted = 10;

/** Creates a folder for responses before the first test. @returns a function that checks all responses after the last test */
export default function recordAnswers(): (() => Promise<void>) | undefined {
  // Each project of the run calls this; all use the folder of the first call.
  if (process.env.INTEG_TEST_ANSWERS) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "integ-answers-"));
  copyFileSync(join(import.meta.dirname, "record-answers.cjs"), join(folder, "record-answers.cjs"));
  process.env.INTEG_TEST_ANSWERS = folder;
  return async () => {
    try {
      await checkAll(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Every response recorded in `folder` so far, except a last line that a kill truncated. */
export async function* answersIn(folder: string): AsyncGenerator<RecordedAnswer> {
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".ndjson")))
    for await (const line of createInterface({ input: createReadStream(join(folder, name)), crlfDelay: Infinity }))
      if (line.endsWith("}")) yield JSON.parse(line);
}

/** @throws Error with the first wrong responses, which fails the run */
async function checkAll(folder: string): Promise<void> {
  const startMs = performance.now();
  const world = await startWorld();
  const check = new AnswersCheck(await readDocuments(String(world.description.us.base_url)));
  await world.close();
  for await (const answer of answersIn(folder)) check.take(answer);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.info(`\nsandbox: ${check.figure()} (${seconds} s)`);
  const { wrong } = check;
  if (wrong.length === 0) return;
  // Vitest prints an error after the last test but does not set its exit code.
  process.exitCode = 1;
  const oneOfEach = new Map(wrong.map((text) => [text.slice(0, text.indexOf(":")), text]));
  const examples = [...oneOfEach.values()].slice(0, mostPrinted).join("\n");
  throw new Error(`${wrong.length} answers of the sandbox are not what it publishes, one of each kind:\n${examples}`);
}
