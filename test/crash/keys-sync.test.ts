// A disk whose sync fails from some call on, under the changes of access keys: after it nothing that changes anything may
// leave, since nobody would know of it; once the disk is well again recovery brings all to its end.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeysDesk } from "../e2e/keys-desk.ts";
import { failing, type Point, record, sayWhetherTraced, spread } from "../support/strace.ts";
import { isFull, pointsOfEffect } from "./kill-loop.ts";
import { create, recoverAs, replace, rotate, type Scene, type Stage } from "./keys-scenes.ts";

const isTraced = sayWhetherTraced("a sync that fails under a change of access keys");
let desk: KeysDesk;
let number = 0;

beforeAll(async () => {
  desk = await KeysDesk.open();
});
afterAll(() => desk.close());

/** Requests that change something; a token exchange and a list change nothing. */
function changing(requests: readonly string[]): string[] {
  return requests.filter((line) => /^(?:POST|DELETE) \/api\/v1\/access-keys/.test(line));
}

async function arrange(scene: Scene): Promise<Stage> {
  const stage = await scene.arrange(desk, `sync-${(number += 1)}-`);
  return stage;
}

async function failAt(scene: Scene, point: Point): Promise<string[]> {
  const stage = await arrange(scene);
  const fault = { call: point.call, errno: "EIO", when: `${point.nth}+` };
  const { ended, injected, requestsAfter } = await failing(fault, (under) => stage.at.integ(stage.words, { under }));
  const where = `${scene.name} at ${point.call} ${point.nth}`;
  const wrong = changing(requestsAfter).map((line) => `${where}: ${line} left after it (exit ${ended.code})`);
  if (injected === 0) wrong.push(`${where}: not met`);
  // What was delivered is a success, though its last step is not on disk: that is told.
  if (ended.code === 0 && !ended.stderr.includes("could not be")) wrong.push(`${where}: nothing was said`);
  const path = await recoverAs(desk, stage);
  if (path instanceof Error) wrong.push(`${where}: ${path.message}`);
  else for (const words of await scene.inTheEnd(desk, stage)) wrong.push(`${where}: in the end: ${words}`);
  return wrong;
}

describe.runIf(isTraced)("a sync that fails from then on", () => {
  it.each([create, rotate, replace])("$name", { timeout: 600_000 }, async (scene) => {
    const first = await arrange(scene);
    const { ended, points } = await record((under) => first.at.integ(first.words, { under }));
    expect(ended.code, ended.stderr).toBe(0);
    const syncs = pointsOfEffect(points).filter(({ call }) => call === "fsync");
    expect(syncs.length).toBeGreaterThan(4);
    const chosen = isFull ? syncs : spread(syncs, 6);
    const wrong: string[] = [];
    for (const point of chosen) wrong.push(...(await failAt(scene, point)));
    console.log(`${scene.name}: ${chosen.length} of ${syncs.length} syncs failed; wrong ${wrong.length}`);
    expect(wrong).toEqual([]);
  });
});
