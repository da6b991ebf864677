// Measurements and their goals. A measurement returns lines, each with its subject (`what`), baseline (`against`), `ratio` to
// the baseline (above 1: slower), and `seconds` or `megabytes`.
import { spawnSync } from "node:child_process";
import { emptyJournal, finishedJournal, liveJournal } from "./journals.mjs";
import { sideBySide, spread, timed } from "./measure.mjs";
import { planned, rotations } from "./policies.mjs";
import { pageRows } from "./workplace.mjs";

export const measurements = { starts, create, slowList, list, memory, finished, live, planned, rotations };

/** A full run with these sizes takes at most ten minutes. */
export const full = {
  startRounds: 21,
  createRounds: 15,
  rows: 1_000_000,
  slowRows: 1_000_000,
  slowRounds: 2,
  listRounds: 5,
  jqRounds: 3,
  yamlRows: 100_000,
  loopPages: 20,
  memoryRuns: 3,
  finishedEntries: [100, 20_000],
  liveCredentials: [100, 3000],
  journalRounds: 11,
  items: 1000,
  planRounds: 3,
  rotationRounds: 3,
};

/** A smoke test with these sizes has no meaningful figures and no goals. */
export const quick = {
  startRounds: 1,
  createRounds: 1,
  rows: 2000,
  slowRows: 1000,
  slowRounds: 1,
  listRounds: 1,
  jqRounds: 1,
  yamlRows: 1000,
  loopPages: 2,
  memoryRuns: 1,
  finishedEntries: [10, 40],
  liveCredentials: [5, 20],
  journalRounds: 1,
  items: 20,
  planRounds: 1,
  rotationRounds: 1,
};

const count = (number) => number.toLocaleString("en");
const tab = (words) => ["__complete", ...words, ":"];

async function starts({ workplace, plan }) {
  const hasGh = !spawnSync("gh", ["--version"]).error;
  if (!hasGh) console.error("gh is not installed: its start is left out.");
  const results = await sideBySide(
    {
      "node -e 0": workplace.bareNode(),
      "--version": workplace.integ(["--version"]),
      "--help": workplace.integ(["--help"]),
      "a Tab": workplace.integ(tab(["oauth-clients"])),
      "one page of 25 rows": workplace.integ(["entities", "list", "--json"], workplace.list({ rows: 1000 })),
      ...(hasGh ? { "gh --version": { command: ["gh", "--version"], env: workplace.env } } : {}),
    },
    { rounds: plan.startRounds },
  );
  const line = (what, goal) => ({
    what,
    against: "node -e 0",
    ratio: results.ratio(what, "node -e 0"),
    seconds: results.seconds(what),
    goal,
  });
  return [
    { what: "node -e 0", seconds: results.seconds("node -e 0") },
    line("--version", { most: 1.15 }),
    line("--help", { most: 2 }),
    line("a Tab", { most: 2.2 }),
    line("one page of 25 rows", { most: 3.2 }),
    ...(hasGh ? [line("gh --version")] : []),
  ];
}

/** A change syncs the disk, and reading a page does not. */
async function create({ workplace, plan }) {
  const results = await sideBySide(
    {
      page: workplace.integ(["entities", "list", "--json"], workplace.list({ rows: 1000 })),
      create: workplace.creation(emptyJournal(workplace, "create")),
    },
    { rounds: plan.createRounds },
  );
  return [
    {
      what: "create, secret to a file",
      against: "one page",
      ratio: results.ratio("create", "page"),
      seconds: results.seconds("create"),
    },
  ];
}

async function slowList({ workplace, plan }) {
  const list = { rows: plan.slowRows, delayMs: 20 };
  const results = await sideBySide(
    { curl: workplace.curl(list), integ: workplace.allRows(list, ["--ndjson"]) },
    { rounds: plan.slowRounds, isWarm: true },
  );
  const what = `${count(list.rows)} rows, 20 ms a page, NDJSON`;
  const ratio = results.ratio("integ", "curl");
  return [{ what, against: "one curl", ratio, seconds: results.seconds("integ"), goal: { most: 1.08 } }];
}

async function list({ workplace, plan }) {
  const all = { rows: plan.rows };
  const forms = {
    NDJSON: ["--ndjson"],
    JSON: ["--json"],
    "--fields id,email": ["--ndjson", "--fields", "id,email"],
    "--unique": ["--ndjson", "--unique"],
    CSV: ["-o", "csv"],
    "a table": ["-o", "table"],
  };
  const commands = Object.entries(forms).map(([form, words]) => [form, workplace.allRows(all, words)]);
  const results = await sideBySide(
    { curl: workplace.curl(all), ...Object.fromEntries(commands) },
    { rounds: plan.listRounds },
  );
  const rows = count(plan.rows);
  return [
    { what: `${rows} rows, one curl`, seconds: results.seconds("curl") },
    ...Object.keys(forms).map((form) => ({
      what: `${rows} rows, ${form}`,
      against: "one curl",
      ratio: results.ratio(form, "curl"),
      seconds: results.seconds(form),
      goal: { most: form === "NDJSON" ? 4 : 8 },
    })),
    ...(await yaml({ workplace, plan })),
    ...(await peers({ workplace, plan })),
  ];
}

/** The YAML package is slow, so this list has fewer rows. */
async function yaml({ workplace, plan }) {
  const few = { rows: plan.yamlRows };
  const commands = { ndjson: workplace.allRows(few, ["--ndjson"]), yaml: workplace.allRows(few, ["-o", "yaml"]) };
  const found = await sideBySide(commands, { rounds: plan.jqRounds, isWarm: true });
  const what = `${count(few.rows)} rows, YAML`;
  return [{ what, against: "integ, NDJSON", ratio: found.ratio("yaml", "ndjson"), seconds: found.seconds("yaml") }];
}

async function peers({ workplace, plan }) {
  const all = { rows: plan.rows };
  const few = { rows: plan.loopPages * pageRows };
  const ndjson = workplace.allRows(all, ["--ndjson"]);
  const results = await sideBySide({ integ: ndjson, jq: workplace.curlIntoJq(all) }, { rounds: plan.jqRounds });
  const loop = await sideBySide(
    { integ: ndjson, loop: workplace.shellLoop(few) },
    { rounds: plan.jqRounds, isWarm: true },
  );
  const scaled = (figures) =>
    Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, (value * all.rows) / few.rows]));
  const rows = count(plan.rows);
  return [
    {
      what: `${rows} rows, curl \\| jq`,
      against: "integ, NDJSON",
      ratio: results.ratio("jq", "integ"),
      seconds: results.seconds("jq"),
      goal: { least: 5 },
    },
    {
      what: `${rows} rows, shell loop (${plan.loopPages} pages, multiplied)`,
      against: "integ, NDJSON",
      ratio: scaled(loop.ratio("loop", "integ")),
      seconds: scaled(loop.seconds("loop")),
    },
  ];
}

async function memory({ workplace, plan }) {
  const command = workplace.allRows({ rows: plan.rows }, ["--ndjson"]);
  const peaks = [];
  for (let run = 0; run < plan.memoryRuns; run += 1) peaks.push(await workplace.peakMegabytes(command, timed));
  const what = `${count(plan.rows)} rows, NDJSON, peak memory`;
  return [{ what, megabytes: spread(peaks), goal: { mostMegabytes: 120 } }];
}

/** Finished work must not slow down later commands. */
function finished({ workplace, plan }) {
  const [few, many] = plan.finishedEntries;
  return journals({
    workplace,
    plan,
    few: finishedJournal(workplace, few),
    many: finishedJournal(workplace, many),
    after: `${count(many)} finished entries`,
    against: `${count(few)} finished entries`,
    goal: { most: 1.3 },
  });
}

/** Commands may have to read all working credentials. */
function live({ workplace, plan }) {
  const [few, many] = plan.liveCredentials;
  return journals({
    workplace,
    plan,
    few: liveJournal(workplace, few),
    many: liveJournal(workplace, many),
    after: `${count(many)} live credentials`,
    against: `${count(few)} live credentials`,
    goal: { most: 2 },
  });
}

async function journals({ workplace, plan, few, many, after, against, goal }) {
  const commands = {
    create: (env) => workplace.creation(env),
    "journal list": (env) => workplace.integ(["journal", "list"], env),
    "a Tab for an entry": (env) => workplace.integ(tab(["journal", "show"]), env),
    status: (env) => workplace.integ(["status"], env),
  };
  const lines = [];
  for (const [name, command] of Object.entries(commands)) {
    const results = await sideBySide({ few: command(few), many: command(many) }, { rounds: plan.journalRounds });
    const what = `${name}, ${after}`;
    lines.push({ what, against, ratio: results.ratio("many", "few"), seconds: results.seconds("many"), goal });
  }
  return lines;
}
