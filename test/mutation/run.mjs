// Changes the sources of changes/, journal/, secrets/ and disk/ in one place at a time and looks whether a unit test fails:
// `npm run test:mutation`, or `npm run test:mutation -- <part of a file's name>`. What survives is listed in
// build/mutation.json; what may, in survivors.json with a reason. INTEG_TEST_MINUTES=<n> ends sooner: mutants are tried in an
// order that follows from INTEG_TEST_SEED, so that any part is a fair sample. INTEG_TEST_RESULTS=<file> keeps a line for each
// mutant, and a run that was ended continues.
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { collectFigures, recordFigure } from "../support/figures.mjs";
import { Learning } from "./learning.mjs";
import { readPlan, rooms } from "./plan.mjs";
import { runProcess } from "./process.mjs";

const root = resolve(import.meta.dirname, "../..");
const [, , wanted = ""] = process.argv;
const { INTEG_TEST_RESULTS: results, INTEG_TEST_SEED: seed = "1", INTEG_TEST_MINUTES: minutes = "30" } = process.env;
const workers = Number(process.env.INTEG_TEST_WORKERS ?? availableParallelism());

const { files, mutants, left } = readPlan();
const chosen = mutants.filter(({ file }) => file.includes(wanted));
const verdicts = new Map();
const startMs = performance.now();
let learnedMs = startMs;
let processorMs = 0;

/** The same order for the same seed. */
function shuffled(numbers) {
  let state = Number(seed);
  const next = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff) / 0x7fffffff;
  return numbers
    .map((number) => ({ number, at: next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ number }) => number);
}

function isOver() {
  return performance.now() - learnedMs > Number(minutes) * 60_000;
}

/** A verdict stands as long as its file does, and what killed; what nothing killed may be killed by another test. */
function note(number, verdict, learning) {
  verdicts.set(number, verdict);
  if (!results) return;
  const file = files.findLast(({ first }) => first <= number);
  const tests = learning.testsOf(verdict);
  const line = { file: file.path, at: number - file.first, hash: file.hash, ...verdict, tests };
  appendFileSync(results, `${JSON.stringify(line)}\n`);
}

function readResults(learning) {
  if (!results || !existsSync(results)) return;
  for (const line of readFileSync(results, "utf8").trim().split("\n")) {
    const { file: path, at, hash, tests, ...verdict } = JSON.parse(line);
    const file = files.find((one) => one.path === path);
    if (file?.hash === hash && tests === learning.testsOf(verdict)) verdicts.set(file.first + at, verdict);
  }
}

/** One process after another, until the share of mutants is tried. */
async function tryAll(folder, { index, learning, numbers }) {
  const endedIn = new Set();
  let todo = numbers;
  for (let round = 0; todo.length > 0 && !isOver(); round += 1) {
    const [first] = todo;
    let current;
    const work = { learned: learning.covering(todo), numbers: todo, files };
    const end = await runProcess(join(folder, `${index}-${round}`), { work, isOver }, (line) => {
      const { number, state, forMs: _, ...rest } = line;
      if (state === "started") current = number;
      if (number === undefined || state === "started") return;
      current = undefined;
      // The first one of a process was spoilt by none but itself.
      if (state !== "spoilt") note(number, { state, ...rest }, learning);
      else if (number === first) note(number, { state: "killed", ...rest }, learning);
    });
    processorMs += end.processorMs;
    if (current !== undefined && !isOver()) {
      // One whose process ends twice by itself, or that never answers, has no end.
      if (end.isEndless || endedIn.has(current)) note(current, { state: "timeout", by: "no end" }, learning);
      endedIn.add(current);
    }
    const rest = todo.filter((number) => !verdicts.has(number));
    if (rest.length === todo.length && current === undefined && !isOver())
      throw new Error(`no mutant was tried:\n${end.said}`);
    todo = rest;
  }
}

function scoreOf(some) {
  const tried = some.filter(({ number }) => verdicts.has(number));
  const killed = tried.filter(({ number }) => verdicts.get(number).state === "killed").length;
  return {
    tried: tried.length,
    killed,
    percent: tried.length === 0 ? 0 : Math.round((1000 * killed) / tried.length) / 10,
  };
}

const folder = mkdtempSync(join(tmpdir(), "integ-mutation-"));
try {
  const learning = new Learning(root, mutants.length);
  processorMs += await learning.learn(folder);
  learnedMs = performance.now();
  readResults(learning);
  console.log(`${verdicts.size} verdicts of earlier runs stand`);
  for (const { number } of chosen) if (!learning.covered.has(number)) verdicts.set(number, { state: "not covered" });
  const order = shuffled(chosen.map(({ number }) => number)).filter((number) => !verdicts.has(number));
  const shares = Array.from({ length: workers }, (_, index) => order.filter((_one, at) => at % workers === index));
  await Promise.all(shares.map((numbers, index) => tryAll(folder, { index, learning, numbers })));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The first that fits: each names what it is about, down to one mutant or up to all of a state. */
const reasons = JSON.parse(readFileSync(join(import.meta.dirname, "survivors.json"), "utf8"));
const lines = new Map();
function lineOf({ file, line }) {
  if (!lines.has(file)) lines.set(file, readFileSync(join(root, file), "utf8").split("\n"));
  return lines.get(file)[line - 1];
}
function reasonOf(mutant) {
  const fits = ({ line, ...named }) =>
    ["file", "state", "original", "instead"].every(
      (name) => named[name] === undefined || named[name] === mutant[name],
    ) &&
    (line === undefined || lineOf(mutant).includes(line));
  return reasons.find(fits)?.reason;
}
const alive = chosen
  .filter(({ number }) => verdicts.has(number) && verdicts.get(number).state !== "killed")
  .map((mutant) => ({ ...mutant, ...verdicts.get(mutant.number) }))
  .map((mutant) => ({ ...mutant, reason: reasonOf(mutant) }));
mkdirSync(join(root, "build"), { recursive: true });
writeFileSync(join(root, "build/mutation.json"), `${JSON.stringify(alive, null, 1)}\n`);
const isWhole = wanted === "" && verdicts.size === mutants.length;
const write = isWhole ? collectFigures() : () => {};
for (const room of rooms)
  recordFigure("mutation", scoreOf(chosen.filter(({ file }) => file.startsWith(`src/${room}/`))), room);
const countOf = (wantedState) => alive.filter(({ state }) => state === wantedState).length;
recordFigure("mutation", {
  mutants: chosen.length,
  "left out": left,
  ...scoreOf(chosen),
  survived: countOf("survived"),
  "not covered": countOf("not covered"),
  timeouts: countOf("timeout"),
  "cut short": countOf("cut short"),
  "without a reason": alive.filter(({ reason }) => reason === undefined).length,
  seconds: Math.round((performance.now() - startMs) / 1000),
  "processor seconds": Math.round(processorMs / 1000),
});
write();
