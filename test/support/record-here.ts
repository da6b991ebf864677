// Setup of each test file, which records responses (recorded-answers.ts) and types printed next steps (typed-steps.ts).
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, expect } from "vitest";

const { INTEG_TEST_ANSWERS: folder, INTEG_TEST_STEPS: steps } = process.env;
if (folder) createRequire(import.meta.url)(join(folder, "record-answers.cjs"));
// Only end-to-end tests type steps. Other tests may end while a service still handles a request.
process.env.INTEG_TEST_TYPES = /[\\/]test[\\/]e2e[\\/]/.test(expect.getState().testPath ?? "") ? "1" : "";
if (steps) afterEach(async () => (await import("./typed-steps.ts")).typeSteps());
