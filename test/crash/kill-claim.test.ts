import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readJournal } from "../support/journal-file.ts";
import { countedAgain, killedAt, nameOf, type Point, spread, wasKilled } from "../support/strace.ts";
import { claim, claimRotation, claimUnnamed, clientScenes, forget } from "./client-scenes.ts";
import { changingPoints, countsOnly, killTest, pointsOf, undisturbed } from "./harness.ts";
import { isFull } from "../support/sample.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

const scene = clientScenes();
const claiming = scene(claim);

killTest(claiming, { sample: 3 });
killTest(scene(claimUnnamed), { sample: 2 });
killTest(scene(claimRotation), { sample: 2 });

async function playAt(
  points: readonly Point[],
  play: (point: Point) => Promise<string[] | undefined>,
): Promise<{ readonly found: string[]; readonly hit: number }> {
  const found: string[] = [];
  let hit = 0;
  for (const point of points) {
    let wrong: string[] | undefined;
    for (let round = 0; round < 8 && wrong === undefined; round += 1) wrong = await play(countedAgain(point, round));
    if (wrong !== undefined) hit += 1;
    found.push(...(wrong ?? []).map((words) => `${nameOf(point)}: ${words}`));
  }
  return { found, hit };
}

/** @returns the violations after a claim to another destination, or undefined if the first claim was not killed */
async function claimedElsewhere(point: Point): Promise<string[] | undefined> {
  const stage = await claiming.stage();
  const { at, account, words } = stage;
  try {
    if (!wasKilled(await at.integ(words, { under: killedAt(point) }))) return undefined;
    const [, , id] = words;
    const isOpen = readJournal(at.path("state", "journal.ndjson")).some(({ state }) => state === "undelivered");
    const again = isOpen ? await undisturbed(at, ["journal", "claim", id!, "--secret-file", "elsewhere"]) : undefined;
    const wrong: string[] = [];
    if (again && again.code !== 0) wrong.push(`claim again: exit ${again.code}: ${again.stderr}`);
    const recovered = await undisturbed(at, ["journal", "recover"]);
    if (recovered.code !== 0) wrong.push(`recover: ${recovered.stderr}`);
    const reserves = readdirSync(at.folder).filter((name) => name.includes(".integ-"));
    wrong.push(...reserves.map((name) => `${name} is left`));
    const place = words[words.indexOf("--secret-file") + 1]!;
    const written = [place, "elsewhere"].filter((name) => existsSync(at.path(name)));
    if (written.length === 0) wrong.push("the secret is nowhere");
    const { client_id } = (await account.live())[0]!;
    for (const name of written)
      if (!(await account.opens(client_id!, readFileSync(at.path(name), "utf8").trimEnd())))
        wrong.push(`${name} holds no secret that works`);
    return wrong;
  } finally {
    stage.remove();
  }
}

describe.skipIf(isMissing("strace"))("a killed journal claim", () => {
  it("that is repeated to another destination leaves nothing at the first", { timeout: 7_200_000 }, async () => {
    const all = changingPoints(await pointsOf(claiming));
    const points = isFull ? all : spread(all, 2);
    if (countsOnly) return console.log(`count: journal claim, then elsewhere: ${all.length}`);
    const { found, hit } = await playAt(points, claimedElsewhere);
    recordFigure("kill", { points: all.length, hit, violations: found.length }, "journal claim, then elsewhere");
    expect(found).toEqual([]);
    expect(hit).toBe(points.length);
  });
});

/** @returns the violations after a second `forget`, or undefined if the first command was not killed */
async function forgottenAgain(point: Point): Promise<string[] | undefined> {
  const stage = await scene(forget).stage();
  const { at, words } = stage;
  try {
    if (!wasKilled(await at.integ(words, { under: killedAt(point) }))) return undefined;
    const again = await undisturbed(at, words);
    const kept = readdirSync(at.path("state", "undelivered"));
    const { state } = readJournal(at.path("state", "journal.ndjson"))[0]!;
    const wrong = kept.map((name) => `${name} is kept (${state}, typed again: exit ${again.code})`);
    if (state !== "abandoned") wrong.push(`it is ${state}`);
    // Exit 2 reports that no secret is left to forget.
    if (![0, 2].includes(again.code!)) wrong.push(`typed again: exit ${again.code}: ${again.stderr}`);
    return wrong;
  } finally {
    stage.remove();
  }
}

describe.skipIf(isMissing("strace"))("a killed journal forget", () => {
  it("that is repeated leaves no copy of the secret", { timeout: 7_200_000 }, async () => {
    const all = changingPoints(await pointsOf(scene(forget)));
    if (countsOnly) return console.log(`count: journal forget: ${all.length}`);
    // The last six calls are between the record and the removal of the copy.
    const points = isFull ? all : [...spread(all.slice(0, -6), 2), ...spread(all.slice(-6), 3)];
    const { found, hit } = await playAt(points, forgottenAgain);
    recordFigure("kill", { points: all.length, hit, violations: found.length }, "journal forget, typed again");
    expect(found).toEqual([]);
    expect(hit).toBe(points.length);
  });
});
