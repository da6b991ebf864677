// Reading journals of any length: how much more it costs than one of a hundred entries.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { startServer } from "./account-service.mjs";
import { notedMegabytes, noting, peakMegabytes, processorSeconds, sideBySide, spread, timed } from "./measure.mjs";
import { makeJournal } from "./made-journal.mjs";

/** Seconds of processor: other work on the machine hardly changes them. @returns lines as of sections.mjs */
export async function journal({ workplace, plan }) {
  const sizes = plan.journalSizes;
  const paths = sizes.map((entries) => madeJournal(workplace, entries));
  const last = sizes.at(-1);
  const lines = [];
  const account = await startServer();
  const commands = {
    ...Object.fromEntries(
      Object.entries(reads).map(([what, words]) => [what, (path) => reading(workplace, { words, path })]),
    ),
    "oauth-clients create": (path) => workplace.creation({ url: account.baseUrl(), env: { INTEG_JOURNAL: path } }),
  };
  for (const [what, command] of Object.entries(commands)) {
    const contenders = Object.fromEntries(sizes.map((entries, index) => [entries, command(paths[index])]));
    const found = await sideBySide(contenders, { rounds: plan.journalRounds, measure: processorSeconds });
    for (const entries of sizes.slice(1)) {
      const { ratio, seconds } = found[entries];
      const bar = entries === last ? { most: 1.3 } : undefined;
      lines.push({ what: `${what}, ${named(entries)}`, against: named(sizes[0]), ratio, seconds, bar });
    }
    lines.push(
      await memoryLine(
        { workplace, plan },
        { what: `${what}, ${named(last)}`, command: contenders[last], floor: contenders[sizes[0]] },
      ),
    );
  }
  account.stop();
  return [...lines, ...(await wholeLines(workplace, { plan, path: paths.at(-1), entries: last }))];
}

/** What reads every byte of the longest: by the clock, since several processors are used. */
async function wholeLines(workplace, { plan, path, entries }) {
  const read = (words, nodeWords = []) => workplace.integ(words, { env: { INTEG_JOURNAL: path }, nodeWords });
  const [verify, list] = [
    ["journal", "verify"],
    ["journal", "list"],
  ];
  const peakFile = join(workplace.folder, "peak of verify");
  // A reader that found no index leaves one, and the next reader is as fast as of a short journal.
  const contenders = {
    verify: noting(read(verify, ["--require", hook]), peakFile),
    without: { ...read(list), before: () => removeIndex(path) },
    "left behind": read(list),
  };
  const measure = ({ before, ...contender }) => {
    before?.();
    return timed(contender);
  };
  const rounds = { rounds: plan.verifyRounds, measure, isTurned: false, isWarm: true };
  const found = await sideBySide(contenders, rounds);
  const megabytes = notedMegabytes(peakFile);
  const size = statSync(path).size / 1e9;
  return [
    {
      what: `journal verify, ${named(entries)}`,
      against: "itself",
      ...found.verify,
      bar: { mostSeconds: Number(((10 * size) / 2.8).toFixed(1)) },
      note: `${size.toFixed(2)} GB, by the clock`,
    },
    { what: `journal list without an index, ${named(entries)}`, against: "journal verify", ...found.without },
    {
      what: `journal list by the index that it left, ${named(entries)}`,
      against: "journal verify",
      ...found["left behind"],
    },
    {
      what: `journal verify, ${named(entries)}, peak memory`,
      against: "itself",
      megabytes,
      ratio: { median: 1 },
      bar: { mostMegabytes: 209.7 },
    },
  ];
}

/** @param first id of the first entry of every journal that is made here */
const reads = {
  "journal list": ["journal", "list"],
  "journal show": ["journal", "show", "0y2cw00000"],
  "a Tab behind journal show": ["__complete", "journal", "show", ":"],
};

function removeIndex(path) {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) if (name.includes(".index")) rmSync(join(folder, name));
}

const named = (entries) => `${entries.toLocaleString("en")} entries`;

function reading(workplace, { words, path }) {
  return workplace.integ(words, { env: { INTEG_JOURNAL: path } });
}

/** A journal as a change leaves it: with its index. */
function madeJournal(workplace, entries) {
  const path = join(workplace.folder, `journal-${entries}`, "journal.ndjson");
  makeJournal(path, { entries, unsettled: 2 });
  const run = (words) => {
    const { command, env } = reading(workplace, { words, path });
    const { status, stdout, stderr } = spawnSync(command[0], command.slice(1), { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`integ ${words.join(" ")}: ${stderr}`);
    return stdout;
  };
  const [{ id }] = JSON.parse(run(["journal", "list", "--json"])).data;
  run(["journal", "forget", id, "--yes"]);
  return path;
}

async function memoryLine({ workplace, plan }, { what, command, floor }) {
  const file = join(workplace.folder, "peak");
  const ratios = [];
  let megabytes = 0;
  for (let round = 0; round < plan.memoryRuns; round += 1) {
    const [small, large] = [await peak(floor, file), await peak(command, file)];
    ratios.push(large / small);
    megabytes = Math.max(megabytes, large);
  }
  return {
    what: `${what}, peak memory`,
    against: "the smallest",
    ratio: spread(ratios),
    megabytes,
    bar: { mostMegabytes: 94.4 },
  };
}

const hook = join(import.meta.dirname, "peak-memory.cjs");

function peak({ command: [node, ...words], ...rest }, file) {
  return peakMegabytes({ ...rest, command: [node, "--require", hook, ...words] }, file);
}
