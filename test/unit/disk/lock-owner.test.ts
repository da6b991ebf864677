import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import {
  isVisible,
  describeOwner,
  hasEnded,
  identify,
  type LockOwner,
  newOwner,
  readOwner,
} from "../../../src/disk/lock-owner.ts";
import { onDisk } from "../../support/disk-calls.ts";

const self = identify(process.pid);

describe("the owner of a lock", () => {
  const whole = newOwner(self, true);

  it("is this process, as the system describes it", () => {
    const fields = readFileSync("/proc/self/stat", "latin1")
      .replace(/^.*\) /, "")
      .split(" ");
    expect(newOwner(identify(process.pid), true)).toEqual({
      pid: process.pid,
      start: fields[19],
      boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      space: ["pid", "time"].map((name) => readlinkSync(`/proc/self/ns/${name}`)).join(" "),
      host: hostname(),
      random: expect.stringMatching(/^[\w-]{12}$/),
      kernel: true,
    });
    expect(identify(spawnSync("true").pid)).toMatchObject({ start: null, space: null });
  });

  it.each<[string, object]>([
    ["a number", { pid: "12" }],
    ["a whole number", { pid: 1.5 }],
    ["a start", { start: 12 }],
    ["a boot", { boot: undefined }],
    ["a space", { space: 1 }],
    ["a host", { host: null }],
    ["a random name", { random: 1 }],
    ["a name that is a path", { random: "../x" }],
    ["a long enough name", { random: "x".repeat(41) }],
    ["the kernel's part", { kernel: "true" }],
  ])("has %s, or the record is invalid", (_what, changed) => {
    expect(readOwner(JSON.stringify(whole))).toEqual(whole);
    expect(readOwner(JSON.stringify({ ...whole, start: null, boot: null, space: null }))).toBeDefined();
    expect(readOwner(JSON.stringify({ ...whole, ...changed }))).toBeUndefined();
    for (const text of ["null", "12", "{", ""]) expect(readOwner(text)).toBeUndefined();
  });

  it.each<[string, Partial<LockOwner>, boolean, string]>([
    ["here", {}, true, "process 7"],
    ["in another container", { space: "pid:[1]" }, false, "process 7 of another container on this machine"],
    ["of another boot", { boot: "before" }, false, `process 7 of another boot of ${self.host}`],
    ["on another machine", { boot: "before", host: "far" }, false, "process 7 on far"],
    ["on another machine in the same boot", { space: "pid:[1]", host: "far" }, false, "process 7 on far"],
    ["of a container with another name", { host: "far" }, true, "process 7"],
  ])("can be checked %s, or is described by its location", (_what, changed, isSeen, words) => {
    const owner = { ...whole, pid: 7, ...changed };
    expect([isVisible(owner, self), describeOwner(owner, self)]).toEqual([isSeen, words]);
    expect(describeOwner(undefined, self)).toBe("a process that left no name");
  });

  it("is described by its host if the system shows no more", () => {
    const nothing = { ...whole, boot: null, space: null, start: null };
    expect(isVisible(nothing, nothing)).toBe(true);
    expect(isVisible({ ...nothing, host: "far" }, nothing)).toBe(false);
  });

  it.each<[string, string, boolean]>([
    ["runs", "S", false],
    ["has exited", "X", true],
    ["is a zombie", "Z", true],
    ["runs without its first thread", "Z 2", false],
  ])("%s (%s)", async (_what, state, hasItEnded) => {
    const [letter, threads = "1"] = state.split(" ");
    const fields = [letter, ...Array.from({ length: 16 }, () => "0"), threads, "0", "77", "0"];
    const look = (text: string, start: string | null) =>
      onDisk(
        () => hasEnded({ ...self, start }, self),
        ({ call }) => (call === "readFile" ? () => text : undefined),
      );
    const text = `${process.pid} (a ) name) ${fields.join(" ")}`;
    expect((await look(text, "77")).value).toBe(hasItEnded);
    expect((await look(text, "78")).value).toBe(true);
    expect((await look(text, null)).value).toBe(false);
    expect((await look(`${process.pid} (cut) Z 0`, "77")).value).toBe(false);
  });
});
