// `integ apply` of five items, killed before each of its system calls. A run is recorded once; a call that changes neither the
// disk nor the wire leaves the state of the call before it, so that what is played are the different states: each is put back
// on the disk and into the service, brought to its end by the program, and compared with what the service holds.
//
// INTEG_TEST_FULL=1 plays every state, in both ways of recovery, otherwise a sample. INTEG_TEST_RESULTS=<file> keeps a line
// for each state and passes over those that stand there already: a run that was ended continues.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { sayWhetherTraced, spread } from "../support/strace.ts";
import { filesWithSecrets } from "./client-audit.ts";
import { undisturbed } from "./harness.ts";
import {
  applyWords,
  brokenFiles,
  deliveredTo,
  homeWith,
  isAnyAboveSlots,
  many,
  policyText,
  resultsIn,
  widerScopes,
  wrongsOf,
} from "./policy-scenes.ts";
import { RewindableService } from "../support/rewindable-service.ts";
import { enter, killedStates, type KilledState } from "./power-loss-states.ts";
import { recordFiles } from "./power-loss-trace.ts";

const names = many(5);
const { INTEG_TEST_RESULTS: resultsFile } = process.env;
const sample = 5;

/** What a person may do after the crash. */
const ways = ["apply", "journal recover, then apply"] as const;
type Way = (typeof ways)[number];

interface Scene {
  readonly name: string;
  readonly parallel: number;
  readonly isRotation: boolean;
}

const scenes: readonly Scene[] = [
  { name: "creates five clients one by one", parallel: 1, isRotation: false },
  { name: "creates five clients, four at a time", parallel: 4, isRotation: false },
  { name: "rotates five clients one by one", parallel: 1, isRotation: true },
  { name: "rotates five clients, four at a time", parallel: 4, isRotation: true },
];

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

async function converge(at: Home, way: Way): Promise<string[]> {
  const wrong: string[] = [];
  if (way !== "apply") {
    const { code, stderr } = await undisturbed(at, ["journal", "recover", "--yes"]);
    if (code !== 0) wrong.push(`journal recover ended with ${code}: ${stderr}`);
  }
  const first = await undisturbed(at, applyWords);
  if (first.code !== 0) wrong.push(`apply ended with ${first.code}: ${first.stderr}`);
  const again = await undisturbed(at, applyWords);
  const later = resultsIn(again);
  if (later.length !== names.length || later.some((result) => result !== "none"))
    wrong.push(`a later apply: ${again.code} ${later.join(", ")}`);
  return wrong;
}

/** Everything that is wrong with a state, before and after it was brought to its end. */
async function wrongsIn(at: Home, { isRotation }: Scene, way: Way): Promise<string[]> {
  const wrong: string[] = [];
  if (await isAnyAboveSlots(account)) wrong.push("more than 20 clients");
  for (const name of await brokenFiles(account, at, names)) wrong.push(`${name} has no working client immediately`);
  if (isRotation)
    for (const name of names) if (deliveredTo(at, name) === undefined) wrong.push(`${name} has no secret immediately`);
  const before = (await account.clients()).length;
  wrong.push(...(await converge(at, way)), ...(await wrongsOf(account, at, names)));
  // A client that an interrupted run made is replaced only if its secret is lost; what it did not make is made once.
  const made = (await account.clients()).length - before;
  if (made > names.length) wrong.push(`${made} clients were made after the crash`);
  const strayed = filesWithSecrets(at.folder).filter((file) => !/^item-\d\.json$/.test(file));
  if (strayed.length > 0) wrong.push(`secrets in ${strayed.join(", ")}`);
  const { code, stdout } = await undisturbed(at, ["journal", "verify"]);
  if (code !== 0) wrong.push(`journal verify ended with ${code}: ${stdout}`);
  return wrong;
}

async function stageOf({ isRotation, parallel }: Scene): Promise<{ at: Home; words: string[] }> {
  await account.clear();
  const at = homeWith(service, { names });
  if (isRotation) {
    const { code, stderr } = await undisturbed(at, applyWords);
    if (code !== 0) throw new Error(stderr);
    writeFileSync(at.path("integ.yaml"), policyText(service, { names, scopes: widerScopes }));
  }
  await service.calm();
  return { at, words: [...applyWords, "--parallel", String(parallel)] };
}

describe.runIf(sayWhetherTraced("an apply that is killed"))("integ apply, killed before each call", () => {
  beforeAll(async () => {
    stayInThisProcess();
    service = await RewindableService.start();
    account = new Account(service);
  });
  afterAll(() => service?.stop());

  it.each(scenes.map((scene) => [scene.name, scene] as const))(
    "%s, and converges",
    { timeout: 7_200_000 },
    async (name, scene) => {
      const { at, words } = await stageOf(scene);
      const { value, moments } = await service.record(() =>
        recordFiles(at.folder, (under) => at.spawned(words, { under })),
      );
      expect(value.ended.code, value.ended.stderr).toBe(0);
      const states = [...killedStates(value, moments)];
      const chosen: readonly KilledState[] = isFull ? states : spread(states, sample);
      const wrong: string[] = [];
      let played = 0;
      for (const [index, state] of chosen.entries()) {
        for (const way of isFull ? ways : [ways[index % 2]!]) {
          const id = [name, state.how, way].join("\t");
          if (done.has(id)) continue;
          await enter(state, { at }, service);
          const found = await wrongsIn(at, scene, way);
          played += 1;
          wrong.push(...found.map((text) => `${state.how}, ${way}: ${text}`));
          if (resultsFile !== undefined)
            appendFileSync(resultsFile, `${id}\t${found.join("; ").replaceAll(/\s+/g, " ") || "right"}\n`);
        }
      }
      at.remove();
      const { length: steps } = value.steps;
      console.log(
        `killed: apply ${name}: ${steps} steps, ${states.length} states, ${played} played, ${wrong.length} wrong`,
      );
      expect(wrong).toEqual([]);
    },
  );
});
