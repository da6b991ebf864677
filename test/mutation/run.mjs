// Changes the sources of changes/, journal/, secrets/ and disk/ in one place at a time and looks whether a unit test fails:
// `npm run test:mutation`, or `npm run test:mutation -- <part of a file's name>`. What survives is listed in
// build/mutation.json; what may, in survivors.json with a reason. INTEG_TEST_MINUTES=<n> ends sooner: mutants are tried in an
// order that follows from INTEG_TEST_SEED, so that any part is a fair sample.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { collectFigures, recordFigure } from "../support/figures.mjs";
import { readPlan } from "./plan.mjs";

const root = resolve(import.meta.dirname, "../..");
const [, , wanted = ""] = process.argv;
const minutes = Number(process.env.INTEG_TEST_MINUTES ?? 30);
const workers = Number(process.env.INTEG_TEST_WORKERS ?? availableParallelism());
let startMs = performance.now();
/** A process that reports nothing for so long is in a loop without an end. */
const silentMs = 60_000;

const { mutants, left } = readPlan();
const folder = mkdtempSync(join(tmpdir(), "integ-mutation-"));

/** The same order for the same seed. */
function shuffled(numbers, seed) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff) / 0x7fffffff;
  return numbers
    .map((number) => ({ number, at: next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ number }) => number);
}

/** Starts a process; `heard` gets each line that it reports. @returns how it ended */
function runProcess(name, work, heard) {
  const path = join(folder, name);
  writeFileSync(`${path}.in`, JSON.stringify(work));
  writeFileSync(`${path}.out`, "");
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const words = [vitest, "run", "--config", join(root, "test/mutation/vitest.config.mts")];
  const env = { ...process.env, INTEG_MUTATION_WORK: path, INTEG_TEST_ANSWERS: "" };
  const child = spawn(process.execPath, words, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk) => (said = (said + chunk).slice(-4000)));
  return new Promise((done) => {
    let read = 0;
    let heardAt = performance.now();
    const look = () => {
      const text = readFileSync(`${path}.out`, "utf8");
      const end = text.lastIndexOf("\n") + 1;
      if (end <= read) return;
      heardAt = performance.now();
      for (const line of text.slice(read, end).trim().split("\n")) heard(JSON.parse(line));
      read = end;
    };
    const kill = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    };
    const timer = setInterval(() => {
      look();
      if (performance.now() - heardAt > (work.learned ? silentMs : 1_800_000) || (work.learned && isOver())) kill();
    }, 200);
    child.on("close", () => {
      clearInterval(timer);
      look();
      kill();
      done(said);
    });
  });
}

function isOver() {
  return performance.now() - startMs > minutes * 60_000;
}

/** What the tests cover is the same as long as sources and tests are. */
function cacheFile() {
  const hash = createHash("sha256");
  for (const room of ["src", "test"])
    for (const name of readdirSync(join(root, room), { recursive: true, encoding: "utf8" }).toSorted())
      if (/\.m?ts$/.test(name) && !name.startsWith("mutation"))
        hash.update(name).update(readFileSync(join(root, room, name)));
  return join(root, "node_modules/.cache", `integ-mutation-${hash.digest("hex").slice(0, 16)}.json`);
}

async function learn() {
  const cache = cacheFile();
  if (existsSync(cache)) return JSON.parse(readFileSync(cache, "utf8"));
  let learned;
  const said = await runProcess("learn", { numbers: [] }, (line) => {
    if (line.state === "learned") learned = line.learned;
    else console.log(JSON.stringify(line));
  });
  if (!learned) throw new Error(`the tests do not run:\n${said}`);
  mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
  writeFileSync(cache, JSON.stringify(learned));
  const seconds = Math.round(learned.reduce((sum, { ms }) => sum + ms, 0) / 1000);
  const covered = new Set(learned.flatMap(({ covers }) => covers)).size;
  console.log(`${learned.length} tests in ${seconds} s cover ${covered} of ${mutants.length} mutants`);
  return learned;
}

const verdicts = new Map();

/** One process after another, until the share of mutants is tried. */
async function tryAll(index, { learned, numbers }) {
  let todo = numbers;
  for (let round = 0; todo.length > 0 && !isOver(); round += 1) {
    let current;
    const said = await runProcess(`${index}-${round}`, { learned, numbers: todo }, ({ number, state, ...rest }) => {
      if (number === undefined) return;
      if (state === "started") {
        current = number;
        return;
      }
      // The first one of a process was spoilt by none but itself.
      const isFirst = number === todo[0];
      if (state !== "spoilt" || isFirst)
        verdicts.set(number, { state: state === "spoilt" ? "killed" : state, ...rest });
      current = state === "spoilt" && !isFirst ? number : undefined;
    });
    const isLoop = current !== undefined && current === todo.find((number) => !verdicts.has(number)) && !isOver();
    const rest = todo.filter((number) => !verdicts.has(number));
    if (rest.length === todo.length && current === undefined && !isOver())
      throw new Error(`no mutant was tried:\n${said}`);
    if (isLoop && (rest.length === todo.length || !said.includes("spoilt"))) markLoop(current, rest);
    todo = rest.filter((number) => !verdicts.has(number));
  }
}

const triedAlone = new Set();

/** A process that ended in a mutant tries it again as its first; one that ends there too is an endless loop. */
function markLoop(number) {
  if (triedAlone.has(number)) verdicts.set(number, { state: "timeout", by: "no end" });
  triedAlone.add(number);
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

const chosen = mutants.filter(({ file }) => file.includes(wanted));
try {
  const learned = await learn();
  startMs = performance.now();
  const covered = new Set(learned.flatMap(({ covers }) => covers));
  for (const { number } of chosen) if (!covered.has(number)) verdicts.set(number, { state: "not covered" });
  const order = shuffled(
    chosen.map(({ number }) => number).filter((number) => covered.has(number)),
    Number(process.env.INTEG_TEST_SEED ?? 1),
  );
  const shares = Array.from({ length: workers }, (_, index) => order.filter((_one, at) => at % workers === index));
  await Promise.all(shares.map((numbers, index) => tryAll(index, { learned, numbers })));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const reasons = existsSync(join(import.meta.dirname, "survivors.json"))
  ? JSON.parse(readFileSync(join(import.meta.dirname, "survivors.json"), "utf8"))
  : [];
const reasonOf = (mutant) =>
  reasons.find(
    ({ file, original, instead }) => file === mutant.file && original === mutant.original && instead === mutant.instead,
  )?.reason;
const alive = chosen
  .filter(({ number }) => verdicts.has(number) && verdicts.get(number).state !== "killed")
  .map((mutant) => ({ ...mutant, ...verdicts.get(mutant.number), reason: reasonOf(mutant) }));
mkdirSync(join(root, "build"), { recursive: true });
writeFileSync(join(root, "build/mutation.json"), `${JSON.stringify(alive, null, 1)}\n`);
const write = wanted === "" ? collectFigures() : () => {};
for (const room of ["changes", "journal", "secrets", "disk"])
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
});
write();
