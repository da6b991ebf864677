// Every answer that a sandbox gives anywhere in the run, held against the OpenAPI documents that it publishes. The recorder
// is in a folder of its own, is preloaded into the processes that tests start (program.ts) and into those that run
// them (record-here.ts), and writes beside itself; when the run is over all of it is read. Loads no test library.
import { copyFileSync, createReadStream, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AnswersCheck, type RecordedAnswer } from "../contract/answers-check.ts";
import { readDocuments } from "../contract/openapi-check.ts";
import { startWorld } from "../contract/world.ts";

/** How many kinds of broken answers are told in full. */
const mostTold = 10;

/** Before the first test: a folder for answers. @returns what is done after the last: all of them are checked */
export default function recordAnswers(): (() => Promise<void>) | undefined {
  // Each project of the run comes by here; the first one's folder is for all.
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

/** Every answer that was recorded in `folder` so far. A last line that a killed process tore is left out. */
export async function* answersIn(folder: string): AsyncGenerator<RecordedAnswer> {
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".ndjson")))
    for await (const line of createInterface({ input: createReadStream(join(folder, name)), crlfDelay: Infinity }))
      if (line.endsWith("}")) yield JSON.parse(line);
}

/** @throws Error with the first broken answers; the run has failed */
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
  // An error after the last test is told by vitest, and forgotten in its exit code.
  process.exitCode = 1;
  const oneOfEach = new Map(wrong.map((text) => [text.slice(0, text.indexOf(":")), text]));
  const told = [...oneOfEach.values()].slice(0, mostTold).join("\n");
  throw new Error(`${wrong.length} answers of the sandbox are not what it publishes, one of each kind:\n${told}`);
}
