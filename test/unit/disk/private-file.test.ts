import fs, { chmodSync, closeSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import {
  createPrivateFile,
  ensurePrivateFolder,
  isAmong,
  listFolder,
  makeFolders,
  openPrivateFile,
  readPrivateFile,
} from "../../../src/disk/private-file.ts";
import { Failure } from "../../../src/errors.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { type DiskCall, diskError, onDisk, wordsOf } from "../../support/disk-calls.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test("a new file is readable only by its owner under any umask, and never overwrites one", () => {
  const folder = temporaryFolder();
  const before = process.umask(0);
  closeSync(createPrivateFile(join(folder, "x")));
  process.umask(before);
  expect(mode(join(folder, "x"))).toBe("600");
  expect(() => createPrivateFile(join(folder, "x"))).toThrow("EEXIST");
  symlinkSync(join(folder, "y"), join(folder, "link"));
  expect(() => createPrivateFile(join(folder, "link"))).toThrow();
  expect(readdirSync(folder).sort()).toEqual(["link", "x"]);
});

test("a file that others can read is refused, as is a link", () => {
  const path = join(temporaryFolder(), "x");
  writeFileSync(path, "text", { mode: 0o600 });
  expect(readPrivateFile(path)).toBe("text");
  chmodSync(path, 0o640);
  expect(() => readPrivateFile(path)).toThrow(`${path} is open to other users (mode 640).`);
  symlinkSync(path, `${path}.link`);
  expect(() => openPrivateFile(`${path}.link`)).toThrow("ELOOP");
  expect(() => readPrivateFile(`${path}.link`)).toThrow("it is a symbolic link");
  expect(readPrivateFile(`${path}.none`)).toBeUndefined();
});

test("a folder is created with its parents, mode 0700; one that others can write to is refused", () => {
  const folder = join(temporaryFolder(), "a", "b");
  ensurePrivateFolder(folder);
  ensurePrivateFolder(folder);
  expect(mode(folder)).toBe("700");
  mkdirSync(join(folder, "open"));
  chmodSync(join(folder, "open"), 0o770);
  expect(() => ensurePrivateFolder(join(folder, "open"))).toThrow("can be changed by other users");
  writeFileSync(join(folder, "file"), "");
  expect(() => ensurePrivateFolder(join(folder, "file", "x"))).toThrow("a part of the path is not a folder");
});

function withStat(changed: { uid?: number; mode?: number }): (call: DiskCall) => unknown {
  const { fstatSync, statSync: stat } = fs;
  return ({ call }) => {
    if (call !== "fstat" && call !== "stat") return undefined;
    const real = (call === "stat" ? stat : fstatSync) as (...args: unknown[]) => object;
    return (...args: unknown[]) => Object.assign(real(...args), changed);
  };
}

async function failureOf(work: () => unknown, answer: (call: DiskCall, at: number) => unknown): Promise<unknown[]> {
  const { error, open, value } = await onDisk(work, answer);
  return [error instanceof Failure ? [error.kind, error.message] : (error ?? value), open];
}

test("a file of another user, or not a plain file, is refused", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  writeFileSync(path, "text", { mode: 0o600 });
  const getuid = vi.spyOn(process, "getuid").mockReturnValue(1000);
  const others = withStat({ uid: 2000 });
  try {
    const refused = ["usage", `Cannot use ${path}: it belongs to another user.`];
    expect(await failureOf(() => readPrivateFile(path), others)).toEqual([refused, []]);
    expect(await failureOf(() => readPrivateFile(path), withStat({ uid: 1000 }))).toEqual(["text", []]);
    expect(await failureOf(() => ensurePrivateFolder(folder), others)).toEqual([
      ["usage", `Cannot use the folder ${folder}: it belongs to another user.`],
      [],
    ]);
    getuid.mockReturnValue(0);
    expect(await failureOf(() => readPrivateFile(path), others)).toEqual(["text", []]);
  } finally {
    getuid.mockRestore();
  }
  expect(
    await failureOf(
      () => ensurePrivateFolder(path),
      () => undefined,
    ),
  ).toEqual([["usage", `Cannot use ${path}: it is not a folder.`], []]);
  for (const [mode, isRefused] of [
    [0o711, false],
    [0o755, false],
    [0o720, true],
    [0o702, true],
  ] as const) {
    chmodSync(folder, mode);
    const [reported] = await failureOf(
      () => ensurePrivateFolder(folder),
      () => undefined,
    );
    expect([mode, reported]).toEqual([
      mode,
      isRefused ? ["usage", `The folder ${folder} can be changed by other users.`] : undefined,
    ]);
  }
  expect(
    await failureOf(
      () => readPrivateFile(folder),
      () => undefined,
    ),
  ).toEqual([["usage", `Cannot use ${folder}: it is not a plain file.`], []]);
});

test("a file system without permissions stores no secret, and none of it stays", async () => {
  const path = join(temporaryFolder(), "x");
  const refused = ["usage", `${path} is open to other users (mode 777).`];
  expect(await failureOf(() => createPrivateFile(path), withStat({ mode: 0o100777 }))).toEqual([refused, []]);
  expect(readPrivateFile(path)).toBeUndefined();
});

test("a disk error names the intended operation", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  writeFileSync(path, "text", { mode: 0o600 });
  const on =
    (wanted: string) =>
    ({ call }: DiskCall) =>
      call === wanted ? diskError("EIO", wanted) : undefined;
  const reported = (action: string, what: string) => [
    ["failed", `Cannot ${action} ${what}: the device reports an I/O error.`],
    [],
  ];
  expect(await failureOf(() => readPrivateFile(path), on("open"))).toEqual(reported("read", path));
  expect(await failureOf(() => readPrivateFile(path), on("readFile"))).toEqual(reported("read", path));
  expect(await failureOf(() => listFolder(folder), on("readdir"))).toEqual(reported("read the folder", folder));
  const made = join(folder, "new");
  expect(await failureOf(() => ensurePrivateFolder(made), on("mkdir"))).toEqual(reported("make the folder", made));
  expect([listFolder(folder), listFolder(made)]).toEqual([["x"], []]);
});

test("each new folder's name is on disk before the next is created, unless it need not be durable", async () => {
  const top = join(temporaryFolder(), "top");
  mkdirSync(top);
  const { calls } = await onDisk(() => makeFolders(join(top, "a", "b")));
  expect(wordsOf(calls, ["mkdir", "fsync"])).toEqual(["mkdir b", "mkdir a", "fsync top", "mkdir b", "fsync a"]);
  const unsynced = await onDisk(() => makeFolders(join(top, "c", "d"), { synced: false }));
  expect(wordsOf(unsynced.calls, ["mkdir", "fsync"])).toEqual(["mkdir d", "mkdir c", "mkdir d"]);
});

test("an existing folder is not created, whatever the system reports", async () => {
  const folder = temporaryFolder();
  const denied = ({ call }: DiskCall) => (call === "mkdir" ? diskError("EROFS", "mkdir") : undefined);
  expect(await failureOf(() => makeFolders(folder), denied)).toEqual([undefined, []]);
  const [error] = await failureOf(() => makeFolders(join(folder, "x")), denied);
  expect(error).toMatchObject({ code: "EROFS" });
});

test("a path that cannot be checked does not count as the program's own", async () => {
  const folder = temporaryFolder();
  const [one, other] = [join(folder, "one"), join(folder, "other")];
  for (const path of [one, other]) writeFileSync(path, "");
  const blind = ({ call }: DiskCall) => (call === "stat" ? diskError("EACCES", "stat") : undefined);
  expect(await failureOf(() => isAmong([one], other), blind)).toEqual([false, []]);
  expect(await failureOf(() => isAmong([one], one), blind)).toEqual([true, []]);
});
