// A process killed at each call that makes or reads the journal's index, and each of these calls failing: nothing of the
// journal is lost, and how the command ends is what it would have been without an index.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FileJournal } from "../../src/journal/file/file-journal.ts";
import { isFull } from "../support/sample.ts";
import type { Point } from "../support/strace.ts";
import { idAt, longJournal, writeJournal } from "../support/long-journal.ts";
import { ada, intent } from "../unit/journal/intent.ts";
import { countsOnly } from "./harness.ts";
import type { Task } from "./journal-driver.ts";
import { buildDriver, hasStrace, runTraced, type Traced } from "./journal-processes.ts";
import { recordFigure } from "../support/figures.mjs";

const home = mkdtempSync(join(tmpdir(), "integ-journal-index-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

let driver = "";
let lines: string[] = [];
beforeAll(async () => {
  driver = await buildDriver();
  lines = longJournal(300);
});

let runs = 0;

const open = (path: string) => new FileJournal(path, { now: Date.now, actor: ada });

/** A long journal without an index: the first record makes one. */
async function without(): Promise<Task> {
  runs += 1;
  const path = join(home, `${runs}`, "journal.ndjson");
  writeJournal(path, lines);
  return { work: "admit", path, nativeLocks: true, states: ["unknown", "done"], waitMs: 300 };
}

/** One whose index the command reads, and brings up to what came since. */
async function behind(): Promise<Task> {
  const task = await without();
  const journal = open(task.path);
  for (let times = 0; times < 11; times += 1) {
    const { lease } = await journal.admit(intent({ fingerprint: `more ${times}` }));
    await lease.record({ state: "done", detail: { differs: "x".repeat(60_000) } });
    await lease.release();
  }
  return task;
}

/** One whose index has a wrong page, found out while the command works. */
async function harmed(): Promise<Task> {
  const task = await behind();
  const folder = dirname(task.path);
  for (const name of readdirSync(folder).filter((one) => one.includes(".index-"))) {
    const bytes = readFileSync(join(folder, name));
    for (let page = 0; page < bytes.length; page += 4096) bytes[page + 9]! ^= 1;
    writeFileSync(join(folder, name), bytes);
  }
  return task;
}

const calls = "openat,read,pread64,write,pwrite64,rename,unlink,close,fstat,statx,newfstatat,getdents64";

/** The calls of an undisturbed run that touch the index, from its first look to the end. */
async function points(stage: () => Promise<Task>): Promise<Point[]> {
  const trace = join(home, "trace");
  const run = runTraced(driver, { task: await stage(), strace: ["-y", "-o", trace, "-e", `trace=${calls}`] });
  expect(run.lines.at(-1)?.released).toBeDefined();
  const all = readFileSync(trace, "utf8").split("\n");
  const main = all[0]?.split(" ")[0];
  const counts = new Map<string, number>();
  const found: Point[] = [];
  for (const line of all) {
    const [, pid, call = ""] = /^(\d+) +([a-z0-9_]+)\(/.exec(line) ?? [];
    if (pid !== main) continue;
    const nth = (counts.get(call) ?? 0) + 1;
    counts.set(call, nth);
    if (line.includes("journal.ndjson.index")) found.push({ call, nth, text: line });
  }
  expect(found.length).toBeGreaterThan(5);
  return found;
}

/** What is true of every journal that somebody else finds afterwards, and of the files beside it. */
async function expectSound(task: Task, run: Traced, where: string): Promise<void> {
  const journal = open(task.path);
  const sent = run.lines.find((line) => line.sent !== undefined);
  if (sent) expect(await journal.find(sent.sent ?? ""), where).toMatchObject({ idempotency_key: sent.key });
  expect(await journal.find(idAt(33)), where).toMatchObject({ state: "done" });
  const copy = join(home, "copy", "journal.ndjson");
  writeJournal(copy, [readFileSync(task.path, "utf8")]);
  expect(await journal.entries(), where).toEqual(await open(copy).entries());
  expect(await journal.unsettled(), where).toEqual(await open(copy).unsettled());
  expect(await journal.verify(), where).toEqual([]);
  for (let times = 0; times < 2; times += 1) {
    const { lease } = await journal.admit(intent({ fingerprint: `after ${times}` }));
    await lease.record({ state: "done", detail: { differs: "x".repeat(600_000) } });
    await lease.release();
  }
  const { lease } = await open(task.path).admit(intent({ fingerprint: "the last" }));
  await lease.release();
  // What a killed writer left is gone with the next index.
  const index = readdirSync(dirname(task.path)).filter((name) => name.includes(".index"));
  expect(
    index.filter((name) => name.includes(".new-")),
    where,
  ).toEqual([]);
  expect(index.length, where).toBeLessThan(6);
  rmSync(dirname(task.path), { recursive: true });
}

function sampleOf(points: readonly Point[]): readonly Point[] {
  const step = isFull ? 1 : Math.ceil(points.length / 6);
  return points.filter((_, index) => index % step === 0);
}

const stages = [
  ["made anew", without],
  ["read and extended", behind],
  ...(isFull ? ([["with wrong pages", harmed]] as const) : []),
] as const;

describe.runIf(hasStrace)("calls of the index", () => {
  test.each(stages)(
    "a kill at any of them loses nothing: an index %s",
    async (_, stage) => {
      const all = await points(stage);
      if (countsOnly) console.log(`count: ${expect.getState().currentTestName}: ${all.length}`);
      let killed = 0;
      const chosen = sampleOf(all);
      for (const { call, nth } of chosen) {
        const task = await stage();
        const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
        const run = runTraced(driver, { task, strace: ["-o", "/dev/null", ...inject] });
        killed += run.lines.some((line) => line.released !== undefined) ? 0 : 1;
        await expectSound(task, run, `killed at ${call} ${nth}`);
      }
      recordFigure("journal index kill", { points: all.length, hit: killed, violations: 0 }, _);
      expect(killed).toBeGreaterThanOrEqual(chosen.length - 1); // a wake-up of Node's own may shift a read
    },
    600_000,
  );

  const errnos: Readonly<Record<string, readonly string[]>> = {
    openat: ["EACCES", "EROFS", "EIO", "EMFILE"],
    read: ["EIO"],
    pread64: ["EIO"],
    write: ["ENOSPC", "EIO"],
    pwrite64: ["ENOSPC", "EIO"],
    rename: ["EACCES", "EROFS", "ENOSPC"],
    unlink: ["EACCES", "EROFS"],
    getdents64: ["EIO"],
  };

  /**
   * A run in which that call of the index fails. How many calls come before it differs a little from run to run.
   * @returns nothing if the call was another file's each time
   */
  async function failing(
    stage: () => Promise<Task>,
    { call, nth, errno }: Pick<Point, "call" | "nth"> & { readonly errno: string },
  ): Promise<{ task: Task; run: Traced } | undefined> {
    const trace = join(home, "trace");
    const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:error=${errno}:when=${nth}`];
    for (let round = 0; ; round += 1) {
      const task = await stage();
      const run = runTraced(driver, { task, strace: ["-y", "-o", trace, ...inject] });
      const failed = readFileSync(trace, "utf8")
        .split("\n")
        .filter((line) => line.includes("(INJECTED)"));
      const isOther = failed.some((line) => !line.includes("journal.ndjson.index"));
      if (!isOther) return { task, run };
      rmSync(dirname(task.path), { recursive: true });
      if (round === 5) return undefined;
    }
  }

  test.each(stages)(
    "none that fails changes how the command ends: an index %s",
    async (_, stage) => {
      const all = (await points(stage)).filter(({ call }) => errnos[call] !== undefined);
      let count = 0;
      for (const { call, nth, text } of sampleOf(all))
        for (const errno of isFull ? errnos[call]! : [errnos[call]![nth % errnos[call]!.length]!]) {
          const failed = await failing(stage, { call, nth, errno });
          if (failed === undefined) continue;
          const { task, run } = failed;
          const where = `${errno} at ${call} ${nth}: ${text}`;
          expect(
            run.lines.map((line) => Object.keys(line)[0]),
            `${where}\n${run.stderr}`,
          ).toEqual(["sent", "released"]);
          await expectSound(task, run, where);
          count += 1;
        }
      recordFigure("journal index failing call", { points: count, violations: 0 });
      // Of a sample some calls may have been another file's each time.
      expect(count).toBeGreaterThan(isFull ? 10 : 1);
    },
    600_000,
  );
});
