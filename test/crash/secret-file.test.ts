import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordOf, SingleRecord, RememberedDestination } from "../../src/secrets/destination.ts";
import { fileDestination, rememberedFile } from "../../src/secrets/file.ts";
import { bundleDriver, temporaryFolder } from "../support/bundle-driver.ts";
import { callsOf, chosenOf, type Fault, needStrace, pointsOf, runWithFault } from "./driver.ts";
import { canary, delivery, filesWithCanary, key, modeOf } from "../unit/secrets/a-secret.ts";
import { recordFigure } from "../support/figures.mjs";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "secret-file-driver.ts"));
});
afterAll(() => driver.remove());

const destinationOf = (record: SingleRecord): RememberedDestination =>
  rememberedFile(record as RecordOf<"file">, undefined);

function freshFolder(root: string, force: boolean): string {
  const folder = join(root, "secrets");
  rmSync(folder, { recursive: true, force: true });
  rmSync(`${folder}.record`, { force: true });
  mkdirSync(folder);
  if (force) writeFileSync(join(folder, "s"), "old");
  return folder;
}

/** True where the finished file is there; it is never there in part. */
function isThere(folder: string): boolean {
  const path = join(folder, "s");
  if (!existsSync(path)) return false;
  const text = readFileSync(path, "utf8");
  if (text === "old") return false;
  expect([text, modeOf(path)]).toEqual([canary, "600"]);
  return true;
}

/** What the journal would remember: nothing where the process did not get so far. */
function remembered(folder: string): SingleRecord | undefined {
  const text = existsSync(`${folder}.record`) ? readFileSync(`${folder}.record`, "utf8") : "";
  return text === "" ? undefined : JSON.parse(text);
}

/** What recovery does: look, and deliver again where nothing was. It looks twice, since it may be asked twice. */
async function recover(folder: string, record: SingleRecord, force: boolean): Promise<boolean> {
  const first = await destinationOf(record).completeDelivery({});
  expect(await destinationOf(record).completeDelivery({})).toBe(first);
  expect(isThere(folder)).toBe(first);
  if (first) return true;
  const again = fileDestination({ path: join(folder, "s"), as: "raw", force }, "/");
  await again.prepare("w");
  await again.deliver(key, delivery);
  destinationOf(record).removeReserve("entry");
  return false;
}

const sample: [Fault, boolean][] = [
  ["kill", false],
  ["EIO", true],
];
const rest: [Fault, boolean][] = [
  ["kill", true],
  ["EIO", false],
  ["EIO+", false],
  ["ENOSPC", true],
  ["ENOSPC+", false],
];
const cases = process.env.INTEG_TEST_FULL ? [...sample, ...rest] : sample;

describe("the order of calls", () => {
  it("room written and synced with its folder; secret synced, cut, synced; only then its name, synced", (context) => {
    needStrace(context);
    const folder = freshFolder(temporaryFolder(), false);
    const calls = callsOf([driver.path, folder], folder);
    expect(calls).toMatch(/openat fchmod pwrite64 ftruncate fsync openat fsync close/);
    expect(calls).toMatch(/pwrite64 fsync ftruncate fsync link openat fsync close unlink openat fsync close/);
  });
});

describe("a write that makes no progress", () => {
  it("is a failure, not an endless loop and not a success", (context) => {
    needStrace(context);
    const root = temporaryFolder();
    const folder = freshFolder(root, false);
    const command = [driver.path, folder];
    const writes = pointsOf(command, folder).filter(({ call }) => call === "pwrite64");
    expect(writes.length).toBeGreaterThan(1);
    for (const point of writes) {
      const fresh = (): void => void freshFolder(root, false);
      const { stdout, stderr } = runWithFault(command, { point, fault: "nothing written+", fresh });
      expect(stdout).not.toContain("delivered");
      expect(stderr).toContain("the device reports an I/O error");
      expect(existsSync(join(folder, "s"))).toBe(false);
    }
  });
});

describe("delivery to a file, disturbed at every file call it makes", () => {
  it.for(cases)("%s, --force %s: whole or absent, and recovery agrees", async ([fault, force], context) => {
    needStrace(context);
    const root = temporaryFolder();
    const folder = freshFolder(root, force);
    const command = [driver.path, folder, ...(force ? ["force"] : [])];
    const points = pointsOf(command, folder);
    expect(points.length).toBeGreaterThan(20);
    const ends = { delivered: 0, found: 0, again: 0, nothing: 0 };
    const chosen = chosenOf(points, { name: `delivery to a file, ${fault}`, sample: 20 });
    for (const point of chosen) {
      const at = `${fault} at ${point.call} ${point.nth}`;
      const fresh = (): void => void freshFolder(root, force);
      const { stdout } = runWithFault(command, { point, fault, fresh });
      const wasThere = isThere(folder);
      // Whoever was told that it is delivered has it; where nothing was sent there is no secret.
      if (stdout.includes("delivered")) expect(wasThere, at).toBe(true);
      const record = remembered(folder);
      if (record === undefined) {
        expect(filesWithCanary(folder), at).toEqual([]);
        ends.nothing++;
        continue;
      }
      const found = await recover(folder, record, force);
      if (wasThere) expect(found, at).toBe(true);
      expect([isThere(folder), readdirSync(folder), filesWithCanary(folder)], at).toEqual([
        true,
        ["s"],
        [join(folder, "s")],
      ]);
      ends[stdout.includes("delivered") ? "delivered" : found ? "found" : "again"]++;
    }
    const hit = { points: points.length, hit: chosen.length, violations: 0 };
    recordFigure("secret file", hit, `${fault}${force ? " --force" : ""}`);
    expect(Math.min(ends.nothing, ends.again)).toBeGreaterThan(0);
  });
});
