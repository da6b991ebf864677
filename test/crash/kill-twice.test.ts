// A second kill, during the recovery from the first: wherever the two fall, a third try brings everything to its end. A full
// run takes one first kill for each thing that a kill can leave, and kills the recovery from it at every call that changes
// something.
import { afterAll, describe, expect, it } from "vitest";
import { killedAt, nameOf, type Point, sayWhetherTraced, spread, wasKilled } from "../support/strace.ts";
import { changingPoints, Desk, isFull, killAtEach, pointsOf, type Scene } from "./kill-loop.ts";
import { Findings } from "./oauth-client-audit.ts";
import { pointsWithDistinctRemains } from "./remains.ts";
import { create, replace, rotate } from "./oauth-client-scenes.ts";
import { rawFile } from "./secret-places.ts";

/** Recovery after the scene's command was killed at a point. */
function recoveryAfter(scene: Scene, first: Point): Scene {
  return {
    name: `recovery of ${scene.name} killed at ${nameOf(first)}`,
    async arrange(at, account) {
      const { words, old } = await scene.arrange(at, account);
      const ended = await at.integ(words, { under: killedAt(first) });
      if (!wasKilled(ended)) throw new Error(`${nameOf(first)} was not reached: ${ended.stderr}`);
      const delivered = rawFile.delivered(at, "");
      return { words: ["journal", "recover", "--replace-lost-secret"], old, delivered };
    },
  };
}

const isTraced = sayWhetherTraced("a second kill during recovery");
const sample = { first: 3, second: 4 };

/** Where the scene's command is killed. The first few points leave nothing to recover, so that a sample has none of them. */
async function firstKillsOf(desk: Desk, scene: Scene): Promise<Point[]> {
  const points = changingPoints(await pointsOf(desk, scene));
  return isFull ? pointsWithDistinctRemains(desk, scene, points) : spread(points, sample.first + 2).slice(1, -1);
}

describe.runIf(isTraced)("recovery, killed as well", () => {
  const desk = new Desk();
  afterAll(() => desk.close());

  it.each([create, replace, rotate].map((scene) => [scene.name, scene] as const))(
    "%s",
    { timeout: 7_200_000 },
    async (_name, scene) => {
      const findings = new Findings();
      const missed: string[] = [];
      let points = 0;
      const firsts = await firstKillsOf(desk, scene);
      for (const first of firsts) {
        const recovery = recoveryAfter(scene, first);
        const all = changingPoints(await pointsOf(desk, recovery));
        const seconds = isFull ? all : spread(all, sample.second);
        const result = await killAtEach(desk, recovery, { points: seconds, findings });
        points += result.hit;
        missed.push(...result.missed);
      }
      console.log(`${scene.name}: ${points} pairs of kills, ${firsts.length} first ones; ${findings.figures}`);
      expect(findings.all).toEqual([]);
      expect(missed).toEqual([]);
    },
  );
});
