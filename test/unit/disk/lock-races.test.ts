// Simulates the kernel's results, for file systems without locks and for files that change during a check.
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { basename, dirname, join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { errorCode } from "../../../src/disk/error-words.ts";
import type { KernelLock } from "../../../src/disk/kernel-lock.ts";
import { identify, type LockOwner, newOwner } from "../../../src/disk/lock-owner.ts";
import { type LockMeans, sweepLocks, forceUnlock, tryLock, waitForLock } from "../../../src/disk/process-lock.ts";
import { temporaryFolder as folder } from "../../support/bundle-driver.ts";
import { type DiskCall, diskError, onDisk } from "../../support/disk-calls.ts";

const self = identify(process.pid);
type Answer = ReturnType<KernelLock["tryLock"]>;

function kernel(...answers: (Answer | (() => Answer))[]): KernelLock {
  return {
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

describe("removing a lock by hand", () => {
  it.each<[string, (path: string) => void, LockMeans, ReturnType<typeof forceUnlock>, string[]]>([
    ["finds no lock", () => {}, without, "free", []],
    ["finds a lock that the kernel gives", (path) => writeFileSync(path, ""), means(true), "free", []],
    ["finds a lock whose owner has ended", (path) => plant(path, gone), without, "free", []],
    ["finds a lock whose owner runs", (path) => plant(path), without, "lives", ["x.lock"]],
    ["finds a lock that the kernel refuses", (path) => plant(path, another), means(false), "lives", ["x.lock"]],
    ["gets a lock of another container", (path) => plant(path, another), without, "taken", []],
    ["gets a lock without a name", (path) => writeFileSync(path, ""), without, "taken", []],
    ["gets a lock with half a name", (path) => writeFileSync(path, '{"pid":12'), means(undefined), "taken", []],
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
    expect(forceUnlock(path, lockMeans)).toBe(expected);
    expect(readdirSync(dirname(path)).sort()).toEqual(left);
  });

  it("is noticed by its owner", () => {
    const path = lockPath();
    const { held } = tryLock(path, without);
    expect(held?.isHeld()).toBe(true);
    plant(path, another);
    expect(held?.isHeld()).toBe(true);
    expect(forceUnlock(path, without)).toBe("taken");
    expect(held?.isHeld()).toBe(false);
    held?.release();
    expect(existsSync(path)).toBe(false);
  });

  it("has the same effect as the owner's release: the lock is not held", () => {
    const { held } = tryLock(lockPath(), without);
    held?.release();
    expect(held?.isHeld()).toBe(false);
  });
});

describe("a file system without kernel locks", () => {
  it("gets a lock by file name, and the lock says so", () => {
    const path = lockPath();
    const { held } = tryLock(path, means(undefined));
    expect(ownerAt(path)).toMatchObject({ pid: process.pid, kernel: false });
    expect(tryLock(path, means(undefined))).toMatchObject({ held: undefined, owner: { pid: process.pid } });
    held?.release();
  });

  it("never assumes that a kernel lock has ended", () => {
    const path = lockPath();
    plant(path, { ...another, kernel: true });
    expect(tryLock(path, means(undefined)).held).toBeUndefined();
    const { held } = tryLock(path, means(true));
    expect([held !== undefined, ownerAt(path).kernel]).toEqual([true, true]);
  });

  it("is recorded if the kernel refused the lock during its creation", () => {
    const path = lockPath();
    expect(tryLock(path, means(false)).held).toBeDefined();
    expect(ownerAt(path).kernel).toBe(false);
  });
});

describe("a lock file that changes during a check", () => {
  it("is checked again if another file replaced it", () => {
    const path = lockPath();
    plant(path, gone);
    const replace = (): true => {
      renameSync(path, `${path}.old`);
      plant(path, { random: "new" });
      return true;
    };
    // By the time this process locks the old file, another process has replaced it.
    expect(tryLock(path, means(replace, undefined))).toMatchObject({ held: undefined, owner: { random: "new" } });
    expect(ownerAt(path).random).toBe("new");
  });

  it("is left alone if another process took over the ended owner's lock first", () => {
    const path = lockPath();
    plant(path, { ...gone, random: "first" });
    const taken = (): undefined => {
      plant(path, { random: "second" });
      return undefined;
    };
    // The first result is for the file, and the others are for the lock of a takeover.
    expect(tryLock(path, means(undefined, taken, undefined))).toMatchObject({
      held: undefined,
      owner: { random: "second" },
    });
    expect(readdirSync(dirname(path))).toEqual(["x.lock"]);
  });

  it("is created again if it vanished", () => {
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
    ["ignores an error of the file call", Object.assign(new Error("no"), { code: "EIO", syscall: "open" }), false],
    ["does not ignore a bug", new Error("bug"), true],
  ])("%s", (_what, error, isThrown) => {
    const path = join(folder(), "journal.ndjson");
    plant(`${path}.entry-a.lock`, gone);
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

  it("leaves other processes' files and the caller's lock", () => {
    const path = join(folder(), "journal.ndjson");
    const living = `journal.ndjson.entry-f.lock.new-${process.pid}-0123456789ab`;
    const kept = ["journal.ndjson2.entry-a.lock", "journal.ndjson.torn-20261121T000000000Z", living];
    for (const name of ["other.lock", "journal.ndjson.lock", ...kept]) plant(join(dirname(path), name), gone);
    sweepLocks(path, { held: `${path}.lock`, means: without });
    expect(readdirSync(dirname(path)).sort()).toEqual([
      living,
      "journal.ndjson.lock",
      "journal.ndjson.torn-20261121T000000000Z",
      "journal.ndjson2.entry-a.lock",
      "other.lock",
    ]);
  });
});

test("on a file system without hard links, a lock is refused and leaves no file", async () => {
  const path = lockPath();
  const noLinks = ({ call }: DiskCall) => (call === "link" ? diskError("EPERM", "link") : undefined);
  const { error, open } = await onDisk(() => tryLock(path, means(true)), noLinks);
  expect(error).toMatchObject({
    kind: "usage",
    message: `Cannot make the lock ${path}: its file system has no hard links.`,
    details: { hint: "Use a folder on a local disk." },
  });
  expect([open, readdirSync(dirname(path))]).toEqual([[], []]);
});

describe("a kernel lock without a name", () => {
  it("is complete, with this process's name", () => {
    const path = lockPath();
    writeFileSync(path, "x".repeat(900));
    const { held } = tryLock(path, means(true));
    expect([held?.isHeld(), ownerAt(path).pid, ownerAt(path).kernel]).toEqual([true, process.pid, true]);
    held?.release();
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  it("belongs to another process if another file has replaced it", () => {
    const path = lockPath();
    writeFileSync(path, "");
    const replace = (): true => {
      renameSync(path, `${path}.old`);
      plant(path, { random: "new" });
      return true;
    };
    expect(tryLock(path, means(replace, undefined))).toMatchObject({ held: undefined, owner: { random: "new" } });
    expect(readFileSync(`${path}.old`, "utf8")).toBe("");
  });
});

test("a lock is released once: a second release does not touch a file opened after the first", () => {
  const path = lockPath();
  const { held } = tryLock(path, without);
  held?.release();
  const fds = [1, 2, 3].map(() => openSync(dirname(path), "r"));
  held?.release();
  for (const fd of fds) expect(() => closeSync(fd)).not.toThrow();
});

describe("a failing disk", () => {
  it.each(["EPERM", "ENOENT", "EEXIST", "ENOTSUP"])(
    "%s of a write is not reported as missing hard links",
    async (code) => {
      const path = lockPath();
      const { error, open } = await onDisk(
        () => tryLock(path, without),
        ({ call }) => (call === "write" ? diskError(code, "write") : undefined),
      );
      expect([errorCode(error), open, readdirSync(dirname(path))]).toEqual([code, [], []]);
    },
  );

  const works: readonly (readonly [string, (path: string) => void, (path: string) => unknown])[] = [
    ["a lock that is taken", () => {}, (path) => tryLock(path, without).held],
    ["a lock of an ended process", (path) => plant(path, gone), (path) => tryLock(path, without).held],
    ["a lock that a person removes", (path) => plant(path, another), (path) => forceUnlock(path, without)],
    ["a lock without a name", (path) => writeFileSync(path, ""), (path) => forceUnlock(path, without)],
  ];

  it.each(works)("%s: the lock is held or the error reported; only its file stays open", async (_, arrange, work) => {
    const first = lockPath();
    arrange(first);
    const { calls } = await onDisk(() => work(first));
    for (const [number, { call, file }] of calls.entries()) {
      const path = lockPath();
      arrange(path);
      const { value, error, open } = await onDisk(
        () => work(path),
        (_call, at) => (at === number ? diskError("EIO", call) : undefined),
      );
      const words = `${call} ${file}`;
      const isHeld = error === undefined;
      // A process can hold the lock even if a file cannot be removed, closed or inspected.
      expect([words, isHeld || errorCode(error)]).toEqual([words, isHeld ? true : "EIO"]);
      if (isHeld) expect([words, call]).toEqual([words, expect.stringMatching(/^(?:unlink|close|lstat|fstat)$/)]);
      expect([words, open.length]).toEqual([words, typeof value === "object" ? 1 : 0]);
    }
  });

  it("a lock that another process acquires first is that process's", async () => {
    const path = lockPath();
    const { value, open } = await onDisk(
      () => tryLock(path, without),
      ({ call }) => {
        if (call === "link" && !existsSync(path)) plant(path, { random: "another" });
      },
    );
    expect(value).toMatchObject({ held: undefined, owner: { random: "another" } });
    expect([open, readdirSync(dirname(path))]).toEqual([[], ["x.lock"]]);
  });

  it("a lock that gets its name during its removal is put back", async () => {
    const path = lockPath();
    writeFileSync(path, "");
    const { value } = await onDisk(
      () => forceUnlock(path, without),
      ({ call, file }) => {
        if (call === "rename" && file === "x.lock") plant(path, { random: "another" });
      },
    );
    expect([value, ownerAt(path).random, readdirSync(dirname(path))]).toEqual(["lives", "another", ["x.lock"]]);
  });
});

test("an awaited lock is released if leftovers of others cannot be checked", async () => {
  const path = lockPath();
  const { error, open } = await onDisk(
    () => waitForLock(path, { waitMs: 0, whenHeld: () => new Error("held") }),
    ({ call }) => (call === "readdir" ? diskError("EIO", "scandir") : undefined),
  );
  expect([errorCode(error), open, readdirSync(dirname(path))]).toEqual(["EIO", [], []]);
});
