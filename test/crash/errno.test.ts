// Makes file and network calls fail, once or permanently. After a failed sync the process sends no more changes, because it
// no longer knows the content of its disk.
import { describe, expect, it } from "vitest";
import { isOtherBinary } from "../support/program.ts";
import { type Point, spread } from "../support/strace.ts";
import * as clients from "./client-scenes.ts";
import { failuresAt, type Fault, playEach, pointsOf, pointsOfEffect } from "./harness.ts";
import * as keys from "./key-scenes.ts";
import { isFull } from "../support/sample.ts";
import { isMissing } from "../support/tools.mjs";

const client = clients.clientScenes();
const key = keys.keyScenes();
const isForeign = isOtherBinary("which parts of the program can fail to load");
const isTraced = !isMissing("strace");

interface Sample {
  /** Which failure of a kind of call to choose, from 0 (the first) to 1 (the last). */
  readonly where: number;
  /** Chooses every `of`th kind of call, from number `first` on. */
  readonly first: number;
  readonly of: number;
}

function sampleOf(all: readonly Fault[], { where, first, of }: Sample): Fault[] {
  const ofSyncs = all.filter(({ point, errno, forever }) => point.call === "fsync" && errno === "EIO" && !forever);
  const calls = [...new Set(all.map(({ point }) => point.call))];
  const some = calls.filter((_call, index) => index % of === first);
  const kinds = some.map((call) => all.filter(({ point }) => point.call === call));
  return [...new Set([...spread(ofSyncs, 2), ...kinds.map((kind) => kind[Math.round((kind.length - 1) * where)]!)])];
}

function syncsOf(points: readonly Point[]): Point[] {
  return pointsOfEffect(points).filter(({ call }) => call === "fsync");
}

describe.runIf(isTraced)("a command on a failing disk", () => {
  it.each([
    { scene: client(clients.create), sample: { where: 0, first: 0, of: 2 } },
    { scene: client(clients.rotate), sample: { where: 1, first: 2, of: 4 } },
    ...(isFull ? [{ scene: client(clients.replace), sample: { where: 0.5, first: 0, of: 4 } }] : []),
  ])("ends correctly: $scene.name", { timeout: 7_200_000 }, async ({ scene, sample }) => {
    const points = await pointsOf(scene);
    expect(syncsOf(points).length).toBeGreaterThan(9);
    const all = failuresAt(pointsOfEffect(points));
    await playEach(scene, { all, sample: sampleOf(all, sample), figure: "failing call" });
  });
});

// The program loads some modules only after it has sent a request.
describe.runIf(isTraced && !isForeign)("a module that cannot be loaded after the first request loses nothing", () => {
  const loads = (points: readonly Point[]): Point[] =>
    points
      .slice(points.findIndex(({ text }) => /"(?:POST|DELETE) /.test(text)) + 1)
      .filter(({ call, text }) => call === "openat" && /\/dist\/[^/"]+\.cjs"/.test(text));
  const { createToThree, replace, rotate, recover } = clients;
  const more = isFull ? [...[replace, rotate, recover].map(client), key(keys.replace)] : [];
  it.each([client(createToThree), key(keys.rotate), ...more])("$name", { timeout: 600_000 }, async (scene) => {
    const all = loads(await pointsOf(scene)).map((point) => ({ point, errno: "EIO", forever: false }));
    await playEach(scene, { all, sample: all });
  });
});

describe.runIf(isTraced)("a permanently failing sync loses nothing", () => {
  it.each([keys.create, keys.rotate, keys.replace].map(key))("$name", { timeout: 3_600_000 }, async (scene) => {
    const syncs = syncsOf(await pointsOf(scene));
    expect(syncs.length).toBeGreaterThan(4);
    const all = syncs.map((point) => ({ point, errno: "EIO", forever: true }));
    await playEach(scene, { all, sample: spread(all, 1), figure: "failing sync" });
  });
});
