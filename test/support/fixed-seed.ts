// Outside a full run, a property test has the same cases every time, so that only a change can make it fail.
// INTEG_TEST_SEED=<n> repeats the cases of one run.
import { relative } from "node:path";
import fc from "fast-check";
import { afterAll, expect } from "vitest";
import { recordFigure } from "./figures.mjs";
import { isFull } from "./sample.ts";

const given = process.env.INTEG_TEST_SEED;
if (given !== undefined || !isFull) fc.configureGlobal({ seed: Number(given ?? 20_260_701) });

if (isFull) {
  let runs = 0;
  fc.configureGlobal({
    ...fc.readConfigureGlobal(),
    reporter: (details) => {
      runs += details.numRuns;
      const message = fc.defaultReportMessage(details);
      if (message !== undefined) throw new Error(message, { cause: details.errorInstance });
    },
  });
  afterAll(() => {
    const file = relative(import.meta.dirname, expect.getState().testPath ?? "").replace(/^\.\.[\\/]/, "");
    if (runs > 0) recordFigure("properties", { runs, failures: 0 }, file);
    runs = 0;
  });
}
