import { expect, it } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { root } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { liveHistories } from "./histories.mjs";

const { INTEG_TEST_SEED: given, INTEG_TEST_HISTORIES: histories } = process.env;

it("no history breaks a promise", { timeout: 3_600_000 }, async () => {
  const first = Number(given ?? 1);
  const count = given === undefined ? Number(histories ?? (isFull ? 100_000 : 1000)) : 1;
  const startMs = performance.now();
  const { total, found, processorSeconds } = await liveHistories(root, {
    first,
    count,
    shown: given === undefined ? 60 : 10_000,
  });
  if (found)
    throw new Error(
      `seed ${found.seed} (INTEG_TEST_SEED=${found.seed} plays it again):\n${found.broken.join("\n")}\n\n${found.history.join("\n")}`,
    );
  const seconds = Math.round((performance.now() - startMs) / 1000);
  recordFigure("one seed", { ...total, "broken promises": 0, seconds, "processor seconds": processorSeconds });
  expect(total.turns).toBeGreaterThan(count);
});
