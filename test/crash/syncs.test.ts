import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../support/program.ts";
import { syncs } from "./syncs.ts";

const source = join(root, "src");
const call = /(?<!function )\b(?:f(?:data)?syncSync|syncFolder|folderSynced)\(/;

function linesOf(file: string): string[] {
  return readFileSync(join(source, file), "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => call.test(line) && !/^(?:\*|\/\/)/.test(line));
}

it("the list has exactly the syncs in src/", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const found = files.flatMap((file) => linesOf(file).map((line) => `${file}: ${line}`));
  expect(syncs.map(({ file, call: text }) => `${file}: ${text}`).toSorted()).toEqual(found.toSorted());
  expect(found.length).toBeGreaterThan(20);
});
