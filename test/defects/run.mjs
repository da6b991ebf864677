// Puts each defect into a copy of the sources and runs its tests: `node test/defects/run.mjs`, or `node test/defects/run.mjs
// <words of a name>`. Each must turn a test red, for its own reason: a copy that cannot be built or read is an error.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sourceCopy } from "../support/source-copy.mjs";
import { defects } from "./defects.mjs";

const [, , wanted = ""] = process.argv;
const copy = sourceCopy("defects");
const results = join(copy.folder, "results.json");

/** The first test that turned red, or undefined. */
function redOf(tests) {
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

let missed = 0;
try {
  for (const { name, file, now, before, tests } of defects.filter((one) => one.name.includes(wanted))) {
    const back = copy.rewrite(file, (text) => {
      if (text.split(now).length !== 2) throw new Error(`${file} does not have this once: ${now}`);
      return text.replace(now, () => before);
    });
    const started = performance.now();
    const red = redOf(tests);
    back();
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if (red === undefined) missed += 1;
    console.log(
      red === undefined
        ? `MISSED ${name} (${seconds} s)`
        : `red    ${name} (${seconds} s)\n       ${tests.join(" ")}: ${red}`,
    );
  }
} finally {
  copy.remove();
}
process.exitCode = missed === 0 ? 0 : 1;
