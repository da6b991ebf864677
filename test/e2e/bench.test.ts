// The benchmark runs, whatever its figures: every contender gives an answer, and a program can read the result.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readResults, report } from "../../bench/report.mjs";
import { Home, root } from "../support/program.ts";
import { isFull } from "../support/sample.ts";

const absent = ["curl", "jq"].filter((tool) => spawnSync(tool, ["--version"]).error);
if (absent.length > 0) console.warn(`skipped: the benchmark: ${absent.join(" and ")} not installed`);

it.runIf(absent.length === 0)("npm run bench -- --quick", { timeout: 180_000 }, () => {
  const home = new Home();
  const result = home.path("result.json");
  // What takes longest, lists, growth, policies and the journals, is left to a full run.
  const sample = ["startUp", "walk", "latency", "memory", "table"];
  const only = isFull ? [] : ["--only", sample.join(",")];
  const words = [join(root, "bench", "run.mjs"), "--quick", "--no-build", "--result", result, ...only];
  const { status, stderr } = spawnSync(process.execPath, words, { env: home.env, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  const { object, quick, sections } = JSON.parse(readFileSync(result, "utf8"));
  home.remove();
  expect([object, quick]).toEqual(["benchmark", true]);
  const all = "startUp executable walk lists growth latency memory table journal recover keys sandbox policy".split(
    " ",
  );
  const always = isFull ? all : sample;
  // A full run measures a team's journal where there is a PostgreSQL.
  expect([always, ...(isFull ? [[...always, "team"]] : [])]).toContainEqual(Object.keys(sections));
  for (const line of Object.values<{ ratio: { median: number } }[]>(sections).flat())
    expect(line.ratio.median).toBeGreaterThan(0);
});

it("the chart and the table in bench/README.md are made from the results: node bench/report.mjs", () => {
  const text = readFileSync(join(root, "bench", "README.md"), "utf8");
  expect(report(text, readResults())).toBe(text);
});
