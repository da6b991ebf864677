// Checks the sandbox's responses of the run (record-answers.cjs) against the published OpenAPI documents, except responses that
// a fault has broken.
import { copyFileSync, createReadStream, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AnswersCheck, type RecordedAnswer } from "../contract/answers-check.ts";
import { readDocuments } from "../contract/openapi-check.ts";
import { startWorld } from "../contract/world.ts";

const maxPrinted = 10;

/** Runs before the first test. @returns a function to run after the last test, which checks the responses */
export default function recordAnswers(): (() => Promise<void>) | undefined {
  // Each project of the run calls this function, and all use the folder of the first call.
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

/** Skips a last line that a kill truncated. */
export async function* answersIn(folder: string): AsyncGenerator<RecordedAnswer> {
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".ndjson")))
    for await (const line of createInterface({ input: createReadStream(join(folder, name)), crlfDelay: Infinity }))
      if (line.endsWith("}")) yield JSON.parse(line);
}

/** @throws Error with at most ten wrong responses, each of another kind */
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
  const examples = [...oneOfEach.values()].slice(0, maxPrinted).join("\n");
  throw new Error(`${wrong.length} answers of the sandbox are not what it publishes, one of each kind:\n${examples}`);
}
