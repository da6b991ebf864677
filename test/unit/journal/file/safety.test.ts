import fs, { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { checkFile, journalFailure, setAside } from "../../../../src/journal/file/safety.ts";
import { type DiskCall, onDisk } from "../../../support/disk-calls.ts";
import { folder } from "../intent.ts";

function systemError(code: string, words: string): Error {
  return Object.assign(new Error(`${code}: ${words}, open '/j'`), { code, syscall: "open" });
}

function failureFrom(error: Error, action: Parameters<typeof journalFailure>[1] = "update the journal"): Failure {
  const failure = journalFailure(error, action, { path: "/j" });
  if (!(failure instanceof Failure)) throw new Error("no failure");
  return failure;
}

test("a failing call is one sentence, with the system's own message and no second path", () => {
  expect(failureFrom(systemError("EROFS", "read-only file system")).message).toBe(
    "Cannot update the journal /j: read-only file system (EROFS).",
  );
});

test.each([
  ["EACCES", "permission denied", "usage"],
  ["EROFS", "read-only file system", "usage"],
  ["ENOSPC", "no space left on device", "failed"],
])("%s: the hint names no other journal, which would not have the entries", (code, words, kind) => {
  const { kind: is, details } = failureFrom(systemError(code, words));
  expect(is).toBe(kind);
  expect(details.hint).not.toContain("INTEG_JOURNAL");
});

test("a new entry may use another journal", () => {
  expect(failureFrom(systemError("EROFS", "read-only file system"), "write to the journal").details.hint).toContain(
    "INTEG_JOURNAL",
  );
});

test("other errors pass unchanged", () => {
  const bug = new Error("a bug");
  expect(journalFailure(bug, "read the journal", { path: "/j" })).toBe(bug);
});

function withStat(changed: object): (call: DiskCall) => unknown {
  const { fstatSync } = fs;
  return ({ call }) =>
    call === "fstat" ? (...args: [number]) => Object.assign(fstatSync(...args), changed) : undefined;
}

test.each<[string, object, string, string | undefined]>([
  ["of another user", { uid: 4711 }, "belongs to another user (4711).", `chown`],
  ["that others can write", { mode: 0o100620 }, "can be written by others (mode 0620).", "chmod 600"],
  ["that all can write", { mode: 0o100602 }, "can be written by others (mode 0602).", "chmod 600"],
  [
    "that is mounted, and was replaced there",
    { nlink: 0 },
    "has a second name (a hard link, or a mount of the single file).",
    undefined,
  ],
  ["with a second name", { nlink: 2 }, "has a second name (a hard link, or a mount of the single file).", undefined],
])("a journal %s is refused", async (_what, changed, words, command) => {
  const path = join(folder(), "j");
  writeFileSync(path, "", { mode: 0o600 });
  const fd = openSync(path, "r");
  const { error } = await onDisk(() => checkFile(fd, path, { repair: true }), withStat(changed));
  closeSync(fd);
  expect(error).toMatchObject({ kind: "usage", message: `The journal ${path} ${words}` });
  const next = JSON.stringify((error as Failure).details.nextCommand) ?? "";
  expect([next.includes("chown"), next.includes("chmod 600")]).toEqual([command === "chown", command === "chmod 600"]);
});

test("a journal that others can read is made private before a write", async () => {
  const path = join(folder(), "j");
  writeFileSync(path, "", { mode: 0o644 });
  const fd = openSync(path, "r");
  const work = async (repair: boolean) =>
    (await onDisk(() => checkFile(fd, path, { repair }))).calls.map(({ call }) => call);
  expect([await work(false), await work(true), await work(true)]).toEqual([["fstat"], ["fstat", "fchmod"], ["fstat"]]);
  closeSync(fd);
  const directory = openSync(dirname(path), "r");
  expect(() => checkFile(directory, dirname(path))).toThrow(expect.objectContaining({ kind: "usage" }));
  closeSync(directory);
});

test("a damaged part is copied aside once, next to another of the same name", () => {
  const path = join(folder(), "j");
  const at = { offset: 7, line: 1, reason: "torn" };
  const aside = (text: string, what: "damage" | "torn"): void => {
    const one = { ...at, bytes: Buffer.from(text) };
    const now = (): number => Date.UTC(2026, 10, 21);
    setAside(path, what === "torn" ? { damage: [], torn: one } : { damage: [one, one], torn: undefined }, now);
  };
  for (const text of ["one", "one", "two", "three"]) aside(text, "torn");
  const name = "j.torn-20261121T000000000Z";
  expect(readdirSync(dirname(path)).sort()).toEqual([name, `${name}-2`, `${name}-3`]);
  expect([name, `${name}-2`, `${name}-3`].map((one) => readFileSync(join(dirname(path), one), "utf8"))).toEqual([
    "one",
    "two",
    "three",
  ]);
  aside("bad", "damage");
  expect(readdirSync(dirname(path)).filter((one) => /^j\.damaged-7-[0-9a-f]{12}$/.test(one))).toHaveLength(1);
});
