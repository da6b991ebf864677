// EIO, ENOSPC, EACCES, EROFS, EMFILE at every call that writes, syncs, opens, links or renames: once, and from then on. What
// is said is true, recovery finishes it, and after a sync that failed nothing leaves that changes anything: this process
// cannot know any more what its disk holds.
import { describe, expect, it } from "vitest";
import { type Point, sayWhetherTraced, spread } from "../support/strace.ts";
import * as clients from "./client-scenes.ts";
import { failuresAt, type Fault, playEach, pointsOf, pointsOfEffect } from "./harness.ts";
import * as keys from "./key-scenes.ts";

const client = clients.clientScenes();
const key = keys.keyScenes();
const isTraced = sayWhetherTraced("faults of the disk at every call");

/**
 * Some syncs that fail once, and one failure of each kind of call.
 * @param where of the failures of a kind: 0 takes the first, 1 the last
 */
function sampleOf(all: readonly Fault[], { syncs, where }: { syncs: number; where: number }): Fault[] {
  const ofSyncs = all.filter(({ point, errno, forever }) => point.call === "fsync" && errno === "EIO" && !forever);
  const calls = [...new Set(all.map(({ point }) => point.call))];
  const kinds = calls.map((call) => all.filter(({ point }) => point.call === call));
  return [
    ...new Set([...spread(ofSyncs, syncs), ...kinds.map((kind) => kind[Math.round((kind.length - 1) * where)]!)]),
  ];
}

function syncsOf(points: readonly Point[]): Point[] {
  return pointsOfEffect(points).filter(({ call }) => call === "fsync");
}

describe.runIf(isTraced)("a disk that fails under a command", () => {
  it.each([
    { scene: client(clients.create), where: 0 },
    { scene: client(clients.replace), where: 0.5 },
    { scene: client(clients.rotate), where: 1 },
  ])("$scene.name", { timeout: 7_200_000 }, async ({ scene, where }) => {
    const points = await pointsOf(scene);
    expect(syncsOf(points).length).toBeGreaterThan(9);
    const all = failuresAt(pointsOfEffect(points));
    await playEach(scene, { all, sample: sampleOf(all, { syncs: 2, where }), figure: "failing call" });
  });
});

// Access keys have no idempotency key: only the syncs, from then on.
describe.runIf(isTraced)("a sync that fails from then on", () => {
  it.each([keys.create, keys.rotate, keys.replace].map(key))("$name", { timeout: 3_600_000 }, async (scene) => {
    const syncs = syncsOf(await pointsOf(scene));
    expect(syncs.length).toBeGreaterThan(4);
    const all = syncs.map((point) => ({ point, errno: "EIO", forever: true }));
    await playEach(scene, { all, sample: spread(all, 2), figure: "failing sync" });
  });
});
