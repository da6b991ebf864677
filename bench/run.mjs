// `npm run bench`: builds, starts the page server, runs the sections, prints the chart and writes the result file. See
// bench/README.md.
//
//   node bench/run.mjs [--quick] [--only startUp,executable,walk,lists,growth,latency,memory,table,journal,recover,keys,sandbox,policy,team] [--node <file>]… [--result <file>] [--no-build]
//
// With --node, once or more, the same with each of these Nodes, one after the other; else with the one that runs this.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { chartLine, isReached } from "./chart.mjs";
import { root, Workplace } from "./contenders.mjs";
import { sections } from "./sections.mjs";

const whole = {
  isWhole: true,
  startRounds: 31,
  startProcessorRounds: 11,
  sizes: [1000, 100_000, 1_000_000],
  walkRounds: (rows) => (rows >= 1_000_000 ? 7 : 15),
  longRows: 5_000_000,
  longRounds: 3,
  listRows: 1_000_000,
  listRounds: 4,
  listProcessorRounds: 2,
  growthSizes: [1000, 10_000, 100_000, 1_000_000],
  growthRounds: 3,
  jqRows: 100_000,
  loopPages: 20,
  loopRounds: 3,
  latencyPages: 200,
  latencyRounds: 2,
  memoryRuns: 5,
  tableRows: 100_000,
  tableRounds: 11,
  teamRounds: 7,
  teamEntries: 1_000_000,
  teamAtOnce: 100,
  journalSizes: [100, 10_000, 100_000, 1_000_000],
  journalRounds: 7,
  verifyRounds: 2,
  recoverEntries: 100_000,
  recoverUnsettled: [100, 1000],
  recoverRounds: 2,
  keyCounts: [1000, 100_000],
  keyRounds: 3,
  sandbox: { few: 50, many: 10_000, measured: 200, pages: 2000 },
  policyItems: 1000,
  policyRounds: 3,
};

/** Enough to see that everything runs; no figure of it means anything. */
const quick = {
  isWhole: false,
  startRounds: 1,
  startProcessorRounds: 1,
  sizes: [1000, 5000],
  walkRounds: () => 1,
  longRows: 10_000,
  longRounds: 1,
  listRows: 5000,
  listRounds: 1,
  listProcessorRounds: 1,
  growthSizes: [500, 1000],
  growthRounds: 1,
  jqRows: 5000,
  loopPages: 2,
  loopRounds: 1,
  latencyPages: 3,
  latencyRounds: 1,
  memoryRuns: 1,
  tableRows: 5000,
  tableRounds: 1,
  teamRounds: 1,
  teamEntries: 1000,
  teamAtOnce: 4,
  journalSizes: [100, 1000],
  journalRounds: 1,
  verifyRounds: 1,
  recoverEntries: 1000,
  recoverUnsettled: [10, 20],
  recoverRounds: 1,
  keyCounts: [100, 1000],
  keyRounds: 1,
  sandbox: { few: 5, many: 50, measured: 20, pages: 10 },
  policyItems: 20,
  policyRounds: 1,
};

/** What `node -e 0` takes at most on the machines that figures are promised of, milliseconds. */
const usualStart = 26;

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    node: { type: "string", multiple: true },
    result: { type: "string" },
    "no-build": { type: "boolean", default: false },
  },
});

process.exitCode = await bench();

/** @returns the exit code: 1 if a promised figure was missed */
async function bench() {
  if (!flags["no-build"]) build();
  const chosen = flags.only?.split(",") ?? Object.keys(sections);
  const unknown = chosen.filter((name) => !(name in sections));
  if (unknown.length > 0)
    throw new Error(`--only: ${unknown.join(", ")} not found; choose from ${Object.keys(sections).join(", ")}`);
  if (flags.result !== undefined && (flags.node?.length ?? 0) > 1)
    throw new Error("--result: one file for one --node; without it each has its own in bench/results");
  const missing = ["curl", "jq"].filter((tool) => spawnSync(tool, ["--version"]).error);
  if (missing.length > 0) throw new Error(`the benchmark compares with ${missing.join(" and ")}: install it`);
  const server = await startServer();
  const workplace = new Workplace(server);
  const plan = { ...(flags.quick ? quick : whole), gh: !spawnSync("gh", ["--version"]).error };
  try {
    const results = [];
    for (const node of flags.node ?? [process.execPath]) {
      workplace.use(node);
      results.push(await measureAll(chosen, { workplace, plan }));
    }
    console.log("In bench/README.md: node bench/report.mjs");
    const missed = results.flatMap(missedOf);
    for (const line of missed) console.log(line);
    if (missed.length > 0) for (const line of results.flatMap(slowStart)) console.log(line);
    if (plan.isWhole && missed.length === 0) console.log("Every promised figure was reached.");
    return missed.length === 0 ? 0 : 1;
  } finally {
    workplace.remove();
    server.stop();
  }
}

/** All chosen sections with one Node. @returns the result, which is kept in a file of its own */
async function measureAll(chosen, { workplace, plan }) {
  const machine = machineOf(workplace);
  const begun = { object: "benchmark", quick: flags.quick, measured_at: new Date().toISOString(), machine };
  console.log(
    `${machine.processor} × ${machine.processors}, Node ${machine.node}, integ ${machine.integ} (${machine.commit})`,
  );
  console.log(`load of the machine at the beginning: ${machine.load}\n`);
  const sections = {};
  let result = { ...begun, sections };
  for (const name of chosen) {
    const from = performance.now();
    sections[name] = await show(name, { workplace, plan });
    console.log(`  ${((performance.now() - from) / 1000).toFixed(0)} s\n`);
    // A run that is ended keeps what it measured.
    result = { ...begun, load_at_end: loadOf(), sections };
    keep(result);
  }
  return result;
}

function missedOf({ machine, sections }) {
  const missed = Object.values(sections)
    .flat()
    .filter((line) => !isReached(line));
  return missed.map((line) => `Node ${machine.node}: ${chartLine(line)}`);
}

/** A start is a part of nearly every figure, and takes longer on some machines than all the rest. */
function slowStart({ machine, sections }) {
  const start = sections.startUp?.find(({ what }) => what === "node -e 0")?.seconds.median * 1000;
  if (!(start > 1.5 * usualStart)) return [];
  const here = `node -e 0 takes ${Math.round(start)} ms here`;
  return [
    `Node ${machine.node}: ${here}; what is promised is meant for a machine on which it takes ${usualStart} ms or less.`,
  ];
}

/** How many processes wanted a processor in the last minute: a benchmark alone adds one to two. */
function loadOf() {
  return Number(loadavg()[0].toFixed(2));
}

async function show(name, { workplace, plan }) {
  console.log(name);
  const lines = await sections[name]({ workplace, plan });
  // What is promised is promised of the whole sizes.
  if (!plan.isWhole) for (const line of lines) delete line.bar;
  for (const line of lines) console.log(`  ${chartLine(line)}`);
  return lines;
}

/** Measured is what is in the tree, not what was built some time ago. */
function build() {
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`the build failed: ${stderr}`);
}

async function startServer() {
  const child = spawn(process.execPath, [join(root, "bench", "page-server.mjs"), "serve"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH },
  });
  const port = await new Promise((resolve, reject) => {
    child.stdout.once("data", (text) => resolve(Number(text)));
    child.once("exit", (code) => reject(new Error(`the page server ended with ${code}`)));
  });
  return { port, stop: () => child.stdin.end() };
}

/** @param workplace whose Node is measured */
function machineOf({ nodeVersion }) {
  const [first] = cpus();
  return {
    node: nodeVersion,
    load: loadOf(),
    platform: `${process.platform} ${process.arch}`,
    processor: first?.model ?? "unknown processor",
    processors: cpus().length,
    integ: JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version,
    commit: commitOf(),
    curl: versionOf("curl"),
    jq: versionOf("jq"),
  };
}

/** What is measured; a tree with changes of its own is not what the commit says. */
function commitOf() {
  const git = (...words) => spawnSync("git", words, { cwd: root, encoding: "utf8" }).stdout?.trim();
  const commit = git("rev-parse", "--short", "HEAD");
  return commit && `${commit}${git("status", "--porcelain", "src", "bin", "scripts") === "" ? "" : ", changed"}`;
}

function versionOf(tool) {
  return spawnSync(tool, ["--version"], { encoding: "utf8" }).stdout.split("\n")[0].split(" (")[0];
}

/** A quick run is not a result: it is kept only if it was asked to be. */
function keep(result) {
  if (flags.quick && flags.result === undefined) return;
  const file = flags.result ?? join(root, "bench", "results", `node-${result.machine.node.split(".")[0]}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
}
