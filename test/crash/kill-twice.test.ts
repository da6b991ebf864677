import { readdirSync, rmSync } from "node:fs";
import { describe, it } from "vitest";
import { killedAt, nameOf, type Point, spread, wasKilled } from "../support/strace.ts";
import { clientScenes, type ClientWork, create, replace, rotate } from "./client-scenes.ts";
import { changingPoints, countsOnly, playEach, pointsOf } from "./harness.ts";
import { isFull } from "../support/sample.ts";
import { pointsWithDistinctRemains, remainsOf } from "./remains.ts";
import { rawFile } from "./secret-places.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

const scene = clientScenes();

/** Repeats the first kill until it leaves the same state again: wake-up calls differ between runs and may shift the point. */
function recoveryAfter(work: ClientWork, first: Point): ClientWork {
  let remains: string | undefined;
  return {
    name: `recovery of ${work.name} killed at ${nameOf(first)}`,
    async arrange(at, account) {
      for (let round = 0; round < 20; round += 1) {
        const { words, old } = await work.arrange(at, account);
        const ended = await at.integ(words, { under: killedAt(first) });
        const now = wasKilled(ended) ? await remainsOf(at, account) : undefined;
        remains ??= now;
        const delivered = rawFile.delivered(at, "");
        if (now !== undefined && now === remains)
          return { words: ["journal", "recover", "--replace-lost-secret"], old, delivered };
        for (const name of readdirSync(at.folder)) rmSync(at.path(name), { recursive: true });
        await account.clear();
      }
      throw new Error(`${nameOf(first)} did not leave the same again`);
    },
  };
}

const sample = { first: 1, second: 2 };

/** A sample omits the first and the last changing call, which are near the command's start and end. */
async function firstKillsOf(work: ClientWork): Promise<Point[]> {
  const points = changingPoints(await pointsOf(scene(work)));
  return isFull ? pointsWithDistinctRemains(scene(work), points) : spread(points, sample.first + 2).slice(1, -1);
}

describe.skipIf(isMissing("strace"))("a recovery that is killed too is finished by the next one", () => {
  it.each(isFull ? [create, replace, rotate] : [create, rotate])("$name", { timeout: 7_200_000 }, async (work) => {
    const firsts = await firstKillsOf(work);
    if (countsOnly) return console.log(`count: ${work.name}, first kills with remains of their own: ${firsts.length}`);
    let points = 0;
    for (const first of firsts) {
      const recovery = scene(recoveryAfter(work, first));
      const all = changingPoints(await pointsOf(recovery)).map((point) => ({ point }));
      points += await playEach(recovery, { all, sample: spread(all, sample.second) });
    }
    recordFigure("second kill", { "first kills": firsts.length, points, violations: 0 }, work.name);
  });
});
