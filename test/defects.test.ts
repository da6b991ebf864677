// Checks that each defect of test/defects/run.mjs can still be applied: its text occurs once, and its tests exist.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { defects } from "./defects/defects.mjs";
import { defects as ofChanges } from "./model/defects.mjs";

const root = join(import.meta.dirname, "..");

type Defect = (typeof ofChanges)[number] & { readonly tests?: readonly string[] };
const all: readonly Defect[] = [...defects, ...ofChanges];

it.each(all)("$name", ({ changes, tests = [] }) => {
  for (const [file, text, defect] of changes) {
    expect(readFileSync(join(root, "src", file), "utf8").split(text), `${file}: ${text}`).toHaveLength(2);
    expect(defect).not.toBe(text);
  }
  expect(tests.filter((test) => !existsSync(join(root, test)))).toEqual([]);
});
