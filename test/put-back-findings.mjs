// Breaks what was fixed for a defect of findings.md in a copy of the sources, one at a time, and shows that its test fails:
// `npm run test:findings`, or `npm run test:findings -- <number>...`.
import { spawnSync } from "node:child_process";
import { fixes } from "./fixes.mjs";
import { sourceCopy } from "./support/source-copy.mjs";

const wanted = process.argv.slice(2);

const copy = sourceCopy("findings");

/**
 * @param {string} test a file below `test/`, and perhaps `: ` and a part of a test's name
 * @returns how many tests failed
 */
function failedIn(test) {
  const [file, name] = test.split(/: (.*)/);
  const project = /^(?:unit\/|[\w-]+$)/.test(file) ? "unit" : "program";
  const words = ["vitest", "run", "--project", project, `test/${file}.test.ts`, "--reporter=json", "--silent"];
  if (name !== undefined) words.push("-t", name.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`));
  const { stdout, stderr } = spawnSync("npx", words, { cwd: copy.folder, encoding: "utf8", maxBuffer: 1e9 });
  const start = stdout.indexOf('{"numTotal');
  if (start < 0) throw new Error(`${test} did not run: ${stderr}`);
  return JSON.parse(stdout.slice(start, stdout.lastIndexOf("}") + 1)).numFailedTests;
}

let missed = 0;
try {
  for (const [number, test, ...changes] of fixes) {
    if (wanted.length > 0 && !wanted.includes(number)) continue;
    const undo = changes.map(copy.put);
    const failed = failedIn(test);
    for (const back of undo.toReversed()) back();
    if (failed === 0) missed += 1;
    const where = changes.map(([file, now]) => `${file} without "${now.trim()}"`).join(", ");
    console.log(`${failed > 0 ? "seen  " : "MISSED"} ${number}: ${where}: ${failed} tests of ${test} fail`);
  }
} finally {
  copy.remove();
}
process.exitCode = missed === 0 ? 0 : 1;
