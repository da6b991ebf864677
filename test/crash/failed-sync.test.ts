// One sync that fails, whichever it is: of the journal, of a secret, of room that is given back. Nothing that changes
// anything leaves afterwards: this process cannot know any more what its disk holds.
import { afterAll, describe, expect, it } from "vitest";
import { sayWhetherTraced, spread } from "../support/strace.ts";
import { failOnce, faultsAt, Lies } from "./errno-loop.ts";
import { Desk, isFull, pointsOf, pointsOfEffect } from "./kill-loop.ts";
import { create, replace, rotate } from "./oauth-client-scenes.ts";

describe.runIf(sayWhetherTraced("a sync that fails once"))("a sync that fails once", () => {
  const desk = new Desk();
  afterAll(() => desk.close());

  it.each([create, replace, rotate])("$name", { timeout: 3_600_000 }, async (scene) => {
    const points = pointsOfEffect(await pointsOf(desk, scene)).filter(({ call }) => call === "fsync");
    const all = faultsAt(points).filter(({ errno, when }) => errno === "EIO" && !when.endsWith("+"));
    expect(all.length).toBeGreaterThan(9);
    const faults = isFull ? all : spread(all, 8);
    const lies = new Lies();
    let met = 0;
    for (const fault of faults) met += (await failOnce(desk, scene, { fault, lies })).injected;
    console.log(`${scene.name}: ${met} of ${faults.length} syncs failed once (${all.length} in all); ${lies.figures}`);
    expect(lies.all).toEqual([]);
    expect(met).toBe(faults.length);
  });
});
