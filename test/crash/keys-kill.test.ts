// SIGKILL at every file and network call of `keys create`, `keys rotate` and `keys rotate --by-replacement`, then what a
// person types: one POST at most, no orphan, no secret lost without the way out.
import { describe, expect, it } from "vitest";
import { deskOfTests, type KeysDesk } from "../e2e/keys-desk.ts";
import { countedAgain, killedAt, nameOf, type Point, record, sayWhetherTraced, wasKilled } from "../support/strace.ts";
import { isFull, pointsOfEffect, sampleOf } from "./kill-loop.ts";
import { auditAtOnce, auditRecovered, type Broken, settleMs } from "./keys-audit.ts";
import { create, replace, rotate, type Scene } from "./keys-scenes.ts";

const isTraced = sayWhetherTraced("kills of keys create, rotate and replace");
let desk: KeysDesk;
let number = 0;
deskOfTests((opened) => (desk = opened));

async function kill(scene: Scene, point: Point, wrong: string[]): Promise<Broken | undefined> {
  const where = `${scene.name} at ${nameOf(point)}`;
  for (let round = 0; round < 8; round += 1) {
    await desk.renew();
    const stage = await scene.arrange(desk, `crash-${(number += 1)}-`);
    await desk.service.calm();
    const ended = await stage.at.integ(stage.words, { under: killedAt(countedAgain(point, round)) });
    if (!wasKilled(ended)) continue;
    return auditAtOnce(desk, scene, { stage, where, wrong });
  }
  return undefined;
}

describe.runIf(isTraced)("killed at any call", () => {
  it.each([
    [create, 18],
    [rotate, 14],
    [replace, 18],
  ] as const)(
    "$name",
    async (scene, sample) => {
      await desk.renew();
      const first = await scene.arrange(desk, `crash-${(number += 1)}-`);
      const { ended, points } = await record((under) => first.at.integ(first.words, { under }));
      expect(ended.code, ended.stderr).toBe(0);
      const wrong: string[] = [];
      const killed: Broken[] = [];
      const missed: string[] = [];
      const chosen = isFull ? pointsOfEffect(points) : sampleOf(points, sample);
      for (const point of chosen) {
        const found = await kill(scene, point, wrong);
        if (found) killed.push(found);
        else missed.push(nameOf(point));
      }
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      const paths: Record<string, number> = {};
      for (const one of killed) {
        const path = await auditRecovered(desk, scene, { ...one, wrong });
        paths[path] = (paths[path] ?? 0) + 1;
      }
      const most = Math.max(0, ...killed.map(({ posts }) => posts));
      console.log(
        `${scene.name}: ${killed.length} of ${chosen.length} points hit, of ${points.length} recorded; most POSTs a run ${most}; ${JSON.stringify(paths)}; wrong ${wrong.length}`,
      );
      expect(wrong).toEqual([]);
      expect(most).toBeLessThanOrEqual(1);
      expect(missed).toEqual([]);
    },
    isFull ? 7_200_000 : 300_000,
  );
});
