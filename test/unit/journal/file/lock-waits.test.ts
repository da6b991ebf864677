// Who is waited for, how long, and what is said of it: by a clock that is played here.
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { KernelLock, LockRange } from "../../../../src/disk/kernel-lock.ts";
import { identify, type LockOwner, newOwner } from "../../../../src/disk/lock-owner.ts";
import { pauseMs } from "../../../../src/disk/process-lock.ts";
import { Failure } from "../../../../src/errors.ts";
import { Busy, JournalLocks } from "../../../../src/journal/file/locks.ts";
import { nothingSent } from "../../../../src/journal/file/safety.ts";
import { idOf } from "../../../../src/journal/lookup.ts";
import { folder } from "../intent.ts";

const self = identify(process.pid);
const owner = (changes: Partial<LockOwner> = {}): LockOwner => ({ ...newOwner(self, false), pid: 4242, ...changes });

function locksAt(path: string, { waitMs = 100, kernel }: { waitMs?: number; kernel?: KernelLock } = {}): JournalLocks {
  return new JournalLocks(path, { means: () => ({ self, kernel }), waitMs });
}

/** Chance gives the longest pauses; each sleep is written down and takes no time. */
function playTime(): number[] {
  const slept: number[] = [];
  let now = 5000;
  const sleep = (ms: number): void => {
    if (slept.push(ms) > 500) throw new Error("waits without end");
    now += ms;
  };
  const mocks = [
    vi.spyOn(performance, "now").mockImplementation(() => now),
    vi.spyOn(Math, "random").mockReturnValue(0.5),
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((go: () => void, ms: number) => {
      sleep(ms);
      queueMicrotask(go);
    }) as unknown as typeof setTimeout),
    vi.spyOn(Atomics, "wait").mockImplementation(((array: Int32Array, at: number, value: number, ms: number) => {
      expect([array.length, at, value, array[0]]).toEqual([1, 0, 0, 0]);
      sleep(ms);
      return "timed-out";
    }) as unknown as typeof Atomics.wait),
  ];
  onTestFinished(() => {
    for (const mock of mocks) mock.mockRestore();
  });
  return slept;
}

/** The pauses until so many milliseconds are over. */
function pausesFor(waitMs: number): number[] {
  const pauses: number[] = [];
  for (let left = waitMs; left > 0; ) {
    const pause = Math.min(left, pauseMs(pauses.length));
    pauses.push(pause);
    left -= pause;
  }
  return pauses;
}

const refused = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { kind: error.kind, message: error.message, ...error.details };
  }
};

describe("waiting", () => {
  it.each([1, 100, 150, 1000])("ends after %i ms, with longer and longer pauses", async (waitMs) => {
    const slept = playTime();
    const locks = locksAt("/x", { waitMs });
    let tries = 0;
    const said = await refused(() => locks.wait(() => (++tries, new Busy("the journal", owner()))));
    expect(slept).toEqual(pausesFor(waitMs));
    expect(tries).toBe(slept.length + 1);
    expect(said).toEqual({
      kind: "failed",
      message: `The journal is in use by process 4242; integ waited ${Math.round(waitMs / 100) / 10} s.`,
      meaning: nothingSent,
      hint: "Wait for process 4242, or end it, then run the command again.",
    });
  });

  it("is not begun where no one is in the way, and ends where no one is any more", async () => {
    const slept = playTime();
    const locks = locksAt("/x");
    expect(await locks.wait(() => "at once")).toBe("at once");
    expect(slept).toEqual([]);
    const answers = [new Busy("the journal", undefined), new Busy("the journal", undefined)];
    expect(await locks.wait(async () => answers.shift() ?? "later")).toBe("later");
    expect(slept).toEqual([pauseMs(0), pauseMs(1)]);
  });

  it.each<[number, number | undefined, number]>([
    [100, undefined, 100],
    [100, 40, 40],
    [100, 1000, 100],
    [10_000, 1000, 1000],
  ])("of a thread that sleeps, %i ms and at most %s, takes %i", async (waitMs, atMostMs, takes) => {
    const slept = playTime();
    const locks = locksAt("/x", { waitMs });
    let tries = 0;
    locks.tryFile = () => (++tries, new Busy("the journal", owner()));
    const options = atMostMs === undefined ? {} : { atMostMs };
    expect(await refused(() => locks.holdFile({ meaning: "Nothing of it.", ...options }))).toMatchObject({
      message: expect.stringContaining(`waited ${Math.round(takes / 100) / 10} s.`),
      meaning: "Nothing of it.",
    });
    expect([slept, tries]).toEqual([pausesFor(takes), slept.length + 1]);
    const lock = { fd: undefined, release: () => {} };
    const answers = [new Busy("the journal", undefined), new Busy("the journal", undefined)];
    slept.length = 0;
    locks.tryFile = () => answers.shift() ?? lock;
    expect(locks.holdFile()).toBe(lock);
    expect(slept).toEqual([pauseMs(0), pauseMs(1)].map((ms) => Math.min(ms, waitMs)));
  });
});

describe("what is said of who is in the way", () => {
  const later = "Run the command again later.";
  const release = {
    meaning: `${nothingSent} Whether that process still runs cannot be seen from here.`,
    hint: "Wait for it, or take the entry from it if it has ended.",
    nextCommand: "integ journal release 0123456789",
    entry: "0123456789",
  };
  const far = owner({ host: "far", boot: null });
  it.each<[string, Busy, string, object]>([
    [
      "an entry, by a process here",
      new Busy("journal entry 0123456789", owner()),
      "Journal entry 0123456789 is in use by process 4242",
      { meaning: nothingSent, hint: "Wait for process 4242, or end it, then run the command again." },
    ],
    [
      "an entry, by one of another machine",
      new Busy("journal entry 0123456789", far),
      "Journal entry 0123456789 is in use by process 4242 on far",
      release,
    ],
    [
      "an entry, by one without a name",
      new Busy("journal entry 0123456789", undefined),
      "Journal entry 0123456789 is in use by a process that left no name",
      release,
    ],
    [
      "an entry, by another path",
      new Busy("journal entry 0123456789", undefined, true),
      "Journal entry 0123456789 is in use by a process that reached it by another path",
      { meaning: nothingSent, hint: later },
    ],
    [
      "the file, by one of another machine",
      new Busy("the journal", far),
      "The journal is in use by process 4242 on far",
      { meaning: nothingSent, hint: "Wait for process 4242, or end it, then run the command again." },
    ],
    [
      "the file, by one without a name",
      new Busy("the journal", undefined),
      "The journal is in use by a process that left no name",
      { meaning: nothingSent, hint: later },
    ],
    [
      "the file, by another path",
      new Busy("the journal", undefined, true),
      "The journal is in use by a process that reached it by another path",
      { meaning: nothingSent, hint: later },
    ],
  ])("%s", async (_what, busy, message, details) => {
    playTime();
    expect(await refused(() => locksAt("/x", { waitMs: 0 }).wait(() => busy))).toEqual({
      kind: "failed",
      message: `${message}; integ waited 0 s.`,
      ...details,
    });
  });
});

describe("an entry that is taken away", () => {
  const id = "0123456789";
  const now = Date.UTC(2026, 10, 23);
  const minutes = 60_000;
  const refusal = (what: string): unknown => ({
    kind: "conflict",
    message: `${what} was in use until a moment ago.`,
    meaning: "Nothing changed: a request may be under way.",
    hint: "Wait ten minutes after its last step.",
  });
  /** The lock of a process far away, so many milliseconds old. */
  const locked = (which: "file" | "entry", ageMs: number): { path: string; lock: string } => {
    const path = join(folder(), "journal.ndjson");
    const lock = which === "file" ? `${path}.lock` : `${path}.drive-${id}.lock`;
    writeFileSync(lock, JSON.stringify(owner({ host: "far", boot: null })));
    utimesSync(lock, (now - ageMs) / 1000, (now - ageMs) / 1000);
    return { path, lock };
  };

  it.each(["file", "entry"] as const)("its %s lock is taken after ten minutes, and not before", async (which) => {
    const what = which === "file" ? "The journal" : `Journal entry ${id}`;
    for (const [lockAge, entryAge, said] of [
      [10 * minutes, 10 * minutes, undefined],
      [10 * minutes - 1, 10 * minutes, refusal(what)],
      [10 * minutes, 10 * minutes - 1, refusal(what)],
      [0, 99 * minutes, refusal(what)],
      [99 * minutes, 0, refusal(what)],
      [99 * minutes, 99 * minutes, undefined],
      // A clock that was set back says nothing.
      [-1, 99 * minutes, undefined],
      [99 * minutes, -1, undefined],
    ] as const) {
      const { path, lock } = locked(which, lockAge);
      const at = { now, touchedAt: now - entryAge };
      const label = `${lockAge} ${entryAge}`;
      expect([label, await refused(() => locksAt(path).takeAway(id, at))]).toEqual([label, said]);
      expect([label, readdirSync(join(path, "..")).includes(lock.replace(/^.*\//, ""))]).toEqual([
        label,
        said !== undefined,
      ]);
    }
  });

  it.each(["file", "entry"] as const)("its %s lock stays with a process that runs", async (which) => {
    const { path, lock } = locked(which, 99 * minutes);
    writeFileSync(lock, JSON.stringify({ ...newOwner(self, false) }));
    utimesSync(lock, (now - 99 * minutes) / 1000, (now - 99 * minutes) / 1000);
    expect(await refused(() => locksAt(path).takeAway(id, { now, touchedAt: 0 }))).toEqual({
      kind: "conflict",
      message: `${which === "file" ? "The journal" : `Journal entry ${id}`} is in use by a process that runs.`,
      meaning: "Nothing changed.",
      hint: "Wait for that process, or end it.",
    });
  });
});

describe("what ended processes left", () => {
  it("is swept, and what others have is known by its entry", () => {
    const path = join(folder(), "journal.ndjson");
    const dead = owner({ pid: 2 ** 22 + 1 });
    for (const name of ["drive-0123456789.lock", "drive-abcdefghjk.lock"])
      writeFileSync(`${path}.${name}`, JSON.stringify(name.includes("0123") ? dead : newOwner(self, false)));
    for (const name of ["drive-zzzzzzzzzz.lock-more", "drive-yyyyyyyyyy", "other-0123456780.lock"])
      writeFileSync(`${path}.${name}`, "");
    mkdirSync(`${path}.folder`);
    const locks = locksAt(path);
    expect([...locks.leased()].toSorted()).toEqual(["0123456789", "abcdefghjk"]);
    locks.sweep();
    expect([...locks.leased()]).toEqual(["abcdefghjk"]);
  });
});

describe("the bytes of entries", () => {
  const first = 2 ** 51;
  const all = 2 ** 50;
  /** A kernel that writes down what is locked, and refuses what begins there. */
  const kernelOf = (refusedAt?: number): { kernel: KernelLock; ranges: (LockRange | undefined)[] } => {
    const ranges: (LockRange | undefined)[] = [];
    return {
      ranges,
      kernel: {
        hasRanges: true,
        tryLock: (_fd, range) => {
          ranges.push(range);
          return range?.offset !== refusedAt;
        },
      },
    };
  };
  const journal = (): string => {
    const path = join(folder(), "journal.ndjson");
    writeFileSync(path, "", { mode: 0o600 });
    return path;
  };

  it.each<[string, readonly number[], readonly (readonly [number, number])[]]>([
    ["none", [], [[0, all]]],
    [
      "one in the middle",
      [5],
      [
        [0, 5],
        [6, all - 6],
      ],
    ],
    ["the first", [0], [[1, all - 1]]],
    [
      "two beside each other, in another order",
      [8, 7],
      [
        [0, 7],
        [9, all - 9],
      ],
    ],
    ["the last", [all - 1], [[0, all - 1]]],
    [
      "far from each other",
      [100, 5, 2000],
      [
        [0, 5],
        [6, 94],
        [101, 1899],
        [2001, all - 2001],
      ],
    ],
  ])("are locked around those that are held by this path: %s", (_what, held, ranges) => {
    const { kernel, ranges: seen } = kernelOf();
    const path = journal();
    const lock = locksAt(path, { kernel }).holdOthers(new Set(held.map(idOf)));
    expect(seen).toEqual(ranges.map(([offset, length]) => ({ offset: first + offset, length })));
    lock.release();
    lock.release();
  });

  it("are all left again where one of them is taken", async () => {
    playTime();
    const { kernel } = kernelOf(first + 6);
    const path = journal();
    const before = readdirSync("/proc/self/fd").length;
    expect(await refused(() => locksAt(path, { kernel }).holdOthers(new Set([idOf(5)])))).toEqual({
      kind: "failed",
      message: "An entry of the journal is in use by a process that reached it by another path; integ waited 0 s.",
      meaning: "The journal was not changed.",
      hint: "Run the command again later.",
    });
    expect(readdirSync("/proc/self/fd")).toHaveLength(before);
  });

  it("of one entry and of the file are their own", () => {
    const { kernel, ranges } = kernelOf();
    const locks = locksAt(journal(), { kernel });
    for (const lock of [locks.tryFile(), locks.tryEntry(idOf(7))]) {
      expect(lock).not.toBeInstanceOf(Busy);
      if (!(lock instanceof Busy)) lock.release();
    }
    // The files beside the journal are locked as a whole.
    expect(ranges.filter((range) => range !== undefined)).toEqual([
      { offset: first - 1, length: 1 },
      { offset: first + 7, length: 1 },
    ]);
  });

  it("that another path has are no one's here", () => {
    const { kernel } = kernelOf(first + 7);
    const locks = locksAt(journal(), { kernel });
    expect(locks.tryEntry(idOf(7))).toEqual(new Busy(`journal entry ${idOf(7)}`, undefined, true));
    expect([...locks.leased()]).toEqual([]);
    const own = locksAt(journal());
    const other = own.tryEntry(idOf(8));
    expect(own.tryEntry(idOf(8))).toMatchObject({ owner: { pid: process.pid }, isElsewhere: false });
    if (!(other instanceof Busy)) other.release();
  });
});
