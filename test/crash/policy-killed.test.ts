// Records `integ apply` of five items. Then restores and recovers each state of the disk and the service that a kill can leave.
// INTEG_TEST_RESULTS=<file> keeps a line for each recovery, so that the next run can skip the successful ones.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { recordFigure } from "../support/figures.mjs";
import { type Home, stayInThisProcess } from "../support/program.ts";
import { isFull, partOf } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { undisturbed } from "./harness.ts";
import {
  applyWords,
  brokenFiles,
  clearAll,
  deliveredTo,
  homeWithProfile,
  isAnyAboveSlots,
  keysOf,
  many,
  type PolicyOptions,
  policyText,
  resultsIn,
  strayFilesIn,
  widerKeyScope,
  widerScopes,
  violationsOf,
} from "./policy-scenes.ts";
import { RewindableService } from "../support/rewindable-service.ts";
import { enter, killedStates, type KilledState } from "./power-loss-states.ts";
import { recordFiles } from "./power-loss-trace.ts";
import { isMissing } from "../support/tools.mjs";

const names = many(5);
const { INTEG_TEST_RESULTS: resultsFile } = process.env;

const ways = ["apply", "journal recover, then apply"] as const;
type Way = (typeof ways)[number];

type Work = "creates" | "rotates" | "begins an overlap" | "ends an overlap";

interface Scene {
  readonly name: string;
  readonly parallel: number;
  readonly work: Work;
  readonly keys: readonly string[];
  readonly sample: number;
}

const some = ["item-1", "item-3", "item-4"];
const clientScene = { keys: [], sample: 2 } as const;
const mixedScene = { parallel: 4, keys: some, sample: 2 } as const;

const scenes: readonly Scene[] = [
  { name: "creates five clients one by one", parallel: 1, work: "creates", ...clientScene },
  { name: "creates five clients, four at a time", parallel: 4, work: "creates", ...clientScene },
  { name: "rotates five clients one by one", parallel: 1, work: "rotates", ...clientScene },
  { name: "rotates five clients, four at a time", parallel: 4, work: "rotates", ...clientScene },
  { name: "creates three keys and two clients", work: "creates", ...mixedScene },
  { name: "rotates three keys and two clients", work: "rotates", ...mixedScene },
  { name: "begins overlaps of three keys and two clients", work: "begins an overlap", ...mixedScene },
  { name: "ends overlaps of three keys and two clients", work: "ends an overlap", ...mixedScene },
];

/** Milliseconds after a request until a list proves that no key was created, with a second to spare. */
const settleMs = 16_000;
const shortOverlap = "1s";
/** Milliseconds after which `shortOverlap` has ended by the service's clock, which responses show in whole seconds. */
const overlapMs = 2500;

let service: RewindableService;
let account: Account;

const done = new Set(
  resultsFile !== undefined && existsSync(resultsFile)
    ? readFileSync(resultsFile, "utf8")
        .split("\n")
        .filter((line) => line.endsWith("\tright"))
        .map((line) => line.split("\t", 3).join("\t"))
    : [],
);

async function converge(at: Home, { work }: Scene, way: Way): Promise<string[]> {
  const wrong: string[] = [];
  if (way !== "apply") {
    const { code, stderr } = await undisturbed(at, ["journal", "recover", "--yes"]);
    if (code !== 0) wrong.push(`journal recover ended with ${code}: ${stderr}`);
  }
  const first = await undisturbed(at, applyWords);
  if (first.code !== 0) wrong.push(`apply ended with ${first.code}: ${first.stderr}`);
  if (/overlap/.test(work)) {
    await sleep(overlapMs);
    const { code, stderr } = await undisturbed(at, applyWords);
    if (code !== 0) wrong.push(`apply after the overlap ended with ${code}: ${stderr}`);
  }
  const again = await undisturbed(at, applyWords);
  const later = resultsIn(again);
  if (later.length !== names.length || later.some((result) => result !== "none"))
    wrong.push(`a later apply: ${again.code} ${later.join(", ")}`);
  return wrong;
}

async function countCreated(): Promise<number> {
  return (await account.clients()).length + (await keysOf(account)).length;
}

async function violationsIn(at: Home, scene: Scene, way: Way): Promise<string[]> {
  const wrong: string[] = [];
  if (await isAnyAboveSlots(account)) wrong.push("more than 20 clients");
  for (const name of await brokenFiles(account, at, names)) wrong.push(`${name} has nothing that works immediately`);
  if (scene.work !== "creates")
    for (const name of names) if (deliveredTo(at, name) === undefined) wrong.push(`${name} has no secret immediately`);
  const before = await countCreated();
  wrong.push(...(await converge(at, scene, way)), ...(await violationsOf(account, at, names)));
  // An item needs at most one new client or key: its secret was lost, or the killed run did not create it.
  const made = (await countCreated()) - before;
  if (made > names.length) wrong.push(`${made} were made after the crash`);
  const strayed = strayFilesIn(at);
  if (strayed.length > 0) wrong.push(`secrets in ${strayed.join(", ")}`);
  const { code, stdout } = await undisturbed(at, ["journal", "verify"]);
  if (code !== 0) wrong.push(`journal verify ended with ${code}: ${stdout}`);
  return wrong;
}

async function applyPolicy(at: Home, policy: PolicyOptions): Promise<void> {
  writeFileSync(at.path("integ.yaml"), policyText(service, policy));
  const { code, stderr } = await undisturbed(at, applyWords);
  if (code !== 0) throw new Error(stderr);
}

async function stageOf({ work, parallel, keys }: Scene): Promise<{ at: Home; words: string[] }> {
  await clearAll(account);
  const at = await homeWithProfile(service, { names, keys });
  const wider = { names, keys, scopes: widerScopes, keyScope: widerKeyScope };
  const overlap = /overlap/.test(work) ? shortOverlap : "0s";
  if (work !== "creates") await applyPolicy(at, { names, keys });
  if (work === "ends an overlap") {
    await applyPolicy(at, { ...wider, overlap });
    await sleep(overlapMs);
  } else if (work !== "creates") writeFileSync(at.path("integ.yaml"), policyText(service, { ...wider, overlap }));
  await service.calm();
  return { at, words: [...applyWords, "--parallel", String(parallel)] };
}

interface RecordedScene {
  readonly at: Home;
  readonly steps: number;
  readonly states: readonly KilledState[];
  readonly endedAt: number;
}

async function recordScene(scene: Scene): Promise<RecordedScene> {
  const { at, words } = await stageOf(scene);
  const { value, moments } = await service.record(() =>
    recordFiles(at.folder, (under) => at.spawned(words, { under })),
  );
  expect(value.ended.code, value.ended.stderr).toBe(0);
  const changed = scene.work === "begins an overlap" ? "waiting" : "done";
  expect(resultsIn(value.ended)).toEqual(names.map(() => changed));
  const states = [...killedStates(value, moments)];
  return { at, steps: value.steps.length, states, endedAt: performance.now() };
}

describe.skipIf(isMissing("strace"))("integ apply killed before any call", () => {
  const runs = new Map<Scene, RecordedScene>();

  beforeAll(async () => {
    stayInThisProcess();
    service = await RewindableService.start();
    account = new Account(service);
    for (const scene of scenes) runs.set(scene, await recordScene(scene));
  }, 300_000);
  afterAll(async () => {
    for (const { at } of runs.values()) at.remove();
    await service?.stop();
  });

  it.each(scenes.map((scene) => [scene.name, scene] as const))(
    "converges afterwards: %s",
    { timeout: 7_200_000 },
    async (name, scene) => {
      const { at, steps, states, endedAt } = runs.get(scene)!;
      if (scene.keys.length > 0) await sleep(Math.max(0, endedAt + settleMs - performance.now()));
      // A sample omits the first and the last state, which are the start and the end of the run.
      const chosen = isFull ? partOf(states) : spread(states, scene.sample + 2).slice(1, -1);
      const wrong: string[] = [];
      let played = 0;
      for (const [index, state] of chosen.entries()) {
        for (const way of isFull ? ways : [ways[index % 2]!]) {
          const id = [name, state.how, way].join("\t");
          if (done.has(id)) continue;
          await enter(state, { at }, service);
          const found = await violationsIn(at, scene, way);
          played += 1;
          wrong.push(...found.map((text) => `${state.how}, ${way}: ${text}`));
          if (resultsFile !== undefined)
            appendFileSync(resultsFile, `${id}\t${found.join("; ").replaceAll(/\s+/g, " ") || "right"}\n`);
        }
      }
      recordFigure("killed apply", { steps, states: states.length, played, wrong: wrong.length }, name);
      expect(wrong).toEqual([]);
    },
  );
});
