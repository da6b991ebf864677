// EIO, ENOSPC, EACCES, EROFS, EMFILE at every call that writes, syncs, opens, links or renames: once, and from then on.
import { afterAll, describe, expect, it } from "vitest";
import { countedAgain, sayWhetherTraced, spread } from "../support/strace.ts";
import { failOnce, faultsAt, Lies, type PlannedFault } from "./errno-loop.ts";
import { Desk, isFull, pointsOf, pointsOfEffect, type Scene } from "./kill-loop.ts";
import { create, replace, rotate } from "./oauth-client-scenes.ts";

const isTraced = sayWhetherTraced("faults of the disk at every call");
const sample = Number(process.env.INTEG_TEST_SAMPLE ?? 24);

describe.runIf(isTraced)("a disk that fails under a command", () => {
  const desk = new Desk();
  afterAll(() => desk.close());

  it.each([create, replace, rotate].map((scene: Scene) => [scene.name, scene] as const))(
    "%s: what is told is true, and recovery finishes it",
    { timeout: 7_200_000 },
    async (_name, scene) => {
      const all = faultsAt(pointsOfEffect(await pointsOf(desk, scene)));
      const faults = isFull ? all : spread(all, sample);
      const lies = new Lies();
      let injected = 0;
      for (const fault of faults) injected += (await failSurely(desk, scene, { fault, lies })) ? 1 : 0;
      console.log(
        `${scene.name}: ${injected} of ${faults.length} faults met (a full run has ${all.length}); ${lies.figures}`,
      );
      expect(lies.all).toEqual([]);
      expect(injected).toBe(faults.length);
    },
  );
});

/** Some calls are made less often in some runs: tried again until the fault is met. */
async function failSurely(desk: Desk, scene: Scene, given: { fault: PlannedFault; lies: Lies }): Promise<boolean> {
  for (let round = 0; round < 12; round += 1) {
    const fault = asCounted(given.fault, round);
    if ((await failOnce(desk, scene, { ...given, fault })).injected > 0) return true;
  }
  return false;
}

function asCounted(fault: PlannedFault, round: number): PlannedFault {
  const { nth } = countedAgain({ nth: Number.parseInt(fault.when, 10) }, round);
  return { ...fault, when: `${nth}${fault.when.endsWith("+") ? "+" : ""}` };
}
