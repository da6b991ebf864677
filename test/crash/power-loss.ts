// Records a command, and recovers states that a power cut can leave. INTEG_TEST_STATES=<n> plays n states of each command.
// INTEG_TEST_SCENES=<pattern> selects scenes, and plays their states without any unsynced change and 300 others.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { stayInThisProcess } from "../support/program.ts";
import { RewindableService } from "../support/rewindable-service.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { Findings } from "./harness.ts";
import type { PowerScene } from "./power-loss-scenes.ts";
import { type CutState, enter, isSecretSynced, record, type Recorded } from "./power-loss-states.ts";
import { isMissing } from "../support/tools.mjs";

const { INTEG_TEST_SCENES: pattern, INTEG_TEST_STATES: wanted } = process.env;

const chosen = (scenes: readonly PowerScene[]): PowerScene[] =>
  scenes.filter(({ name }) => pattern === undefined || new RegExp(pattern).test(name));

const sample = Number(wanted ?? (isFull ? 400 : 2));

function statesToPlay(states: readonly CutState[]): readonly CutState[] {
  if (pattern === undefined) return spread(states, sample);
  const lostMost = states.filter(({ how }) => how.endsWith("nothing unsynced is there"));
  return [
    ...lostMost,
    ...spread(
      states.filter((state) => !lostMost.includes(state)),
      300,
    ),
  ];
}

/** @param options.settles true to advance the service's clock after all recordings, so that recovery accepts its lists */
export function powerCuts(name: string, scenes: readonly PowerScene[], { settles = false } = {}): void {
  const isTraced = !isMissing("strace");
  describe.runIf(isTraced)(`a power cut, ${name}`, () => playAll(name, chosen(scenes), settles));
}

function playAll(group: string, scenes: readonly PowerScene[], settles: boolean): void {
  let service: RewindableService;
  const recorded = new Map<PowerScene, Recorded>();

  beforeAll(async () => {
    stayInThisProcess();
    service = await RewindableService.start();
  });

  afterAll(async () => {
    for (const { stage } of recorded.values()) stage.at.remove();
    await service.stop();
  });

  const total = { states: 0, all: 0, steps: 0, violations: 0 };

  it("is recorded for each command", { timeout: 1_800_000 }, async () => {
    for (const scene of scenes) recorded.set(scene, await record(scene, service));
    if (settles) await service.settle();
    expect([...recorded.values()].filter(({ steps }) => steps < 3)).toEqual([]);
  });

  it.each(scenes.map((scene) => [scene.name, scene] as const))(
    "during %s leaves only states that recovery finishes",
    { timeout: 3_600_000 },
    async (name, scene) => {
      const { stage, states, steps } = recorded.get(scene)!;
      const findings = new Findings();
      let played = 0;
      for (const state of statesToPlay(states)) {
        await enter(state, stage, service);
        await stage.check({
          findings,
          where: `${name}, ${state.how}`,
          ended: state.ended,
          isSecretSynced: isSecretSynced(state),
        });
        played += 1;
        if (findings.all.length > 0) console.error(`power loss: ${findings.all.at(-1)}`);
        if (pattern !== undefined && findings.all.length > 0) break;
      }
      total.states += played;
      total.all += states.length;
      total.steps += steps;
      total.violations += findings.all.length;
      recordFigure("power loss", { steps, states: states.length, recovered: played, violations: findings.count }, name);
      expect(findings.all).toEqual([]);
    },
  );

  it("causes no violation in any scene", () => {
    const { all, states, violations } = total;
    recordFigure("power loss", { scenes: recorded.size, states: all, recovered: states, violations }, group);
    expect(total.violations).toBe(0);
  });
}
