// Before each file of tests: answers of sandboxes in this very process are recorded too, see recorded-answers.ts.
import { createRequire } from "node:module";
import { join } from "node:path";

const { INTEG_TEST_ANSWERS: folder } = process.env;
if (folder) createRequire(import.meta.url)(join(folder, "record-answers.cjs"));
