// Setup of each test file: records responses of sandboxes in this process too (recorded-answers.ts), and after each test and its
// cleanup, types the next steps that it printed (typed-steps.ts).
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, expect } from "vitest";

const { INTEG_TEST_ANSWERS: folder, INTEG_TEST_STEPS: steps } = process.env;
if (folder) createRequire(import.meta.url)(join(folder, "record-answers.cjs"));
// Steps are typed only in end-to-end tests: elsewhere a service may still handle the request of a cut connection or killed client.
process.env.INTEG_TEST_TYPES = /[\\/]test[\\/]e2e[\\/]/.test(expect.getState().testPath ?? "") ? "1" : "";
if (steps) afterEach(async () => (await import("./typed-steps.ts")).typeSteps());
