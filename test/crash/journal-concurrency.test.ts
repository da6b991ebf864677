import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { identify, newOwner } from "../../src/disk/lock-owner.ts";
import type { Task } from "./journal-driver.ts";
import { temporaryFolder as folder } from "../support/bundle-driver.ts";
import { isFull } from "../support/sample.ts";
import { buildDriver, journalAt, type Line, runToEnd, start } from "./journal-processes.ts";
import { recordFigure } from "../support/figures.mjs";

let driver = "";
beforeAll(async () => {
  driver = await buildDriver();
});

const modes = [
  ["kernel locks", true],
  ["owner files", false],
] as const;

function task(path: string, nativeLocks: boolean, more: Partial<Task> = {}): Task {
  return { work: "admit", path, nativeLocks, waitMs: 60_000, ...more };
}

const many = isFull ? 16 : 8;

function leftBeside(path: string): string[] {
  return readdirSync(dirname(path)).filter((name) => name !== "journal.ndjson");
}

test.each(modes)(`${many} processes, different intents, %s: every entry exists with its key`, async (_, native) => {
  const path = join(folder(), "journal.ndjson");
  const times = isFull ? 20 : 3;
  const all = await Promise.all(
    Array.from({ length: many }, (_, number) =>
      runToEnd(driver, task(path, native, { fingerprint: `sa_${number}`, times, states: ["unknown", "done"] })),
    ),
  );
  const sent = all.flat().filter((line) => line.sent !== undefined);
  const entries = await journalAt(path).entries();
  const done = entries.filter((entry) => entry.state === "done" && entry.attempts === 2);
  const lost = sent.filter(
    (line) => !done.some((entry) => entry.id === line.sent && entry.idempotency_key === line.key),
  );
  recordFigure("journal concurrency", { processes: many, admissions: sent.length, "lost entries": lost.length }, _);
  expect(sent).toHaveLength(many * times);
  expect(new Set(sent.map((line) => line.key)).size).toBe(many * times);
  expect(lost).toEqual([]);
  expect(entries).toHaveLength(many * times);
  expect(await journalAt(path).verify()).toEqual([]);
  expect(leftBeside(path)).toEqual([]);
});

test.each(modes)(
  `${many} processes, the same intent and key, %s: one entry with one holder at a time`,
  async (_, native) => {
    const path = join(folder(), "journal.ndjson");
    const all = await Promise.all(
      Array.from({ length: many }, () => runToEnd(driver, task(path, native, { key: "by-hand", states: ["unknown"] }))),
    );
    const sent = all.flat().filter((line) => line.sent !== undefined);
    const entries = await journalAt(path).entries();
    expect(sent).toHaveLength(many);
    expect(entries).toHaveLength(1);
    // Each process added one attempt to the recorded number. Two simultaneous holders would have lost an attempt.
    expect(entries[0]).toMatchObject({ idempotency_key: "by-hand", attempts: many });
    expect(sent.filter((line) => line.kind === "new")).toHaveLength(1);
    expect(leftBeside(path)).toEqual([]);
  },
);

test.each(modes)("a killed holder blocks no one, %s: its intent is resumed with its key", async (_, native) => {
  const path = join(folder(), "journal.ndjson");
  const killed = start(driver, task(path, native, { work: "hold" }));
  const sent = await killed.next();
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect(leftBeside(path)).toHaveLength(1);
  const [again] = await runToEnd(driver, task(path, native, { waitMs: 200 }));
  expect(again).toMatchObject({ kind: "resumed", sent: sent?.sent, key: sent?.key, body: sent?.body });
  expect(leftBeside(path)).toEqual([]);
});

test.each(modes)("processes killed at random lose no key and keep no lock, %s", async (_, native) => {
  const path = join(folder(), "journal.ndjson");
  const sent: Line[] = [];
  const rounds = isFull ? 40 : 3;
  for (let round = 0; round < rounds; round += 1) {
    const some = Array.from({ length: 4 }, () =>
      start(driver, task(path, native, { times: 1000, fresh: true, states: ["done"] })),
    );
    await Promise.all(
      some.map(async (one) => {
        const wanted = 1 + Math.floor(Math.random() * 6);
        while (one.lines.length < wanted && (await one.next()) !== undefined);
        one.child.kill("SIGKILL");
        while ((await one.next()) !== undefined);
        await one.ended;
        sent.push(...one.lines.filter((line) => line.sent !== undefined));
      }),
    );
  }
  const entries = new Map((await journalAt(path).entries()).map((entry) => [entry.id, entry]));
  const lost = sent.filter((line) => entries.get(line.sent ?? "")?.idempotency_key !== line.key);
  recordFigure(
    "journal concurrency",
    { killed: rounds * 4, sent: sent.length, "lost keys": lost.length },
    `killed, ${_}`,
  );
  expect(lost).toEqual([]);
  expect(new Set(sent.map((line) => line.key)).size).toBe(sent.length);
  await runToEnd(driver, task(path, native, { fresh: true, states: ["done"] }));
  expect(leftBeside(path).filter((name) => !name.includes(".torn-"))).toEqual([]);
  const problems = (await journalAt(path).verify()).filter((finding) => finding.severity === "problem");
  expect(problems).toEqual([]);
});

test("simultaneous prunes and admissions lose nothing", async () => {
  const path = join(folder(), "journal.ndjson");
  const admissions = Array.from({ length: 4 }, (_, number) =>
    runToEnd(
      driver,
      task(path, number % 2 === 0, { times: 12, fresh: true, ...(number < 2 ? { states: ["refused"] } : {}) }),
    ),
  );
  const prunes = Array.from({ length: 6 }, (_, number) =>
    runToEnd(driver, task(path, number % 2 === 0, { work: "prune" })),
  );
  const sent = (await Promise.all(admissions))
    .slice(2)
    .flat()
    .filter((line) => line.sent !== undefined);
  await Promise.all(prunes);
  const entries = new Map((await journalAt(path).entries()).map((entry) => [entry.id, entry]));
  expect(sent).toHaveLength(24);
  for (const line of sent) expect(entries.get(line.sent ?? "")?.idempotency_key).toBe(line.key);
  expect(await journalAt(path).verify()).toEqual([]);
});

test.each([
  ["owner files", [false, false, false, false], false],
  ["kernel locks", [true, true, true, true], true],
  ["both kinds", [true, false, true, false], false],
] as const)(
  "a contended takeover of an ended owner's lock, %s: never two holders",
  async (kind, natives, plantedNative) => {
    const home = folder();
    const rounds = isFull ? 500 : kind === "owner files" ? 80 : 30;
    const contenders = natives.map((native) => start(driver, task(home, native, { work: "contend" })));
    const dead = identify(spawnSync("true").pid);
    const self = identify(process.pid);
    let doubles = 0;
    let looks = 0;
    for (let round = 0; round < rounds; round += 1) {
      const path = join(home, `${round}.lock`);
      const owner = { ...newOwner({ ...self, pid: dead.pid, start: "1" }, plantedNative), random: `planted${round}` };
      writeFileSync(path, JSON.stringify(owner));
      for (const one of contenders) one.child.stdin?.write(`${path}\n`);
      for (const line of await Promise.all(contenders.map((one) => one.next()))) {
        doubles += line?.doubles ?? 1;
        looks += line?.looks ?? 0;
      }
    }
    for (const one of contenders) one.child.stdin?.end();
    recordFigure("journal locks", { takeovers: rounds, contenders: natives.length, "double holders": doubles }, kind);
    expect(doubles).toBe(0);
    expect(looks).toBeGreaterThan(rounds * natives.length); // The processes competed.
    expect(readdirSync(home)).toEqual([]);
  },
);
