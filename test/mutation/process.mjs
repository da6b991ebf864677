// A process that learns what tests cover, or tries mutants. It reports by lines in a file.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** What reports nothing while it uses so much of the processor is in a loop without an end. */
const silentProcessorMs = 6000;
/** What reports nothing for so long and does nothing either waits for what never comes. */
const idleMs = 40_000;
const idleProcessorMs = 500;
/** Where the processor's time cannot be read. */
const silentMs = 120_000;

/** Of the process and of those that it waited for. @returns nothing where the system does not say */
function processorMsOf(pid) {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return undefined;
  const words = readFileSync(file, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const ticks = words.slice(11, 15).reduce((sum, word) => sum + Number(word), 0);
  return ticks * 10;
}

/** Starts a process; `heard` gets each line that it reports. @returns how it ended */
export function runProcess(path, { work, isOver }, heard) {
  writeFileSync(`${path}.in`, JSON.stringify(work));
  writeFileSync(`${path}.out`, "");
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const words = [vitest, "run", "--config", join(root, "test/mutation/vitest.config.mts")];
  // A process that is killed leaves the databases of its servers: they are in memory, and would fill it.
  const databases = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "integ-mutation-"));
  chmodSync(databases, 0o711);
  const env = { ...process.env, INTEG_MUTATION_WORK: path, INTEG_TEST_ANSWERS: "", INTEG_TEST_DATABASES: databases };
  const child = spawn(process.execPath, words, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk) => (said = (said + chunk).slice(-4000)));
  return new Promise((done) => {
    let read = 0;
    let worker;
    let isEndless = false;
    let processorMs = 0;
    let since = { processorMs: 0, at: performance.now() };
    let allowedMs = Number.POSITIVE_INFINITY;
    const look = () => {
      if (worker !== undefined) processorMs = processorMsOf(worker) ?? processorMs;
      const text = readFileSync(`${path}.out`, "utf8");
      const end = text.lastIndexOf("\n") + 1;
      if (end <= read) return;
      since = { processorMs, at: performance.now() };
      for (const line of text
        .slice(read, end)
        .trim()
        .split("\n")
        .map((one) => JSON.parse(one))) {
        worker ??= line.pid;
        allowedMs = line.forMs ?? allowedMs;
        heard(line);
      }
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
      const [usedMs, silentForMs] = [processorMs - since.processorMs, performance.now() - since.at];
      isEndless =
        usedMs > Math.max(silentProcessorMs, allowedMs) ||
        silentForMs > Math.max(silentMs, 4 * allowedMs) ||
        (processorMs > 0 && usedMs < idleProcessorMs && silentForMs > Math.max(idleMs, 2 * allowedMs));
      if (isEndless || isOver()) kill();
    }, 200);
    child.on("close", () => {
      clearInterval(timer);
      look();
      kill();
      rmSync(databases, { recursive: true, force: true });
      done({ said, isEndless, processorMs });
    });
  });
}
