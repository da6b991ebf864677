import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { folderSynced, syncFolder, writeAll } from "../../../src/disk/write.ts";
import { type DiskCall, diskError, onDisk } from "../../support/disk-calls.ts";

const onLinux = it.runIf(process.platform === "linux");

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "integ-waits-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

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

  it("that is written in parts continues at its offset", async () => {
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

  it("that is refused is an error of the device", async () => {
    const { error, wrote } = await writes(() => () => 0);
    expect([error, wrote.length]).toEqual([expect.objectContaining({ code: "EIO", syscall: "write" }), 1]);
  });
});

describe("a folder's sync", () => {
  onLinux("is opened to be synced, and closed", async () => {
    const path = folder();
    const { calls, open, error } = await onDisk(() => syncFolder(path));
    expect([calls.map(({ call }) => call), open, error]).toEqual([["open", "fsync", "close"], [], undefined]);
    const { O_DIRECTORY, O_RDONLY } = (await import("node:fs")).constants;
    expect(calls[0]!.args).toEqual([path, O_RDONLY | O_DIRECTORY]);
  });

  it("is skipped on systems that do it themselves", async () => {
    const platform = vi.spyOn(process, "platform", "get").mockReturnValue("win32");
    try {
      expect((await onDisk(() => syncFolder("/no/such"))).calls).toEqual([]);
    } finally {
      platform.mockRestore();
    }
  });

  onLinux("that may not be opened is an error, except with unlessDenied", async () => {
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

  const stateOf = async (promise: Promise<unknown>): Promise<unknown> => {
    let outcome: unknown = "nothing";
    promise.then(
      () => (outcome = "synced"),
      (error: { code: string }) => (outcome = error.code),
    );
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
    return outcome;
  };

  onLinux("is synced once for all callers in a turn of the event loop, and each gets the result", async () => {
    const path = folder();
    const { value, calls } = await onDisk(async () => {
      const first = [folderSynced(path), folderSynced(path)];
      expect(first[0]).toBe(first[1]);
      const outcome = await Promise.all(first.map(stateOf));
      return [...outcome, await stateOf(folderSynced(path)), await stateOf(folderSynced(join(path, "none")))];
    });
    expect(value).toEqual(["synced", "synced", "synced", "ENOENT"]);
    expect(calls.filter(({ call }) => call === "fsync")).toHaveLength(2);
  });
});
