// A disk that is really full: a tmpfs of a few pages under the state folder, then under the secret's folder, with one page
// more at each run until the command succeeds.
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, fstatSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Home } from "../support/program.ts";
import { clientScenes, type ClientWork, create, createTo, replace, rotate } from "./client-scenes.ts";
import { endOf, Findings, type Scene } from "./harness.ts";
import { isFull } from "../support/sample.ts";
import { rawFileNamed } from "./secret-places.ts";
import { recordFigure } from "../support/figures.mjs";
import { isMissing } from "../support/tools.mjs";

const page = 4096;

/** Mounts a disk over a folder of the home. */
function mountAt(at: Home, name: string): string {
  const folder = at.path(name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=1024k,mode=0700", "tmpfs", folder]);
  if (status !== 0) throw new Error(`mount: ${String(stderr)}`);
  return folder;
}

/** Fills a disk up to so many free pages. */
function fill(folder: string, freePages: number): void {
  const fd = openSync(join(folder, "filling"), "w");
  try {
    for (;;) writeSync(fd, Buffer.alloc(page));
  } catch {
    // full
  }
  ftruncateSync(fd, Math.max(0, fstatSync(fd).size - freePages * page));
  closeSync(fd);
}

async function onFullDisk(
  scene: Scene,
  { folder, freePages, findings }: { folder: string; freePages: number; findings: Findings },
): Promise<number | null> {
  let disk = "";
  const stage = await scene.stage({ before: (at) => void (disk = mountAt(at, folder)) });
  try {
    fill(disk, freePages);
    const ended = await stage.at.integ(stage.words);
    const where = `${scene.name}, ${freePages} free pages in ${folder}, ${endOf(ended)}`;
    const run = { findings, where, ended, recoveries: 3 };
    await stage.audit(run);
    rmSync(join(disk, "filling"));
    await stage.recover(run);
    return ended.code;
  } finally {
    spawnSync("umount", ["-l", disk]);
    stage.remove();
  }
}

const enough = 40;
const step = isFull ? 1 : 5;
const secretFolder = createTo(rawFileNamed("disk/client.secret"));

describe.skipIf(isMissing("the right to mount"))("a full disk", () => {
  const scene = clientScenes();

  const cases: [string, ClientWork][] = [
    ["state", create],
    ["disk", secretFolder],
    ...(isFull
      ? ([
          ["state", replace],
          ["state", rotate],
        ] as [string, ClientWork][])
      : []),
  ];
  it.each(cases)("%s: nothing is sent that could not be finished", { timeout: 1_200_000 }, async (folder, work) => {
    const findings = new Findings();
    const codes: (number | null)[] = [];
    for (let freePages = 0; freePages <= enough; freePages += step) {
      codes.push(await onFullDisk(scene(work), { folder, freePages, findings }));
      if (codes.at(-1) === 0) break;
    }
    console.log(`${work.name} with ${folder} full: exits ${codes.join(" ")}; ${findings.figures}`);
    recordFigure("full disk", { runs: codes.length, violations: findings.count }, `${work.name} with ${folder} full`);
    expect(findings.all).toEqual([]);
    expect(codes[0]).not.toBe(0);
    expect(codes.at(-1)).toBe(0);
  });
});
