// Each defect can still be put back: the sources say what test/model/put-back.mjs replaces, once.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../support/program.ts";
import { defects } from "./defects.mjs";

it.each(defects.map(({ name, changes }) => [name, changes] as const))("%s", (_name, changes) => {
  for (const [file, now, before] of changes) {
    expect(readFileSync(join(root, "src", file), "utf8").split(now), `${file}: ${now}`).toHaveLength(2);
    expect(before).not.toBe(now);
  }
});
