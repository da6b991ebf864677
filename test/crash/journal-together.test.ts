// Requests that one process makes at the same time: their records share the lock and the sync of the journal's file. What was
// sent was durable all the same, a write or a sync that fails is that of the records it was for, and a kill loses nothing.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { isFull } from "../support/sample.ts";
import { requestOf } from "./journal-request.ts";
import { buildDriver, hasStrace, journalAt, runTraced, type Traced } from "./journal-processes.ts";
import type { Task } from "./journal-driver.ts";

const requests = 5;
const home = mkdtempSync(join(tmpdir(), "integ-journal-together-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

let driver = "";
beforeAll(async () => {
  driver = await buildDriver();
});

let runs = 0;

async function newTask(): Promise<Task> {
  runs += 1;
  const path = join(home, `${runs}`, "journal.ndjson");
  // The journal is there, with an entry that is over.
  const { lease } = await journalAt(path).admit(requestOf("before", "before"));
  await lease.record({ state: "refused" });
  await lease.release();
  return { work: "together", path, nativeLocks: true, times: requests, states: ["unknown", "done"], waitMs: 300 };
}

interface TracedCall {
  readonly call: string;
  /** Of the journal's file, or a line that was printed. */
  readonly what: "journal" | "folder" | "sent" | undefined;
  readonly fails: boolean;
}

function run(task: Task, inject: readonly string[] = []): { readonly said: Traced; readonly calls: TracedCall[] } {
  const trace = `${dirname(task.path)}.trace`;
  const said = runTraced(driver, { task, strace: ["-y", "-o", trace, "-e", `trace=${traced}`, ...inject] });
  const all = readFileSync(trace, "utf8").split("\n");
  const main = `${all[0]?.split(" ")[0]} `;
  const calls = all
    .filter((line) => line.startsWith(main))
    .map((line): TracedCall => {
      const [, call = "", path = ""] = /^\d+ +(\w+)\((?:\d+<([^>]*)>)?/.exec(line) ?? [];
      const file = path === task.path ? "journal" : path === dirname(task.path) ? "folder" : undefined;
      return { call, what: line.includes('"{\\"sent\\"') ? "sent" : file, fails: line.includes("INJECTED") };
    });
  return { said, calls };
}

const traced = "openat,write,pwrite64,fsync,ftruncate,link,unlink,close";

/** What was sent is in the journal as it was sent; the journal is sound, and the next process works on. */
async function expectSound(task: Task, { lines }: Traced, where: string): Promise<void> {
  const journal = journalAt(task.path);
  const entries = await journal.entries();
  for (const { sent, key, body } of lines.filter((line) => line.sent !== undefined)) {
    const entry = entries.find(({ id }) => id === sent);
    expect(entry, where).toMatchObject({ idempotency_key: key, request_text: body });
  }
  const keys = entries.map(({ idempotency_key }) => idempotency_key);
  expect(new Set(keys).size, where).toBe(keys.length);
  for (const { id, state } of entries) {
    if (state === "done" || state === "refused") continue;
    const lease = await journal.lease(id);
    await lease.record({ state: "done" });
    await lease.release();
  }
  const problems = (await journal.verify()).filter(({ severity }) => severity === "problem");
  expect(problems, where).toEqual([]);
}

describe.runIf(hasStrace)("requests at the same time", () => {
  test("share a sync for each step, and none is sent before its own", async () => {
    const { said, calls } = run(await newTask());
    expect(said.lines.filter(({ sent }) => sent !== undefined)).toHaveLength(requests);
    const mine = calls.filter(
      ({ call, what }) => what === "sent" || (what === "journal" && /^(write|fsync)$/.test(call)),
    );
    const steps = mine.map(({ call, what }) => (what === "sent" ? "sent" : call));
    const step = [...Array.from({ length: requests }, () => "write"), "fsync"];
    expect(steps).toEqual([...step, ...Array.from({ length: requests }, () => "sent"), ...step, ...step]);
  });

  test("killed at any call: what was sent is there, under keys of their own", async () => {
    const counts = new Map<string, number>();
    for (const { call } of run(await newTask()).calls) counts.set(call, (counts.get(call) ?? 0) + 1);
    const points = [...counts].flatMap(([call, count]) =>
      Array.from({ length: count }, (_, index) => ({ call, nth: index + 1 })),
    );
    const chosen = points.filter((_, index) => isFull || index % 41 === 7);
    let hit = 0;
    for (const { call, nth } of chosen) {
      const task = await newTask();
      const { said } = run(task, ["-e", `inject=${call}:signal=KILL:when=${nth}`]);
      if (!said.lines.some(({ released }) => released === "all")) hit += 1;
      await expectSound(task, said, `killed at ${call} ${nth}`);
    }
    recordFigure("journal kill", { points: chosen.length, hit, violations: 0 }, "five requests at the same time");
    expect(hit).toBe(chosen.length);
  }, 600_000);

  test.each([
    ["fsync", "EIO", "once", ""],
    ["fsync", "EIO", "from then on", "+"],
    ["write", "ENOSPC", "once", ""],
  ])(
    "%s that fails with %s %s fails the records it was for, and no other",
    async (call, error, _, more) => {
      const all = run(await newTask()).calls.filter((one) => one.call === call);
      const places = all.flatMap(({ what }, index) => (what === "journal" ? [index + 1] : []));
      let hit = 0;
      for (const nth of places.filter((_place, index) => isFull || index % 4 === 1)) {
        const where = `${call} ${nth} fails`;
        const task = await newTask();
        const { said, calls } = run(task, ["-e", `inject=${call}:error=${error}:when=${nth}${more}`]);
        const broken = calls.findIndex(({ fails }) => fails);
        // Which file the nth call is for may differ: the requests run at the same time.
        if (calls[broken]?.what !== "journal") continue;
        hit += 1;
        const later = calls.slice(broken + 1);
        const failures = said.lines.filter(({ failed }) => failed !== undefined);
        if (call === "write") expect(failures, where).toHaveLength(1);
        else {
          expect(failures, where).toHaveLength(requests);
          expect(
            later.filter((one) => one.what === "journal" && one.call === "write"),
            where,
          ).toEqual([]);
          expect(
            later.filter(({ what }) => what === "sent"),
            where,
          ).toEqual([]);
        }
        await expectSound(task, said, where);
        expect(readdirSync(dirname(task.path)), where).toEqual(["journal.ndjson"]);
      }
      expect(hit).toBeGreaterThan(0);
    },
    600_000,
  );
});
