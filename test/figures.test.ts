// Every figure that a test records is explained in test/README.md, and what figures.json holds is one of them.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { figuresFile } from "./support/figures.mjs";

const folder = import.meta.dirname;
const readme = readFileSync(join(folder, "README.md"), "utf8");
const explained = [...readme.matchAll(/^\| ([^|]+) \| `(?:test|test:full|test:\w+)` \|/gm)].flatMap(([, names]) =>
  names!.split(", "),
);

/** A figure's name, before what it is one of. */
const recorded = /(?:recordFigure\(\s*|figure: )"([^"]+)"/g;

it("every figure is explained, and no other", () => {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.m?[tj]s$/.test(file));
  const found = files
    .filter((file) => !file.startsWith("figures.test"))
    .flatMap((file) => [...readFileSync(join(folder, file), "utf8").matchAll(recorded)].map(([, name]) => name!));
  expect([...new Set(found)].toSorted()).toEqual(explained.toSorted());
});

it("figures.json has the commit of each, and nothing that is not explained", () => {
  if (!existsSync(figuresFile)) return;
  const figures = JSON.parse(readFileSync(figuresFile, "utf8")) as Record<string, { commit: string; date: string }>;
  for (const [name, { commit, date }] of Object.entries(figures)) {
    expect(explained).toContain(name.split(", ")[0]);
    expect(commit).toMatch(/^[0-9a-f]{7,40}(?:, changed)?$/);
    expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  }
});
