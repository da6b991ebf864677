// Before each test file: responses of sandboxes in this process are recorded too (recorded-answers.ts); after each test the
// next steps of its errors are typed (typed-steps.ts), when the test has cleaned up.
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, expect } from "vitest";

const { INTEG_TEST_ANSWERS: folder, INTEG_TEST_STEPS: steps } = process.env;
if (folder) createRequire(import.meta.url)(join(folder, "record-answers.cjs"));
// A service with cut connections or killed clients may still be working for them: its state is not restored.
process.env.INTEG_TEST_TYPES = /[\\/]test[\\/]e2e[\\/]/.test(expect.getState().testPath ?? "") ? "1" : "";
if (steps) afterEach(async () => (await import("./typed-steps.ts")).typeSteps());
