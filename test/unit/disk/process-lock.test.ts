import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { loadKernelLock } from "../../../src/disk/kernel-lock.ts";
import { type LockMeans, sweepLocks, tryLock, waitForLock } from "../../../src/disk/process-lock.ts";
import { identify, hasCertainlyEnded, type LockOwner, newOwner } from "../../../src/disk/lock-owner.ts";
import { temporaryFolder as folder } from "../../support/bundle-driver.ts";

const self = identify(process.pid);
const fallback: LockMeans = { self, kernel: undefined };
const native: LockMeans = { self, kernel: loadKernelLock() };
const kinds = [
  ["owner file", fallback],
  ["kernel lock", native],
] as const;

function lockPath(): string {
  return join(folder(), "journal.ndjson.lock");
}

function deadPid(): number {
  return spawnSync("true").pid;
}

function ownerAt(path: string): Partial<LockOwner> {
  const owner: Partial<LockOwner> = JSON.parse(readFileSync(path, "utf8"));
  return owner;
}

function plant(path: string, owner: Partial<LockOwner>): void {
  writeFileSync(path, JSON.stringify({ ...newOwner(self, false), ...owner }));
}

test("the kernel's lock is available where these tests run on glibc", () => {
  expect(native.kernel === undefined).toBe(existsSync("/etc/alpine-release"));
});

test.each(kinds)("%s: one holder, named to the others, and no file after its release", (_, means) => {
  const path = lockPath();
  const first = tryLock(path, means);
  expect(ownerAt(path)).toMatchObject({ pid: process.pid, kernel: means.kernel !== undefined });
  expect(tryLock(path, means)).toMatchObject({ held: undefined, owner: { pid: process.pid } });
  first.held?.release();
  first.held?.release();
  expect(readdirSync(dirname(path))).toEqual([]);
  expect(tryLock(path, means).held).toBeDefined();
});

test.each(kinds)("%s: a release ignores a folder that was removed or replaced by a file", (_, means) => {
  for (const spoil of [
    (path: string) => renameSync(dirname(path), `${dirname(path)}.gone`),
    (path: string) => {
      renameSync(dirname(path), `${dirname(path)}.gone`);
      writeFileSync(dirname(path), "");
    },
  ]) {
    const path = join(folder(), "sub", "x.lock");
    mkdirSync(dirname(path));
    const { held } = tryLock(path, means);
    spoil(path);
    expect(() => held?.release()).not.toThrow();
  }
});

test("kernel locks and name locks exclude each other", () => {
  for (const [one, other] of [
    [fallback, native],
    [native, fallback],
  ] as const) {
    const path = lockPath();
    const first = tryLock(path, one);
    expect(first.held).toBeDefined();
    expect(tryLock(path, other).held).toBeUndefined();
    first.held?.release();
    const second = tryLock(path, other);
    expect(second.held).toBeDefined();
    second.held?.release();
    expect(readdirSync(dirname(path))).toEqual([]);
  }
});

const dead: readonly (readonly [string, () => Partial<LockOwner>])[] = [
  ["whose number is unused", () => ({ pid: deadPid() })],
  ["whose number was reused", () => ({ pid: process.pid, start: "1" })],
  ["of an earlier boot", () => ({ boot: "before" })],
  ["that could not read its boot, with an unused number", () => ({ boot: null, pid: deadPid() })],
];

test.each(dead)("the lock of a process %s is taken over, and its file is removed", (_, owner) => {
  for (const [, means] of kinds) {
    const path = lockPath();
    plant(path, owner());
    const taken = tryLock(path, means);
    expect(taken.held).toBeDefined();
    expect(ownerAt(path).pid).toBe(process.pid);
    expect(tryLock(path, means).held).toBeUndefined();
    taken.held?.release();
    expect(readdirSync(dirname(path))).toEqual([]);
  }
});

test("a process that has ended and was not reaped counts as ended", async () => {
  const path = lockPath();
  // The shell's child ends after the shell became `sleep`, which never reaps it.
  const script = `sh -c 'sleep 0.2 & echo $!; exec sleep 9 >/dev/null 2>&1' & sleep 0.1`;
  const pid = Number(spawnSync("sh", ["-c", script], { encoding: "utf8" }).stdout.split("\n")[0]);
  const stat = (): string => readFileSync(`/proc/${pid}/stat`, "latin1");
  for (let tries = 0; !stat().includes(") Z ") && tries < 100; tries++)
    await new Promise((done) => setTimeout(done, 30));
  expect(stat()).toContain(") Z ");
  plant(path, { pid, start: identify(pid).start });
  expect(tryLock(path, fallback).held).toBeDefined();
});

test("an owner that cannot be checked keeps the lock: another container, another machine, a shared file system", () => {
  const gone = { pid: deadPid() };
  const path = lockPath();
  const doubtful: Partial<LockOwner>[] = [
    { ...gone, space: "pid:[1] time:[1]" },
    { ...gone, boot: null, space: "pid:[1] time:[1]" },
    { ...gone, boot: null, space: null },
    { ...gone, boot: null, host: "elsewhere" },
    { ...gone, boot: null, space: null, start: null, host: "elsewhere" },
  ];
  for (const owner of doubtful) {
    plant(path, owner);
    expect(tryLock(path, fallback)).toMatchObject({ held: undefined, owner: gone });
  }
  const earlier = { ...newOwner(self, false), boot: "before" };
  expect(hasCertainlyEnded(earlier, self, path)).toBe(true);
  expect(hasCertainlyEnded(earlier, self, "/proc/self/status")).toBe(false);
  expect(hasCertainlyEnded(newOwner(self, false), self, path)).toBe(false);
  const without = { ...newOwner(self, false), boot: null, ...gone };
  expect(hasCertainlyEnded(without, self, "/proc/self/status")).toBe(false);
  expect(hasCertainlyEnded({ ...without, pid: process.pid }, self, path)).toBe(false);
  expect(hasCertainlyEnded(without, { ...self, boot: null, host: "elsewhere" }, path)).toBe(false);
  expect(hasCertainlyEnded(earlier, { ...self, boot: null }, path)).toBe(false);
});

test("a file that the kernel no longer locks is free, whatever its owner's number", () => {
  const path = lockPath();
  plant(path, { kernel: true });
  expect(tryLock(path, fallback).held).toBeUndefined(); // Without the kernel's answer, the owner may still run.
  const taken = tryLock(path, native);
  expect(taken.held).toBeDefined();
  expect(ownerAt(path).kernel).toBe(true);
});

test("a file without an owner: the kernel decides, else it is in use", () => {
  for (const text of ["", '{"pid":12']) {
    const path = lockPath();
    writeFileSync(path, text);
    expect(tryLock(path, fallback)).toEqual({ held: undefined, owner: undefined });
    const taken = tryLock(path, native);
    expect(taken.held).toBeDefined();
    expect(tryLock(path, fallback)).toMatchObject({ held: undefined, owner: { pid: process.pid } });
    taken.held?.release();
    expect(readdirSync(dirname(path))).toEqual([]);
  }
});

test.each(kinds)("%s: a release removes no other process's file", (_, means) => {
  const path = lockPath();
  const first = tryLock(path, means);
  renameSync(path, `${path}.moved`);
  plant(path, {});
  first.held?.release();
  expect(existsSync(path)).toBe(true);
});

test("a takeover interrupted at any step is finished by the next", () => {
  for (const [, means] of kinds) {
    const path = lockPath();
    plant(path, { pid: deadPid(), random: "first" });
    plant(`${path}.take-first`, { pid: deadPid(), random: "second" });
    plant(`${path}.take-second`, { pid: deadPid(), random: "third" });
    plant(`${path}.dead-zeroth`, { pid: deadPid() });
    const taken = tryLock(path, means);
    expect(taken.held).toBeDefined();
    taken.held?.release();
    expect(readdirSync(dirname(path))).toEqual(["journal.ndjson.lock.dead-zeroth"]);
  }
});

test("a lock that a running process is taking over is not acquired", () => {
  const path = lockPath();
  plant(path, { pid: deadPid(), random: "first" });
  plant(`${path}.take-first`, { random: "second" });
  expect(tryLock(path, fallback).held).toBeUndefined();
});

test("sweeping removes files of ended processes and none of running ones", () => {
  const path = join(folder(), "journal.ndjson");
  const at = (name: string): string => `${path}.${name}`;
  const gone = deadPid();
  plant(at("entry-a.lock"), { pid: gone });
  plant(at("entry-b.lock"), { pid: gone, kernel: true, random: "b" });
  plant(at("entry-b.lock.take-b"), { pid: gone });
  plant(at("entry-b.lock.dead-c"), { pid: gone });
  plant(at(`entry-d.lock.new-${gone}-0123456789ab`), {});
  const living = tryLock(at("entry-e.lock"), native);
  plant(at(`entry-f.lock.new-${process.pid}-0123456789ab`), {});
  plant(at("torn-20261121T000000000Z"), {});
  writeFileSync(path, "");
  sweepLocks(path, { held: at("lock"), means: native });
  expect(readdirSync(dirname(path)).sort()).toEqual([
    "journal.ndjson",
    "journal.ndjson.entry-e.lock",
    `journal.ndjson.entry-f.lock.new-${process.pid}-0123456789ab`,
    "journal.ndjson.torn-20261121T000000000Z",
  ]);
  living.held?.release();
});

const heldBy = (owner: LockOwner | undefined): Error => new Error(`held by ${owner?.pid}`);

test("waiting for a lock takes over from ended processes immediately, with all their files", async () => {
  const path = lockPath();
  plant(path, { pid: deadPid(), random: "first" });
  plant(`${path}.take-first`, { pid: deadPid(), random: "second" });
  plant(`${path}.take-zeroth`, { pid: deadPid() });
  plant(`${path}.new-${deadPid()}-0123456789ab`, {});
  const lock = await waitForLock(path, { waitMs: 0, whenHeld: heldBy });
  expect(readdirSync(dirname(path))).toEqual(["journal.ndjson.lock"]);
  lock.release();
  expect(readdirSync(dirname(path))).toEqual([]);
});

test("an attempt waits for a running holder, then names it", async () => {
  const path = lockPath();
  const first = tryLock(path, native);
  const began = performance.now();
  await expect(waitForLock(path, { waitMs: 60, whenHeld: heldBy })).rejects.toThrow(`held by ${process.pid}`);
  expect(performance.now() - began).toBeGreaterThanOrEqual(55);
  setTimeout(() => first.held?.release(), 30);
  (await waitForLock(path, { whenHeld: heldBy })).release();
});

test("a folder that refuses a lock gives the file call's error", async () => {
  await expect(waitForLock(join(folder(), "none", "x.lock"), { whenHeld: heldBy })).rejects.toThrow("ENOENT");
});
