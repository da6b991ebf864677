import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadKernelLock } from "../../src/disk/kernel-lock.ts";
import { identify } from "../../src/disk/lock-owner.ts";
import { fileJournal } from "../support/file-journal.ts";
import type { Intent } from "../../src/journal/journal.ts";
import type { Task } from "./journal-driver.ts";
import { type Point } from "../support/strace.ts";
import { countsOnly } from "./harness.ts";
import { isFull } from "../support/sample.ts";
import { requestOf } from "./journal-request.ts";
import { buildDriver, hasStrace, journalAt, type Line, runTraced, type Traced } from "./journal-processes.ts";
import { ada } from "../unit/journal/intent.ts";
import { recordFigure } from "../support/figures.mjs";

const marker = "/integ-journal-marker";
const home = mkdtempSync(join(tmpdir(), "integ-journal-faults-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

let driver = "";
beforeAll(async () => {
  driver = await buildDriver();
});

let runs = 0;

function newTask(nativeLocks: boolean, more: Partial<Task> = {}): Task {
  runs += 1;
  const path = join(home, `${runs}`, "journal.ndjson");
  return { work: "admit", path, nativeLocks, marker, states: ["unknown", "done"], waitMs: 300, ...more };
}

interface Calls {
  /** The number of the main thread's calls before the work starts, and until it ends. */
  readonly before: number;
  readonly until: number;
}

function countCalls(task: Task, names: readonly string[], last = '"{\\"released\\"'): Map<string, Calls> {
  const trace = join(home, "trace");
  const { lines } = runTraced(driver, { task, strace: ["-o", trace, "-e", `trace=${["access", ...names].join(",")}`] });
  expect(lines.at(-1)?.released ?? lines.at(-1)?.removed).toBeDefined();
  const all = readFileSync(trace, "utf8").split("\n");
  const main = all[0]?.split(" ")[0];
  const counts = new Map<string, Calls>();
  let isWork = false;
  for (const line of all) {
    const [, pid, name = ""] = /^(\d+) +([a-z0-9]+)\(/.exec(line) ?? [];
    if (pid !== main) continue;
    isWork ||= line.includes(marker);
    const now = counts.get(name) ?? { before: 0, until: 0 };
    counts.set(name, { before: now.before + (isWork ? 0 : 1), until: now.until + 1 });
    if (line.includes(last)) break;
  }
  counts.delete("access");
  return counts;
}

function pointsOf(counts: Map<string, Calls>, step: number): Point[] {
  const all = [...counts].flatMap(([call, { before, until }]) =>
    Array.from({ length: until - before }, (_, index) => ({ call, nth: before + index + 1, text: "" })),
  );
  expect(all.length).toBeGreaterThan(0);
  if (countsOnly) console.log(`count: ${expect.getState().currentTestName}: ${all.length}`);
  return all.filter((_, index) => index % step === 0);
}

function sentLine(run: Traced): Line | undefined {
  return run.lines.find((line) => line.sent !== undefined);
}

/** Differs from the driver's request text, because a resumed entry must send the driver's text. */
const intentOf = (fingerprint: string): Intent => requestOf(fingerprint, "other bytes");

async function expectSound(task: Task, run: Traced, where: string): Promise<void> {
  const means = { self: identify(process.pid), kernel: task.nativeLocks ? loadKernelLock() : undefined };
  const journal = fileJournal(task.path, { now: Date.now, actor: ada, locks: { means: () => means, waitMs: 300 } });
  const sent = sentLine(run);
  const before = await journal.entries();
  if (sent) {
    const entry = await journal.find(sent.sent ?? "");
    expect(entry, where).toMatchObject({ idempotency_key: sent.key, request_text: sent.body });
  }
  const isDone = before.some((entry) => entry.state === "done");
  const { kind, lease } = await journal.admit(intentOf("the same"));
  if (sent && !isDone) expect([kind, lease.entry.idempotency_key], where).toEqual(["resumed", sent.key]);
  expect((await journal.entries()).length, where).toBeLessThanOrEqual(isDone ? 2 : 1);
  await lease.record({ state: "done" });
  await lease.release();
  expect(
    (await journal.verify()).filter((finding) => finding.severity === "problem"),
    where,
  ).toEqual([]);
  const beside = readdirSync(dirname(task.path)).filter((name) => !/^journal\.ndjson(\.torn-.*)?$/.test(name));
  expect(beside, where).toEqual([]);
}

/**
 * Kills a process right before a call, then checks the journal. Repeats a miss, because wake-up calls may shift the count.
 * @returns 1 if the process was killed, otherwise 0
 */
async function killAt({ call, nth }: Point, newRun: () => Task): Promise<number> {
  for (let tries = 0; tries < 4; tries += 1) {
    const task = newRun();
    const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
    const run = runTraced(driver, { task, strace: ["-o", "/dev/null", ...inject] });
    await expectSound(task, run, `killed at ${call} ${nth}`);
    if (!run.lines.some((line) => line.released !== undefined)) return 1;
  }
  return 0;
}

const kinds = [
  ["kernel locks", true],
  ["owner files", false],
] as const;

describe.runIf(hasStrace)("file calls of the journal", () => {
  test.each(kinds)(
    "a kill at any call loses no sent request, %s",
    async (kind, native) => {
      const names = "mkdir,openat,read,pread64,write,pwrite64,fsync,ftruncate,link,unlink,rename,close,statx,fcntl";
      const points = pointsOf(countCalls(newTask(native), names.split(",")), isFull ? 1 : 29);
      let killed = 0;
      for (const point of points) killed += await killAt(point, () => newTask(native));
      recordFigure("journal kill", { points: points.length, hit: killed, violations: 0 }, kind);
      expect(killed).toBe(points.length);
    },
    600_000,
  );

  test.each(kinds)(
    "a kill at any step of a takeover loses no sent request, %s",
    async (kind, native) => {
      const left = (): Task => {
        const task = newTask(native);
        const inject = ["-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=3"]; // The journal and the entry are locked.
        const run = runTraced(driver, { task, strace: ["-o", "/dev/null", ...inject] });
        expect(run.lines).toEqual([]);
        expect(existsSync(`${task.path}.lock`)).toBe(true);
        return task;
      };
      const names = "openat,read,write,pwrite64,fsync,ftruncate,link,unlink,rename,close,statx".split(",");
      const points = pointsOf(countCalls(left(), names), isFull ? 1 : 37);
      let killed = 0;
      for (const point of points) killed += await killAt(point, left);
      recordFigure("journal kill", { points: points.length, hit: killed, violations: 0 }, `second kill, ${kind}`);
      expect(killed).toBe(points.length);
    },
    600_000,
  );

  test("a prune killed at any call leaves the complete old or new journal", async () => {
    const keeps = async (): Promise<Task> => {
      const task = newTask(true, { work: "prune" });
      const journal = fileJournal(task.path, { now: () => Date.now() - 1000, actor: ada });
      for (const state of ["refused", "open", "refused"] as const) {
        const { lease } = await journal.admit(intentOf("the same"), { fresh: true });
        await lease.record({ state });
        await lease.release();
      }
      return task;
    };
    const names = "openat,read,pread64,write,pwrite64,fsync,link,unlink,rename,close,statx".split(",");
    const points = pointsOf(countCalls(await keeps(), names, '"{\\"removed\\"'), isFull ? 1 : 17);
    let killed = 0;
    for (const { call, nth } of points) {
      const where = `killed at ${call} ${nth}`;
      const task = await keeps();
      const before = await journalAt(task.path).entries();
      const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
      const run = runTraced(driver, { task, strace: ["-o", "/dev/null", ...inject] });
      killed += run.lines.length === 0 ? 1 : 0;
      const journal = journalAt(task.path);
      const open = before.filter((entry) => entry.state === "open");
      expect([before, open], where).toContainEqual(await journal.entries());
      expect(await journal.verify(), where).toEqual([]);
      await journal.prune(0);
      expect(await journal.entries(), where).toEqual(open);
      const { lease } = await journal.admit(intentOf("another"));
      await lease.record({ state: "refused" });
      await lease.release();
      await journal.prune(0);
      expect(readdirSync(dirname(task.path)), where).toEqual(["journal.ndjson"]);
    }
    recordFigure("journal kill", { points: points.length, hit: killed, violations: 0 }, "prune");
    expect(killed).toBeGreaterThanOrEqual(points.length - 1); // A wake-up of Node's own may shift a read.
  }, 600_000);

  function traceOf(
    task: Task,
    inject: readonly string[] = [],
  ): { readonly calls: string[]; readonly lines: readonly Line[] } {
    const trace = `${dirname(task.path)}.trace`;
    const only = ["-e", "trace=access,write,fsync,ftruncate"];
    const { lines } = runTraced(driver, { task, strace: ["-y", "-o", trace, ...only, ...inject] });
    const all = readFileSync(trace, "utf8").split("\n");
    const main = `${all[0]?.split(" ")[0]} `;
    const work = all.slice(all.findIndex((line) => line.includes(marker))).filter((line) => line.startsWith(main));
    const folder = dirname(task.path);
    const calls = work.flatMap((line) => {
      const [, call, path = ""] = /^\d+ +(write|fsync|ftruncate)\(\d+<([^>]*)>/.exec(line) ?? [];
      const what = new Map([
        [task.path, "journal"],
        [folder, "folder"],
        [dirname(folder), "above"],
      ]).get(path);
      if (call && what) return [`${call} ${what}${line.includes("INJECTED") ? " fails" : ""}`];
      return line.includes('"{\\"sent\\"') ? ["sent"] : [];
    });
    return { calls, lines };
  }

  test("record, file and folder are synced before any request, and each step when it is recorded", () => {
    const step = ["write journal", "fsync journal"];
    const first = ["fsync above", ...step, "fsync folder", "fsync above", "sent"];
    expect(traceOf(newTask(true)).calls).toEqual([...first, ...step, ...step]);
  });
});
