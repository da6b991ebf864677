// The single executable as it starts, beside another tool that is one file: a `gh` that fetches nothing.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./contenders.mjs";
import { processorSeconds, sideBySide } from "./measure.mjs";

const file = join(root, "build", "integ");
const bars = { "--version": { most: 0.8 }, "one page": { most: 1.2 } };

/** What is not there is said, and nothing is measured. @returns lines as of sections.mjs */
export async function executable({ workplace, plan }) {
  const missing = [
    ...(existsSync(file) ? [] : ["build/integ (npm run executable)"]),
    ...(spawnSync("gh", ["--version"]).error ? ["gh"] : []),
  ];
  if (missing.length > 0) {
    console.log(`  skipped: ${missing.join(" and ")} not found`);
    return [];
  }
  const started = (words, of) => ({ ...workplace.integ(words, of), command: [file, ...words] });
  const contenders = {
    "gh --version": { name: "gh", command: ["gh", "--version"], env: workplace.env },
    "--version": started(["--version"]),
    "one page": started(["entities", "list", "--json"], { list: { rows: 1000 } }),
  };
  const found = await sideBySide(contenders, { rounds: plan.startRounds });
  const processor = await sideBySide(contenders, { rounds: plan.startProcessorRounds, measure: processorSeconds });
  return Object.entries(bars).map(([what, bar]) => ({
    what: `the executable, ${what}`,
    against: "gh --version",
    ...found[what],
    processor: processor[what].ratio,
    bar,
    note: `processor ${processor[what].ratio.median.toFixed(2)} ×`,
  }));
}
