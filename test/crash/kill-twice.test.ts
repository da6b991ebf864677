// A second kill, during the recovery from the first: wherever the two fall, a third try brings everything to its end. A full
// run takes one first kill for each thing that a kill can leave, and kills the recovery from it at every call that changes
// something.
import { readdirSync, rmSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { killedAt, nameOf, type Point, sayWhetherTraced, spread, wasKilled } from "../support/strace.ts";
import { changingPoints, Desk, isFull, killAtEach, pointsOf, type Scene } from "./kill-loop.ts";
import { Findings } from "./oauth-client-audit.ts";
import { pointsWithDistinctRemains, remainsOf } from "./remains.ts";
import { create, replace, rotate } from "./oauth-client-scenes.ts";
import { rawFile } from "./secret-places.ts";

/**
 * Recovery after the scene's command was killed at a point. How often a thread wakes another one differs from run to run,
 * so that the same count may fall a call earlier or later: it is done again until it left what it left the first time.
 */
function recoveryAfter(scene: Scene, first: Point): Scene {
  let remains: string | undefined;
  return {
    name: `recovery of ${scene.name} killed at ${nameOf(first)}`,
    async arrange(at, account) {
      for (let round = 0; round < 20; round += 1) {
        const { words, old } = await scene.arrange(at, account);
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
        missed.push(...result.missed.map((second) => `${nameOf(first)}, then ${second}`));
      }
      console.log(`${scene.name}: ${points} pairs of kills, ${firsts.length} first ones; ${findings.figures}`);
      expect(findings.all).toEqual([]);
      expect(missed).toEqual([]);
    },
  );
});
