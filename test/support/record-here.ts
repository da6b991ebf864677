// Before each file of tests: answers of sandboxes in this very process are recorded too, see recorded-answers.ts; after each
// test the next steps of its errors are typed (typed-steps.ts), when the test itself has put everything back.
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, expect } from "vitest";

const { INTEG_TEST_ANSWERS: folder, INTEG_TEST_STEPS: steps } = process.env;
if (folder) createRequire(import.meta.url)(join(folder, "record-answers.cjs"));
// A service whose connections are cut or whose clients are killed may be at work for one of them still: its state is not put back.
process.env.INTEG_TEST_TYPES = /[\\/]test[\\/]e2e[\\/]/.test(expect.getState().testPath ?? "") ? "1" : "";
if (steps) afterEach(async () => (await import("./typed-steps.ts")).typeSteps());
