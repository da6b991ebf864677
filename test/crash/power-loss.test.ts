// The power goes out, which is more than a crash: what was not synced may be there or not. Every file operation of a command
// is recorded, and every state that strict POSIX allows is made, given to `recover`, and compared with what the service
// holds. INTEG_TEST_FULL=1 plays some hundred states of each command, otherwise a few: always the same.
// INTEG_TEST_SCENES=<pattern> plays more states of some scenes, those that lost most first, and stops at the first violation.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFull } from "../support/sample.ts";
import { stayInThisProcess } from "../support/program.ts";
import { sayWhetherTraced, spread } from "../support/strace.ts";
import {
  claim,
  create,
  createToProfile,
  recover,
  recoverUnsent,
  replace as replaceClient,
  rotate as rotateClient,
} from "./client-scenes.ts";
import { Findings } from "./harness.ts";
import * as keys from "./key-scenes.ts";
import {
  clientWork,
  keyWork,
  outFile,
  type PowerScene,
  profileAdd,
  profileEdit,
  profileRemove,
  prune,
  refusal,
  revocation,
} from "./power-loss-scenes.ts";
import { RewindableService } from "../support/rewindable-service.ts";
import { afterKill, type CutState, enter, isSecretSynced, record, type Recorded } from "./power-loss-states.ts";
import { recordFigure } from "../support/figures.mjs";

const { INTEG_TEST_SCENES: pattern } = process.env;

/** The secret was written, and its file cut to its length: the next step but one names it. */
function isCutToLength({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "cut" && last.length < 1000;
}

function isFolderMade({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "create" && last.path === "state";
}

function isNamed({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "link" && last.to === "client.secret";
}

/** Their list is believed some seconds after a request: they are recorded first and played last. */
const ofKeys = [keyWork(keys.create, 1), keyWork(keys.rotate, 2), keyWork(keys.replace, 3)];
const others: readonly PowerScene[] = [
  clientWork(create),
  clientWork(createToProfile),
  clientWork(rotateClient),
  clientWork(replaceClient),
  clientWork(recover),
  clientWork(recoverUnsent),
  afterKill({ name: "journal recover (the name was not given)", first: clientWork(create) }, isCutToLength),
  afterKill({ name: "journal recover (the name was given)", first: clientWork(create) }, isNamed),
  afterKill(
    { name: "oauth-clients create (the folder was made)", first: clientWork(create), words: "again" },
    isFolderMade,
  ),
  clientWork(claim),
  refusal,
  revocation,
  profileAdd,
  profileEdit,
  profileRemove,
  prune,
  outFile,
];
const chosen = (scenes: readonly PowerScene[]): PowerScene[] =>
  scenes.filter(({ name }) => pattern === undefined || new RegExp(pattern).test(name));

/** States of each scene that are played. */
const sample = isFull ? 300 : 4;

function chosenOf(states: readonly CutState[]): readonly CutState[] {
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

let service: RewindableService;
const recorded = new Map<PowerScene, Recorded>();
let lastRecorded = 0;

describe.runIf(sayWhetherTraced("states of the disk after a power cut"))("a power cut", () => {
  beforeAll(async () => {
    stayInThisProcess();
    service = await RewindableService.start();
  });

  afterAll(async () => {
    for (const { stage } of recorded.values()) stage.at.remove();
    await service.stop();
  });

  const total = { states: 0, all: 0, steps: 0, violations: 0 };

  it("is recorded for each command", { timeout: 300_000 }, async () => {
    for (const scene of chosen([...ofKeys, ...others])) recorded.set(scene, await record(scene, service));
    lastRecorded = performance.now();
    expect([...recorded.values()].filter(({ steps }) => steps < 3)).toEqual([]);
  });

  it.each(chosen([...others, ...ofKeys]).map((scene) => [scene.name, scene] as const))(
    "at every moment of %s leaves what recovery finishes",
    { timeout: 3_600_000 },
    async (name, scene) => {
      const { stage, states, steps } = recorded.get(scene)!;
      const settleMs = ofKeys.includes(scene) ? keys.settleMs - (performance.now() - lastRecorded) : 0;
      if (settleMs > 0) await new Promise((done) => setTimeout(done, settleMs));
      const findings = new Findings();
      let played = 0;
      for (const state of chosenOf(states)) {
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

  it("is survived in all states together", () => {
    const { all, states, violations } = total;
    recordFigure("power loss", { scenes: recorded.size, states: all, recovered: states, violations });
    expect(total.violations).toBe(0);
  });
});
