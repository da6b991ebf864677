import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  createFile,
  createWhole,
  linkTarget,
  nameFile,
  removeTemporaries,
  replaceByCandidate,
  replaceFile,
} from "../../../src/disk/atomic-write.ts";
import { errorCode } from "../../../src/disk/error-words.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { diskError, onDisk, wordsOf } from "../../support/disk-calls.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test.each(["name", "content", "none"] as const)(
  "a file is created and replaced atomically (durable: %s)",
  (durable) => {
    const folder = temporaryFolder();
    const path = join(folder, "x");
    createFile(path, "old", { durable });
    expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["old", "600"]);
    expect(() => createFile(path, "new", { durable })).toThrow("EEXIST");
    replaceFile(path, Buffer.from("new"), { durable, secret: true });
    expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["new", "600"]);
    expect(readdirSync(folder)).toEqual(["x"]);
  },
);

test("a file written in pieces gets its name only when it is complete", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  const seen: string[][] = [];
  async function* pieces(): AsyncIterable<string> {
    for (const piece of ["één ", "two", ""]) {
      yield piece;
      seen.push(readdirSync(folder));
    }
  }
  await createWhole(path, pieces());
  expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["één two", "600"]);
  expect(seen).toEqual(Array.from({ length: 3 }, () => [expect.stringMatching(/^x\.new-[0-9a-f]{12}$/)]));
  expect(readdirSync(folder)).toEqual(["x"]);
});

test("a file written in pieces overwrites none, and leaves nothing if a piece is missing", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  async function* broken(): AsyncIterable<string> {
    yield "one";
    throw new Error("no second piece");
  }
  await expect(createWhole(path, broken())).rejects.toThrow("no second piece");
  expect(readdirSync(folder)).toEqual([]);
  async function* raced(): AsyncIterable<string> {
    writeFileSync(path, "another's");
    yield "one";
  }
  await expect(createWhole(path, raced())).rejects.toThrow("EEXIST");
  let isRead = false;
  async function* unread(): AsyncIterable<string> {
    isRead = true;
    yield "one";
  }
  await expect(createWhole(path, unread())).rejects.toThrow("EEXIST");
  expect([isRead, readFileSync(path, "utf8"), readdirSync(folder)]).toEqual([false, "another's", ["x"]]);
});

test("a replacement with a fixed temporary name overwrites the leftover of a killed one", () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  writeFileSync(`${path}.tmp`, "cut");
  replaceFile(path, "new", { temporary: `${path}.tmp` });
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(readdirSync(folder)).toEqual(["x"]);
});

test("leftovers of killed replacements are removed, and nothing else", () => {
  const folder = temporaryFolder();
  for (const name of ["x", "x.new-0123456789ab", "x.news", "y.new-0123456789ab"]) writeFileSync(join(folder, name), "");
  removeTemporaries(join(folder, "x"));
  expect(readdirSync(folder).sort()).toEqual(["x", "x.news", "y.new-0123456789ab"]);
});

test("a failed replacement leaves the old file and no other", (context) => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "x"));
  expect(() => replaceFile(join(folder, "x"), "new")).toThrow();
  expect(readdirSync(folder)).toEqual(["x"]);
  const disk = mountSmallDisk(64, context);
  const path = join(disk, "x");
  replaceFile(path, "old");
  fillDisk(disk, 4096);
  expect(() => replaceFile(path, "n".repeat(9000))).toThrow("ENOSPC");
  expect(readFileSync(path, "utf8")).toBe("old");
  expect(readdirSync(disk).sort()).toEqual(["filling", "x"]);
});

const candidates: readonly (readonly [string, string, string | undefined])[] = [
  ["whole", "the new text", "the new text"],
  ["truncated by a full disk, and reported as written", "the ne", "the new text"],
  ["another text", "the old text", undefined],
  ["longer", "the new text!", undefined],
];

test.each(candidates)("a temporary file that a library wrote: %s", (_, written, after) => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  writeFileSync(path, "before");
  writeFileSync(`${path}.new-0123456789ab`, "of a killed process");
  const replace = (): void =>
    replaceByCandidate(path, (candidate) => {
      writeFileSync(candidate, written, { mode: 0o600 });
      return "the new text";
    });
  if (after === undefined) expect(replace).toThrow("EIO");
  else replace();
  expect(readFileSync(path, "utf8")).toBe(after ?? "before");
  expect(readdirSync(folder)).toEqual(["x"]);
});

test("the target of a link is resolved, so that the link stays", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "real"), "");
  chmodSync(join(folder, "real"), 0o600);
  symlinkSync(join(folder, "real"), join(folder, "link"));
  expect(linkTarget(join(folder, "link"))).toBe(join(folder, "real"));
  expect(linkTarget(join(folder, "none"))).toBe(join(folder, "none"));
});

const small = Buffer.from("new");
async function* texts(): AsyncIterable<string> {
  yield "n";
  yield "ew";
}
const cut = join(mkdtempSync(join(tmpdir(), "integ-test-")), "cut");
writeFileSync(cut, "n", { mode: 0o600 });
afterAll(() => rmSync(dirname(cut), { recursive: true }));
const candidate = (path: string): void =>
  replaceByCandidate(path, (file) => {
    copyFileSync(cut, file);
    return "new";
  });

/** For each way to write `x`, its calls that matter in a power cut, in order. */
const ways: readonly (readonly [string, (path: string) => unknown, readonly string[]])[] = [
  ["created", (path) => createFile(path, small), ["write x", "fsync x", "fsync folder"]],
  ["created, its content only", (path) => createFile(path, "new", { durable: "content" }), ["write x", "fsync x"]],
  ["created, not durable", (path) => createFile(path, "new", { durable: "none" }), ["write x"]],
  [
    "created with a secret",
    (path) => createFile(path, "new", { secret: true }),
    ["fchmod x", "write x", "fsync x", "fsync folder"],
  ],
  [
    "replaced",
    (path) => replaceFile(path, "new"),
    ["write x.new-*", "fsync x.new-*", "rename x.new-*", "fsync folder"],
  ],
  [
    "replaced, its content only",
    (path) => replaceFile(path, "new", { durable: "content" }),
    ["write x.new-*", "fsync x.new-*", "rename x.new-*"],
  ],
  [
    "replaced, not durable",
    (path) => replaceFile(path, "new", { durable: "none" }),
    ["write x.new-*", "rename x.new-*"],
  ],
  [
    "replaced with a secret",
    (path) => replaceFile(path, "new", { secret: true }),
    ["fchmod x.new-*", "write x.new-*", "fsync x.new-*", "rename x.new-*", "fsync folder"],
  ],
  [
    "replaced by a fixed name",
    (path) => replaceFile(path, "new", { temporary: `${path}.new-1` }),
    ["write x.new-1", "fsync x.new-1", "rename x.new-1", "fsync folder"],
  ],
  ["replaced by a candidate", candidate, ["write x.new-*", "fsync x.new-*", "rename x.new-*", "fsync folder"]],
  [
    "created from an endless text",
    (path) => createWhole(path, texts()),
    ["write x.new-*", "write x.new-*", "fsync x.new-*", "link x.new-*", "unlink x.new-*", "fsync folder"],
  ],
];
const changing = ["write", "fsync", "rename", "link", "unlink", "fchmod"];

describe.each(ways)("writing a file that is %s", (what, write, expected) => {
  const isCreated = what.startsWith("created");
  const prepare = (): { path: string; folder: string } => {
    const folder = join(temporaryFolder(), "folder");
    mkdirSync(folder);
    if (!isCreated) writeFileSync(join(folder, "x"), "old", { mode: 0o600 });
    return { folder, path: join(folder, "x") };
  };

  test("makes it as durable as promised", async () => {
    const { folder, path } = prepare();
    const { calls, error, open } = await onDisk(() => write(path));
    expect([error, open, wordsOf(calls, changing)]).toEqual([undefined, [], expected]);
    expect([readFileSync(path, "utf8"), mode(path), readdirSync(folder)]).toEqual(["new", "600", ["x"]]);
  });

  test("leaves the old or the complete new file and nothing else, whichever call fails", async () => {
    const { path: first } = prepare();
    const { calls } = await onDisk(() => write(first));
    for (const [number, { call, file }] of calls.entries()) {
      const { folder, path } = prepare();
      const { error, open } = await onDisk(
        () => write(path),
        (_, at) => (at === number ? diskError("EIO", call) : undefined),
      );
      const left = readdirSync(folder);
      const words = `${call} ${file}`;
      expect([words, open, call === "close" || errorCode(error)]).toEqual([words, [], call === "close" || "EIO"]);
      if (call !== "unlink" && call !== "close")
        expect([words, left]).toEqual([words, left.includes("x") ? ["x"] : []]);
      const content = left.includes("x") ? readFileSync(path, "utf8") : "";
      expect([words, isCreated ? ["", "new"] : ["old", "new"]]).toEqual([words, expect.arrayContaining([content])]);
    }
  });
});

test("without hard links uses a name that was free, and no other", async () => {
  const folder = temporaryFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  const name = (code: string) =>
    onDisk(
      () => nameFile(from, to, { replace: false }),
      ({ call }) => (call === "link" ? diskError(code, "link") : undefined),
    );
  writeFileSync(from, "new");
  expect(errorCode((await name("EACCES")).error)).toBe("EACCES");
  expect((await name("EPERM")).error).toBeUndefined();
  expect([readFileSync(to, "utf8"), readdirSync(folder)]).toEqual(["new", ["to"]]);
  writeFileSync(from, "newer");
  expect((await name("EPERM")).error).toMatchObject({ code: "EEXIST", syscall: "link" });
  expect([readFileSync(to, "utf8"), readFileSync(from, "utf8")]).toEqual(["new", "newer"]);
  nameFile(from, to, { replace: true });
  expect([readFileSync(to, "utf8"), readdirSync(folder)]).toEqual(["newer", ["to"]]);
});

test("a link that cannot be followed is an error, not the file itself", () => {
  const path = join(temporaryFolder(), "x");
  symlinkSync(path, path);
  expect(() => linkTarget(path)).toThrow("ELOOP");
});
