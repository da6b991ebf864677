// How long a lock is waited for, by a clock that is played; and that writes, syncs and pauses end.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { identify, newOwner } from "../../../src/disk/lock-owner.ts";
import { pauseMs, waitForLock } from "../../../src/disk/process-lock.ts";
import { folderSynced, syncFolder, writeAll } from "../../../src/disk/write.ts";
import { type DiskCall, diskError, onDisk } from "../../support/disk-calls.ts";
import { stopTime } from "../../support/stopped-time.ts";

const self = identify(process.pid);
const onLinux = it.runIf(process.platform === "linux");

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "integ-waits-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function chanceIs(value: number): void {
  const random = vi.spyOn(Math, "random").mockReturnValue(value);
  onTestFinished(() => random.mockRestore());
}

describe("a pause", () => {
  it.each([
    [0, 0.5, 1],
    [1, 1, 2],
    [2, 2, 4],
    [5, 16, 32],
    [6, 20, 40],
    [7, 20, 40],
    [99, 20, 40],
  ])("before round %i is from %d to %d ms", (round, least, most) => {
    for (const [chance, ms] of [
      [0, least],
      [0.5, (least + most) / 2],
      [1, most],
    ] as const) {
      chanceIs(chance);
      expect(pauseMs(round)).toBe(ms);
    }
  });
});

describe("a lock that a running process has", () => {
  const held = (): string => {
    const path = join(folder(), "x.lock");
    // Of this process, without the kernel: no one can prove that it has ended.
    writeFileSync(path, JSON.stringify({ ...newOwner(self, false), random: "another" }), { mode: 0o600 });
    return path;
  };
  const whenHeld = (owner: { pid: number } | undefined): Error => new Error(`held by ${owner?.pid}`);

  it.each([
    [undefined, 10_000],
    [0, 0],
    [1, 1],
    [100, 100],
  ])("is waited for %s ms: %i", async (waitMs, whole) => {
    chanceIs(1);
    const { waits } = stopTime();
    const waiting = waitForLock(held(), { waitMs: waitMs && Math.min(waitMs, 1500), whenHeld });
    const limited = waitMs === undefined ? waiting.catch((error: Error) => error) : waiting;
    if (waitMs === undefined) {
      // More waits than a test plays.
      expect((await limited) as unknown as Error).toMatchObject({ message: "this waits without end" });
      expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(whole);
      return;
    }
    await expect(limited).rejects.toThrow(`held by ${process.pid}`);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(whole);
    const longest = [1, 2, 4, 8, 16, 32, 40, 40];
    for (const [at, ms] of waits.entries()) expect(ms).toBe(Math.min(longest[at]!, whole - sumOf(waits.slice(0, at))));
  });

  const sumOf = (all: readonly number[]): number => all.reduce((sum, ms) => sum + ms, 0);

  it("is had as soon as it is given back, and what others left of it goes", async () => {
    chanceIs(1);
    const path = held();
    const time = stopTime();
    writeFileSync(`${path}.new-${2 ** 22 + 9}-0123456789ab`, "");
    const pass = vi.spyOn(time.waits, "push").mockImplementation(function (this: number[], ms: number) {
      if (this.length === 1) rmSync(path);
      this[this.length] = ms;
      return this.length;
    });
    onTestFinished(() => pass.mockRestore());
    const lock = await waitForLock(path, { whenHeld });
    expect([...time.waits]).toEqual([1, 2]);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(join(path, ".."))).toEqual(["x.lock"]);
    lock.release();
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });
});

describe("a write", () => {
  const writes = async (answer: (call: DiskCall, count: number) => unknown, position?: number) => {
    let count = 0;
    const path = join(folder(), "f");
    writeFileSync(path, "0123456789");
    const fd = (await import("node:fs")).openSync(path, "r+");
    onTestFinished(async () => (await import("node:fs")).closeSync(fd));
    const { error, calls } = await onDisk(
      () => writeAll(fd, Buffer.from("abcdef"), position),
      (call) => {
        if (call.call !== "write") return undefined;
        if ((count += 1) > 20) return new Error("written without end");
        return answer(call, count);
      },
    );
    return { error, wrote: calls.map(({ args }) => [args[2], args[3], args[4]]) };
  };

  it("that is taken in parts goes on where it stopped", async () => {
    const taking = (most: number) => (_call: DiskCall) => (_fd: number, _bytes: Buffer, _at: number, length: number) =>
      Math.min(most, length);
    expect(await writes(taking(4), 3)).toEqual({
      error: undefined,
      wrote: [
        [0, 6, 3],
        [4, 2, 7],
      ],
    });
    expect(await writes(taking(4))).toEqual({
      error: undefined,
      wrote: [
        [0, 6, null],
        [4, 2, null],
      ],
    });
    expect((await writes(taking(6), 0)).wrote).toEqual([[0, 6, 0]]);
  });

  it("that is not taken is an error of the device", async () => {
    const { error, wrote } = await writes(() => () => 0);
    expect([error, wrote.length]).toEqual([expect.objectContaining({ code: "EIO", syscall: "write" }), 1]);
  });
});

describe("a folder", () => {
  onLinux("is opened to be synced, and closed", async () => {
    const path = folder();
    const { calls, open, error } = await onDisk(() => syncFolder(path));
    expect([calls.map(({ call }) => call), open, error]).toEqual([["open", "fsync", "close"], [], undefined]);
    const { O_DIRECTORY, O_RDONLY } = (await import("node:fs")).constants;
    expect(calls[0]!.args).toEqual([path, O_RDONLY | O_DIRECTORY]);
  });

  it("is left alone where a system does that itself", async () => {
    const platform = vi.spyOn(process, "platform", "get").mockReturnValue("win32");
    try {
      expect((await onDisk(() => syncFolder("/no/such"))).calls).toEqual([]);
    } finally {
      platform.mockRestore();
    }
  });

  onLinux("that may not be opened is an error, unless that is said to be none", async () => {
    const path = folder();
    const failing = (code: string, options = {}) =>
      onDisk(
        () => syncFolder(path, options),
        ({ call }) => (call === "open" ? diskError(code, "open") : undefined),
      );
    expect((await failing("EACCES")).error).toMatchObject({ code: "EACCES" });
    expect((await failing("EACCES", { unlessDenied: true })).error).toBeUndefined();
    expect((await failing("ENOENT", { unlessDenied: true })).error).toMatchObject({ code: "ENOENT" });
  });

  /** What came of it after a few turns. */
  const saidOf = async (promise: Promise<unknown>): Promise<unknown> => {
    let said: unknown = "nothing";
    promise.then(
      () => (said = "synced"),
      (error: { code: string }) => (said = error.code),
    );
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
    return said;
  };

  onLinux("is synced once for all of a turn, and each is told", async () => {
    const path = folder();
    const { value, calls } = await onDisk(async () => {
      const first = [folderSynced(path), folderSynced(path)];
      expect(first[0]).toBe(first[1]);
      const said = await Promise.all(first.map(saidOf));
      return [...said, await saidOf(folderSynced(path)), await saidOf(folderSynced(join(path, "none")))];
    });
    expect(value).toEqual(["synced", "synced", "synced", "ENOENT"]);
    expect(calls.filter(({ call }) => call === "fsync")).toHaveLength(2);
  });
});
