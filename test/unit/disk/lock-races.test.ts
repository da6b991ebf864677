// Locks where the kernel's answer is handed in: file systems without locks, files that change while they are looked at, and a
// person who takes a lock away.
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { basename, dirname, join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { hasOtherPaths, type KernelLock, tryLockRange } from "../../../src/disk/kernel-lock.ts";
import { identify, type LockOwner, newOwner } from "../../../src/disk/lock-owner.ts";
import { type LockMeans, pauseMs, sweepLocks, takeOver, tryLock } from "../../../src/disk/process-lock.ts";
import { temporaryFolder as folder } from "../../support/bundle-driver.ts";

const self = identify(process.pid);
type Answer = ReturnType<KernelLock["tryLock"]>;

/** A kernel that answers so, in this order; the last answer stays. */
function kernel(...answers: (Answer | (() => Answer))[]): KernelLock {
  return {
    hasRanges: true,
    tryLock: () => {
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      return typeof answer === "function" ? answer() : answer;
    },
  };
}

const without: LockMeans = { self, kernel: undefined };
const means = (...answers: (Answer | (() => Answer))[]): LockMeans => ({ self, kernel: kernel(...answers) });

function lockPath(): string {
  return join(folder(), "x.lock");
}

function plant(path: string, owner: Partial<LockOwner> = {}): void {
  writeFileSync(path, JSON.stringify({ ...newOwner(self, false), ...owner }));
}

function ownerAt(path: string): Partial<LockOwner> {
  return JSON.parse(readFileSync(path, "utf8")) as Partial<LockOwner>;
}

const gone = { pid: spawnSync("true").pid };
const another = { space: "pid:[1] time:[1]", pid: 1 };

describe("a person who takes a lock away", () => {
  it.each<[string, (path: string) => void, LockMeans, ReturnType<typeof takeOver>, string[]]>([
    ["finds none", () => {}, without, "free", []],
    ["finds one that the kernel gives", (path) => writeFileSync(path, ""), means(true), "free", []],
    ["finds one whose owner has ended", (path) => plant(path, gone), without, "free", []],
    ["finds one whose owner runs", (path) => plant(path), without, "lives", ["x.lock"]],
    ["finds one that the kernel refuses", (path) => plant(path, another), means(false), "lives", ["x.lock"]],
    ["gets one of another container", (path) => plant(path, another), without, "taken", []],
    ["gets one without a name", (path) => writeFileSync(path, ""), without, "taken", []],
    ["gets one with half a name", (path) => writeFileSync(path, '{"pid":12'), means(undefined), "taken", []],
    [
      "leaves one that someone else is taking",
      (path) => {
        plant(path, { ...another, random: "first" });
        plant(`${path}.take-first`);
      },
      without,
      "lives",
      ["x.lock", "x.lock.take-first"],
    ],
  ])("%s", (_what, arrange, lockMeans, expected, left) => {
    const path = lockPath();
    arrange(path);
    expect(takeOver(path, lockMeans)).toBe(expected);
    expect(readdirSync(dirname(path)).sort()).toEqual(left);
  });

  it("is noticed by the one who had it", () => {
    const path = lockPath();
    const { held } = tryLock(path, without);
    expect(held?.isHeld()).toBe(true);
    plant(path, another);
    expect(held?.isHeld()).toBe(true); // the same file
    expect(takeOver(path, without)).toBe("taken");
    expect(held?.isHeld()).toBe(false);
    held?.release();
    expect(existsSync(path)).toBe(false);
  });

  it("ends with the release", () => {
    const { held } = tryLock(lockPath(), without);
    held?.release();
    expect(held?.isHeld()).toBe(false);
  });
});

describe("a file system without the kernel's locks", () => {
  it("has locks by name, which say so", () => {
    const path = lockPath();
    const { held } = tryLock(path, means(undefined));
    expect(ownerAt(path)).toMatchObject({ pid: process.pid, kernel: false });
    expect(tryLock(path, means(undefined))).toMatchObject({ held: undefined, owner: { pid: process.pid } });
    held?.release();
  });

  it("believes no kernel's lock to have ended", () => {
    const path = lockPath();
    plant(path, { ...another, kernel: true });
    expect(tryLock(path, means(undefined)).held).toBeUndefined();
    const { held } = tryLock(path, means(true));
    expect([held !== undefined, ownerAt(path).kernel]).toEqual([true, true]);
  });

  it("says of a lock that was refused while it was made that the kernel has none", () => {
    const path = lockPath();
    expect(tryLock(path, means(false)).held).toBeDefined();
    expect(ownerAt(path).kernel).toBe(false);
  });
});

describe("a file that changes while it is looked at", () => {
  it("is looked at again if another one took its place", () => {
    const path = lockPath();
    plant(path, gone);
    const replace = (): true => {
      renameSync(path, `${path}.old`);
      plant(path, { random: "new" });
      return true;
    };
    // The old one is locked when another process has already put its own there.
    expect(tryLock(path, means(replace, undefined))).toMatchObject({ held: undefined, owner: { random: "new" } });
    expect(ownerAt(path).random).toBe("new");
  });

  it("is left alone if its ended owner's lock was taken meanwhile", () => {
    const path = lockPath();
    plant(path, { ...gone, random: "first" });
    const taken = (): undefined => {
      plant(path, { random: "second" });
      return undefined;
    };
    // Asked of the file, then of the lock on taking it.
    expect(tryLock(path, means(undefined, taken, undefined))).toMatchObject({
      held: undefined,
      owner: { random: "second" },
    });
    expect(readdirSync(dirname(path))).toEqual(["x.lock"]);
  });

  it("is made anew if it vanished meanwhile", () => {
    const path = lockPath();
    plant(path, { ...gone, random: "first" });
    const vanish = (): undefined => {
      renameSync(path, join(folder(), basename(path)));
      return undefined;
    };
    const { held } = tryLock(path, means(undefined, vanish, undefined));
    expect([held !== undefined, ownerAt(path).pid]).toEqual([true, process.pid]);
    expect(readdirSync(dirname(path))).toEqual(["x.lock"]);
  });
});

describe("sweeping", () => {
  it.each([
    [
      "a fault of the file call is left to the next one",
      Object.assign(new Error("no"), { code: "EIO", syscall: "open" }),
      false,
    ],
    ["a bug is not", new Error("bug"), true],
  ])("%s", (_what, error, isThrown) => {
    const path = join(folder(), "journal.ndjson");
    plant(`${path}.drive-a.lock`, gone);
    const sweep = (): void =>
      sweepLocks(path, {
        held: `${path}.lock`,
        means: means(() => {
          throw error;
        }),
      });
    if (isThrown) expect(sweep).toThrow("bug");
    else expect(sweep).not.toThrow();
  });

  it("leaves what belongs to another, and the lock of the caller", () => {
    const path = join(folder(), "journal.ndjson");
    for (const name of ["journal.ndjson2.drive-a.lock", "other.lock", "journal.ndjson.lock"])
      plant(join(dirname(path), name), gone);
    sweepLocks(path, { held: `${path}.lock`, means: without });
    expect(readdirSync(dirname(path)).sort()).toEqual([
      "journal.ndjson.lock",
      "journal.ndjson2.drive-a.lock",
      "other.lock",
    ]);
  });
});

test.each([
  [0, 1],
  [1, 2],
  [3, 8],
  [5, 32],
  [6, 40],
  [40, 40],
])("the pause before round %i is at most %i ms and at least half of it", (round, most) => {
  const pauses = Array.from({ length: 200 }, () => pauseMs(round));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(most);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(most / 2);
  expect(new Set(pauses).size).toBeGreaterThan(100);
});

describe("a lock on bytes of a file", () => {
  const range = { offset: 5, length: 1 };
  const file = (): string => {
    const path = join(folder(), "f");
    writeFileSync(path, "text");
    return path;
  };

  it.each<[string, KernelLock | undefined, unknown]>([
    ["without the kernel's package", undefined, "no_locks"],
    ["where locks are of the whole file", { ...kernel(true), hasRanges: false }, "no_locks"],
    ["on a disk without locks", kernel(undefined), "no_locks"],
    ["that another has", kernel(false), "taken"],
    ["that is free", kernel(true), { release: expect.any(Function) }],
  ])("%s", (_what, its, expected) => {
    const lock = tryLockRange(file(), range, its);
    expect(lock).toEqual(expected);
    if (typeof lock !== "string") {
      lock.release();
      lock.release(); // a second time does no harm
    }
  });

  it("needs a file that can be written", () => {
    expect(tryLockRange(join(folder(), "none"), range, kernel(true))).toBe("no_file");
    expect(() => tryLockRange(`${file()}\0`, range, kernel(true))).toThrow("null bytes");
  });

  it("is of the file that has the name in the end", () => {
    const path = file();
    const fds: number[] = [];
    const replace = (fd: number): boolean => {
      if (fds.push(fd) === 1) {
        renameSync(path, `${path}.old`);
        writeFileSync(path, "new");
      }
      return true;
    };
    const lock = tryLockRange(path, range, { hasRanges: true, tryLock: (fd) => replace(fd) });
    expect([typeof lock, fds.length]).toEqual(["object", 2]);
    if (typeof lock !== "string") lock.release();
  });

  it("knows whether other paths lead to its file", () => {
    const path = file();
    expect(hasOtherPaths(path)).toBe(false);
    expect(hasOtherPaths(`${path}.none`)).toBe(false);
    linkSync(path, `${path}.second`);
    expect(hasOtherPaths(path)).toBe(true);
  });
});
