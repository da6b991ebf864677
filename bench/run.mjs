// `npm run bench`: builds, measures, and prints one table. See bench/README.md.
//
//   node bench/run.mjs [--quick] [--only <measurement>,…] [--node <file>]… [--no-build]
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measurements, quick, full } from "./measurements.mjs";
import { isMissed, table } from "./table.mjs";
import { root, startProcess, Workplace } from "./workplace.mjs";

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    node: { type: "string", multiple: true, default: [process.execPath] },
    "no-build": { type: "boolean", default: false },
  },
});
const chosen = flags.only?.split(",") ?? Object.keys(measurements);
const unknown = chosen.filter((name) => !Object.hasOwn(measurements, name));
if (unknown.length > 0)
  throw new Error(`--only takes ${Object.keys(measurements).join(", ")}, not ${unknown.join(", ")}`);
for (const tool of ["curl", "jq"]) if (spawnSync(tool, ["--version"]).error) throw new Error(`install ${tool} first`);

if (!flags["no-build"]) build();
const startedAt = performance.now();
const loadBefore = loadOf();
const runs = [];
for (const node of flags.node) runs.push({ version: versionOf(node), lines: await measureAll(node) });
console.log(`${machine()}\n\n${table(runs)}`);
if (runs.some(({ lines }) => lines.some(isMissed))) process.exitCode = 1;

/** The benchmark must not measure an older build. */
function build() {
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`the build failed: ${stderr}`);
}

async function measureAll(node) {
  const service = await startProcess([process.execPath, join(root, "bench", "service.mjs")], {
    env: { PATH: process.env.PATH },
    isComplete: (printed) => printed.endsWith("\n"),
  });
  const workplace = new Workplace({ node, port: Number(service.text) });
  try {
    const lines = [];
    for (const name of chosen) {
      console.error(`measuring: ${name}`);
      try {
        lines.push(...(await measurements[name]({ workplace, plan: flags.quick ? quick : full })));
      } catch (error) {
        // A failed measurement must not lose the earlier results.
        console.error(error);
        process.exitCode = 1;
      }
    }
    // Goals apply to the full sizes only.
    return flags.quick ? lines.map((line) => ({ ...line, goal: undefined })) : lines;
  } finally {
    workplace.remove();
    await service.stop();
  }
}

function versionOf(node) {
  const { status, stdout } = spawnSync(node, ["-p", "process.versions.node"], { encoding: "utf8" });
  if (status !== 0) throw new Error(`--node: ${node} is not a Node binary`);
  return stdout.trim();
}

function machine() {
  const git = (...words) => spawnSync("git", words, { cwd: root, encoding: "utf8" }).stdout.trim();
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const isChanged = git("status", "--porcelain", "src", "bin", "scripts") !== "";
  const commit = `${git("rev-parse", "--short", "HEAD")}${isChanged ? ", changed" : ""}`;
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  const where = `${cpus().length} × ${cpus()[0]?.model ?? process.arch}`;
  const when = new Date().toISOString().slice(0, 10);
  const load = `load ${loadBefore} to ${loadOf()}`;
  return `integ ${version} (${commit}) on ${when}, ${where}, ${load}, ${minutes} minutes`;
}

/** The benchmark itself adds one or two to the load average of the last minute. */
function loadOf() {
  return loadavg()[0].toFixed(1);
}
