// Each defect of defects/ can be put in: the sources say once what it replaces, and its tests exist.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { defects } from "./defects/defects.mjs";

const root = join(import.meta.dirname, "..");

it.each(defects)("$name", ({ file, now, before, tests }) => {
  expect(readFileSync(join(root, "src", file), "utf8").split(now), `${file}: ${now}`).toHaveLength(2);
  expect(before).not.toBe(now);
  expect(tests.filter((test) => !existsSync(join(root, test)))).toEqual([]);
});
