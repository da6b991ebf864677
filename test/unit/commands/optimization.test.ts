// What V8 is told while a list is printed, and that all of it is taken back.
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { Optimization } from "../../../src/commands/running/optimization.ts";

const [node20, node24, unknown] = ["11.3.244.8-node.38", "13.6.233.17-node.53", "99.1.2"];

/** @param pages whether each is written as it came @returns the flags that were set before the end, and at the end */
function played(version: string, pages: readonly boolean[]): { readonly walk: string[]; readonly end: string[] } {
  const told: string[] = [];
  const optimization = new Optimization(version, (flag) => void told.push(flag));
  for (const isVerbatim of pages) optimization.next(isVerbatim);
  const walk = told.splice(0);
  optimization.end();
  optimization.end();
  return { walk, end: told };
}

const nothing = ["--no-maglev", "--no-turbofan"];
const usual = ["--maglev", "--turbofan"];

describe("V8 is told", () => {
  it.each<[string, boolean[], string[], string[]]>([
    ["nothing before the third page", [true, true], [], []],
    ["to optimize nothing while pages are written as they came", [false, true, true, true], nothing, usual],
    [
      "the usual with the first page that is not",
      [false, true, true, true, false, true, false],
      [...nothing, ...usual],
      [],
    ],
  ])("%s", (_what, pages, walk, end) => {
    expect(played(node24, pages)).toEqual({ walk, end });
  });

  it.each([
    ["to optimize sooner where rows are read", node24, [true, true, false, true], "--invocation-count-for-maglev=30"],
    ["to optimize less on Node 20", node20, [true, true, true, true], "--interrupt-budget=2000000"],
    ["the same there where rows are read", node20, [true, true, false, true], "--interrupt-budget=2000000"],
  ])("%s", (_what, version, pages, flag) => {
    expect(played(version, pages).walk).toContain(flag);
    expect(played(version, pages).walk).not.toContain("--no-maglev");
  });

  it("nothing if its flags are not known", () => {
    for (const isVerbatim of [true, false])
      expect(played(unknown, [true, true, isVerbatim, true])).toEqual({ walk: [], end: [] });
  });

  it.each([node20, node24])(
    "of %s at the end what that version has by itself, of each flag that was set",
    (version) => {
      for (const isVerbatim of [true, false]) {
        const { walk, end } = played(version, [true, true, isVerbatim]);
        const nameOf = (flag: string): string => flag.replace(/^--(no-)?/, "").replace(/=.*/, "");
        expect(end.map(nameOf)).toEqual(walk.map(nameOf));
        expect(walk.length).toBeGreaterThan(0);
        if (!process.versions.v8.startsWith(version.split(".", 2).join("."))) continue;
        const defaults = execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
        for (const flag of end) expect(defaults).toContain(`default: ${flag}\n`);
      }
    },
  );
});
