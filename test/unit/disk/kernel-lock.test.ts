import { describe, expect, it } from "vitest";
import { lockAnswer } from "../../../src/disk/error-words.ts";
import { loadKernelLock } from "../../../src/disk/kernel-lock.ts";

describe("the kernel's result for a lock", () => {
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

  it("for a file that is not open names the call", () => {
    expect(() => loadKernelLock()?.tryLock(9999)).toThrow(expect.objectContaining({ code: "EBADF", syscall: "lock" }));
  });
});
