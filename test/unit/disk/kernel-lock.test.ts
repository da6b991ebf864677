// Locks on bytes of a file, where the kernel's answer is handed in.
import { linkSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { lockAnswer } from "../../../src/disk/error-words.ts";
import { hasOtherPaths, type KernelLock, loadKernelLock, tryLockRange } from "../../../src/disk/kernel-lock.ts";
import { temporaryFolder as folder } from "../../support/bundle-driver.ts";
import { diskError, onDisk } from "../../support/disk-calls.ts";

/** A kernel that always answers so. */
function kernel(answer: ReturnType<KernelLock["tryLock"]>): KernelLock {
  return { hasRanges: true, tryLock: () => answer };
}

function lockPath(): string {
  return join(folder(), "x.lock");
}

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
    ["that is free", kernel(true), { fd: expect.any(Number), release: expect.any(Function) }],
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

describe("what the kernel says of a lock", () => {
  // Of a native module: it names no call.
  const saying = (code: string): KernelLock => ({
    hasRanges: true,
    tryLock: () => {
      throw Object.assign(new Error("no"), { code });
    },
  });

  it.each([
    ["ENOLCK", "unsupported"],
    ["EOPNOTSUPP", "unsupported"],
    ["EAGAIN", "taken"],
    ["EACCES", "taken"],
    ["EBUSY", "taken"],
    ["EIO", undefined],
  ])("%s: %s", (code, expected) => {
    expect(lockAnswer(Object.assign(new Error("no"), { code }))).toBe(expected);
  });

  it("is an error otherwise, and the file is closed", async () => {
    const path = lockPath();
    writeFileSync(path, "");
    const { error, open } = await onDisk(() => tryLockRange(path, { offset: 5, length: 1 }, saying("EIO")));
    expect([error, open]).toEqual([expect.objectContaining({ code: "EIO" }), []]);
  });

  it("of a file that is not open names the call", () => {
    expect(() => loadKernelLock()?.tryLock(9999)).toThrow(expect.objectContaining({ code: "EBADF", syscall: "lock" }));
  });
});

test.each(["EACCES", "EROFS"])("bytes of a file that cannot be written (%s) are nobody's", async (code) => {
  const path = lockPath();
  const { value } = await onDisk(
    () => tryLockRange(path, { offset: 5, length: 1 }, kernel(true)),
    () => diskError(code, "open"),
  );
  expect(value).toBe("no_file");
});

test("a file that is mounted by itself has other paths, whatever its name", async () => {
  const folderOf = folder();
  const path = join(folderOf, "a b\\c");
  writeFileSync(path, "");
  const mounts = (line: string) =>
    onDisk(
      () => hasOtherPaths(path),
      ({ call, args }) => (call === "readFile" && args[0] === "/proc/self/mountinfo" ? () => line : undefined),
    );
  const escaped = `${folderOf}/a\\040b\\134c`;
  expect((await mounts(`1 2 0:3 / / rw\n36 35 98:0 /x ${escaped} rw`)).value).toBe(true);
  expect((await mounts(`36 35 98:0 ${escaped} /x rw`)).value).toBe(false);
  const none = await onDisk(
    () => hasOtherPaths(path),
    ({ call }) => (call === "readFile" ? diskError("ENOENT", "open") : undefined),
  );
  expect(none.value).toBe(false);
});

test("a lock that is given back closes its file, once", async () => {
  const path = lockPath();
  writeFileSync(path, "");
  const { value, open } = await onDisk(() => tryLockRange(path, { offset: 5, length: 1 }, kernel(true)));
  expect(open).toHaveLength(1);
  const { calls } = await onDisk(() => {
    if (typeof value !== "object") throw new Error(String(value));
    value.release();
    value.release();
  });
  expect(calls.map(({ call }) => call)).toEqual(["close"]);
});
