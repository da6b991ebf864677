import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { machineIdIn } from "../../../src/disk/machine-id.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

it("a moved state folder stays the same; a restored copy keeps its id, but is another copy", () => {
  const folder = temporaryFolder();
  const [at, copied, moved] = ["state", "copied", "moved"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const before = machineIdIn(at);
  expect(before.find()).toBeUndefined();
  const [copy, id] = [before.copy(), before.find()];
  expect([before.copy(), before.make()]).toEqual([copy, id]);
  cpSync(at, copied, { recursive: true, preserveTimestamps: true });
  renameSync(at, moved);
  expect([machineIdIn(moved).find(), machineIdIn(moved).copy()]).toEqual([id, copy]);
  expect(machineIdIn(copied).find()).toBe(id);
  expect(machineIdIn(copied).copy()).not.toBe(copy);
});
