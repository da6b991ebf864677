// Puts each defect into a copy of the sources, one at a time: `node test/defects/run.mjs [pattern of names]`. Its tests
// must fail, or one of INTEG_TEST_HISTORIES histories of model/one-seed must break a promise. A copy that cannot be
// built or read is an error.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sourceCopy } from "../support/source-copy.mjs";
import { defects as historyDefects } from "../model/defects.mjs";
import { liveHistories } from "../model/histories.mjs";
import { defects } from "./defects.mjs";

const [, , wanted = ""] = process.argv;
const copy = sourceCopy("defects");
const results = join(copy.folder, "results.json");

function firstFailure(tests) {
  rmSync(results, { force: true });
  const vitest = join(copy.folder, "node_modules/vitest/vitest.mjs");
  const words = [
    vitest,
    "run",
    "--project=unit",
    "--project=program",
    "--reporter=json",
    `--outputFile=${results}`,
    "--bail=1",
  ];
  const { INTEG_TEST_NO_BUILD: _no, ...env } = process.env;
  const { stdout, stderr } = spawnSync(process.execPath, [...words, ...tests], {
    cwd: copy.folder,
    env,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  const { numTotalTests, testResults } = JSON.parse(readFileSync(results, "utf8"));
  if (numTotalTests === 0) throw new Error(`no test ran: ${(stdout + stderr).slice(-2000)}`);
  return testResults.flatMap(({ assertionResults }) => assertionResults).find(({ status }) => status === "failed")
    ?.fullName;
}

async function firstBrokenHistory() {
  const count = Number(process.env.INTEG_TEST_HISTORIES ?? 60_000);
  const { found } = await liveHistories(copy.folder, { first: 1, count });
  return found && `seed ${found.seed}: ${found.broken[0]}`;
}

let missed = 0;
try {
  for (const { name, changes, tests } of [...defects, ...historyDefects]) {
    if (!new RegExp(wanted).test(name)) continue;
    const undo = changes.map(copy.put);
    const started = performance.now();
    const red = tests ? firstFailure(tests) : await firstBrokenHistory();
    for (const restore of undo.toReversed()) restore();
    if (red === undefined) missed += 1;
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${red === undefined ? "MISSED" : "red   "} ${name} (${seconds} s)`);
    if (red !== undefined) console.log(`       ${red}`);
  }
} finally {
  copy.remove();
}
process.exitCode = missed === 0 ? 0 : 1;
