/// <reference types="vite/client" />
// The unit tests of the folders that are mutated, and those of a journal in PostgreSQL, in one process, with the histories of
// the simulation for what they leave.
import { describe, expect, it } from "vitest";
import { liveThrough } from "../model/one-seed.ts";

it("mutants", () => {});

const files = import.meta.glob([
  "../unit/{changes,journal,secrets,disk,policy}/**/*.test.ts",
  "../integration/postgres-*.test.ts",
]);
const texts = import.meta.glob<string>(
  ["../unit/{changes,journal,secrets,disk,policy}/**/*.test.ts", "../integration/postgres-*.test.ts"],
  {
    query: "?raw",
    import: "default",
    eager: true,
  },
);
// What is loaded again after a reset would be another module than the one that the other tests have.
for (const [path, load] of Object.entries(files))
  if (!texts[path]!.includes("vi.resetModules()")) describe(path, async () => void (await load()));

describe("../model/one-seed.ts", () => {
  // Few at a time: a mutant is tried with those that come past it.
  it.each(Array.from({ length: 40 }, (_, at) => at * 10 + 1))("ten histories from %i", async (first) => {
    for (let seed = first; seed < first + 10; seed += 1) expect((await liveThrough(seed)).broken).toEqual([]);
  });
});
