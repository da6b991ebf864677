// The cases driven through the command line: the built program, against a sandbox with a clock that the case moves.
import { afterAll, describe, expect, it } from "vitest";
import { readCases } from "./case.ts";
import { TypingPlayer } from "./command-line-player.ts";
import { startWorld } from "./world.ts";

/** What is asked a thousand times over is asked of the sandbox alone: contract.test.ts. */
const typed = readCases().map(({ file, cases }) => ({
  file,
  cases: cases.filter(({ steps }) => steps.every((step) => !("times" in step) || (step.times ?? 1) < 1000)),
}));
const raw: string[] = [];
const counts = { whole: 0, part: 0, none: 0, commands: 0 };

for (const { file, cases } of typed)
  describe(`${file}, typed`, () => {
    for (const one of cases)
      it(`§${one.section}: ${one.name}`, async () => {
        const world = await startWorld();
        const player = new TypingPlayer(one, world);
        try {
          await player.play();
        } finally {
          await world.close();
        }
        counts.commands += player.commands;
        counts[player.raw.length === 0 ? "whole" : player.commands > 0 ? "part" : "none"] += 1;
        raw.push(...player.raw.map((line) => `§${one.section} ${one.name}, ${line}`));
        expect(player.complaints).toEqual([]);
      });
  });

it("types every request but these", async () => {
  const all = typed.flatMap(({ cases }) => cases).length;
  expect(counts.whole + counts.part + counts.none).toBe(all);
  await expect(`${raw.toSorted((a, b) => a.localeCompare(b, "en")).join("\n")}\n`).toMatchFileSnapshot(
    "command-line-untyped.txt",
  );
});

afterAll(() => {
  const { whole, part, none, commands } = counts;
  console.log(`${whole} cases driven whole, ${part} in part, ${none} not at all: ${commands} commands`);
});
