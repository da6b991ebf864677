// What is measured, and what is promised of it (bench/README.md): each section gives lines of one shape.
import { join } from "node:path";
import { startServer } from "./account-service.mjs";
import { limit, root } from "./contenders.mjs";
import { executable } from "./executable-section.mjs";
import { growth } from "./growth-section.mjs";
import { journal } from "./journal-section.mjs";
import { keys } from "./keys-section.mjs";
import { lists } from "./lists-section.mjs";
import { peakMegabytes, processorSeconds, sideBySide, timed } from "./measure.mjs";
import { policy } from "./policy-section.mjs";
import { recover } from "./recover-section.mjs";
import { sandbox } from "./sandbox-section.mjs";
import { team } from "./team.mjs";

// A line: `what` was measured `against` what, its `ratio` (median, quartiles, extremes; over 1 is slower or larger than the
// other), `seconds` or `megabytes`, the `bar` it is promised to keep, a `note`. Starts have the ratio of `processor` time
// beside that of the clock.

const list = (rows, words = []) => ["entities", "list", "--all", ...words];

export const sections = {
  startUp,
  executable,
  walk,
  lists,
  growth,
  latency,
  memory,
  table,
  journal,
  recover,
  keys,
  sandbox,
  policy,
  team,
};

/** What is promised of a start, as a ratio to `node -e 0`: Node 20, and Node 24 if it differs. */
const starts = {
  "integ --version": [1.15],
  "integ --help": [1.5],
  "integ help keys create": [1.3],
  "a Tab": [1.6],
  "one page": [2.2, 1.8],
  "a creation beyond one page": [1],
};

/**
 * Start-up, one page of 25 rows and a creation that is delivered to a file, against a Node that does nothing. The first of each is
 * not counted: it keeps what was compiled, which the others read, but for the one that is not to.
 */
async function startUp({ workplace, plan }) {
  const page = ["entities", "list", "--json"];
  const account = await startServer();
  const contenders = {
    "node -e 0": workplace.bareNode(),
    "integ --version": workplace.integ(["--version"]),
    "integ --help": workplace.integ(["--help"]),
    "integ help keys create": workplace.integ(["help", "keys", "create"]),
    "a Tab": workplace.integ(["__complete", "oauth-clients", ":"]),
    "journal list, empty": workplace.integ(["journal", "list", "--json"]),
    "one page": workplace.integ(page, { list: { rows: 1000 } }),
    "a creation": workplace.creation({ url: account.baseUrl() }),
    "one page, nothing kept": workplace.integ(page, { list: { rows: 1000 }, env: { NODE_DISABLE_COMPILE_CACHE: "1" } }),
    ...(plan.gh ? { "gh --version": { name: "gh", command: ["gh", "--version"], env: workplace.env } } : {}),
  };
  const worked = {
    "a creation beyond one page": (seconds) => seconds["a creation"] - seconds["one page"],
  };
  try {
    const found = await sideBySide(contenders, { rounds: plan.startRounds, worked });
    const processor = await sideBySide(contenders, {
      rounds: plan.startProcessorRounds,
      worked,
      measure: processorSeconds,
    });
    return Object.entries(found).map(([what, figures]) => ({
      what,
      against: "node -e 0",
      ...figures,
      processor: processor[what].ratio,
      bar: workplace.bar(starts[what]),
      note: `processor ${processor[what].ratio.median.toFixed(2)} ×`,
    }));
  } finally {
    account.stop();
  }
}

/** What is promised of NDJSON against one curl: Node 20, and Node 24. */
const walkMost = [1.3, 1.1];

/** The whole walk at each size, as NDJSON and JSON, against the floor and what would be used in its place. */
async function walk({ workplace, plan }) {
  const lines = [];
  for (const rows of plan.sizes) {
    const size = { rows };
    const contenders = {
      curl: workplace.curl(size),
      ndjson: workplace.integ(list(rows, ["--ndjson"]), { list: size }),
      json: workplace.integ(list(rows, ["--json"]), { list: size }),
      ...(rows === plan.jqRows ? { jq: workplace.curlIntoJq(size) } : {}),
    };
    const found = await sideBySide(contenders, { rounds: plan.walkRounds(rows) });
    const before = await workplace.serverSeconds();
    const floor = await timed(contenders.curl);
    const share = ((await workplace.serverSeconds()) - before) / floor;
    lines.push(...walkLines(found, { rows, serverShare: share, bar: workplace.bar(walkMost) }));
  }
  return [...lines, await longLine({ workplace, plan }), await shellLoopLine({ workplace, plan })];
}

/** A list of which the start is a small part on any machine. */
async function longLine({ workplace, plan }) {
  const size = { rows: plan.longRows };
  const contenders = {
    curl: workplace.curl(size),
    ndjson: workplace.integ(list(size.rows, ["--ndjson"]), { list: size }),
  };
  const { ndjson } = await sideBySide(contenders, { rounds: plan.longRounds, isWarm: true });
  const what = `${size.rows.toLocaleString("en")} rows, NDJSON`;
  return { what, against: "one curl", ...ndjson, bar: workplace.bar(walkMost) };
}

function walkLines({ curl, ndjson, json, jq }, { rows, serverShare, bar }) {
  const count = rows.toLocaleString("en");
  return [
    {
      what: `${count} rows, one curl`,
      against: "itself",
      ...curl,
      note: `the server busy for ${Math.round(serverShare * 100)} % of it`,
    },
    { what: `${count} rows, NDJSON`, against: "one curl", ...ndjson, bar: rows === 1_000_000 ? bar : undefined },
    { what: `${count} rows, JSON`, against: "one curl", ...json },
    ...(jq
      ? [
          { what: `${count} rows, one curl | jq`, against: "one curl", ...jq },
          {
            what: `${count} rows, one curl | jq`,
            against: "integ NDJSON",
            ratio: quotient(jq.seconds, ndjson.seconds),
            bar: { least: 1 },
          },
        ]
      : []),
  ];
}

/** A shell loop over few pages, as seconds per page, beside integ's seconds per page over as many pages as it takes. */
async function shellLoopLine({ workplace, plan }) {
  const few = { rows: plan.loopPages * limit };
  const many = { rows: plan.sizes.at(-1) };
  const found = await sideBySide(
    { integ: workplace.integ(list(many.rows, ["--ndjson"]), { list: many }), loop: workplace.shellLoop(few) },
    { rounds: plan.loopRounds },
  );
  const scale = many.rows / few.rows;
  const { ratio, seconds } = found.loop;
  return {
    what: `${many.rows.toLocaleString("en")} rows, shell loop of curl and jq`,
    against: "integ NDJSON",
    seconds: times(seconds, scale),
    ratio: times(ratio, scale),
    bar: { least: 40 },
    note: `extrapolated from ${plan.loopPages} pages`,
  };
}

/** A service that takes its time: what is done meanwhile is free. */
async function latency({ workplace, plan }) {
  const slow = { rows: plan.latencyPages * limit, delayMs: 20 };
  const { ndjson } = await sideBySide(
    { curl: workplace.curl(slow), ndjson: workplace.integ(list(slow.rows, ["--ndjson"]), { list: slow }) },
    { rounds: plan.latencyRounds, isWarm: true },
  );
  const what = `${plan.latencyPages} pages, 20 ms each, NDJSON`;
  return [{ what, against: "one curl", ...ndjson, bar: { most: 1.1 } }];
}

/** Peak memory at each size; the last one against the one before. */
async function memory({ workplace, plan }) {
  const lines = [];
  const nodeWords = ["--require", join(root, "bench", "peak-memory.cjs")];
  for (const format of ["ndjson", "json"]) {
    const peaks = [];
    for (const rows of plan.sizes) {
      const contender = workplace.integ(list(rows, ["-o", format]), { list: { rows }, nodeWords });
      const found = [];
      for (let run = 0; run < plan.memoryRuns; run += 1)
        found.push(await peakMegabytes(contender, join(workplace.folder, "peak")));
      peaks.push(found.toSorted((a, b) => a - b)[Math.floor(found.length / 2)]);
    }
    lines.push(...peaks.map((peak, index) => memoryLine({ format, rows: plan.sizes[index], peak }, peaks[index - 1])));
  }
  return lines;
}

function memoryLine({ format, rows, peak }, before) {
  const isLargest = rows === 1_000_000;
  return {
    what: `${rows.toLocaleString("en")} rows, ${format}: peak memory`,
    against: before === undefined ? "itself" : "the size before",
    megabytes: peak,
    ratio: { median: before === undefined ? 1 : peak / before },
    bar: isLargest ? { most: 1.15, mostMegabytes: format === "ndjson" ? 73.4 : 130 } : undefined,
  };
}

/** A table is padded to its rows; NDJSON is not. */
async function table({ workplace, plan }) {
  const size = { rows: plan.tableRows };
  const found = await sideBySide(
    {
      ndjson: workplace.integ(list(size.rows, ["--ndjson"]), { list: size }),
      table: workplace.integ(list(size.rows), { list: size }),
      csv: workplace.integ(list(size.rows, ["-o", "csv"]), { list: size }),
    },
    { rounds: plan.tableRounds },
  );
  const count = size.rows.toLocaleString("en");
  return [
    { what: `${count} rows, NDJSON`, against: "itself", ...found.ndjson },
    { what: `${count} rows, table`, against: "NDJSON", ...found.table, bar: { most: 2 } },
    { what: `${count} rows, CSV`, against: "NDJSON", ...found.csv },
  ];
}

function times(spread, factor) {
  const scaled = Object.entries(spread).map(([name, value]) => [name, name === "of" ? value : value * factor]);
  return Object.fromEntries(scaled);
}

/** The ratio of two medians of one run, its spread from the quartiles of both. */
function quotient(above, below) {
  return {
    median: above.median / below.median,
    low: above.low / below.high,
    high: above.high / below.low,
    least: above.least / below.most,
    most: above.most / below.least,
    of: above.of,
  };
}
