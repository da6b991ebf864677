import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createFile,
  createWhole,
  linkTarget,
  removeTemporaries,
  replaceByCandidate,
  replaceFile,
} from "../../../src/disk/atomic-write.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test.each(["name", "content", "none"] as const)("a file is created and replaced whole (durable: %s)", (durable) => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  createFile(path, "old", { durable });
  expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["old", "600"]);
  expect(() => createFile(path, "new", { durable })).toThrow("EEXIST");
  replaceFile(path, Buffer.from("new"), { durable, secret: true });
  expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["new", "600"]);
  expect(readdirSync(folder)).toEqual(["x"]);
});

test("a file of many pieces has its name once it is whole", async () => {
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

test("a file of many pieces replaces none, and leaves nothing if a piece is missing", async () => {
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
  let isAsked = false;
  async function* unasked(): AsyncIterable<string> {
    isAsked = true;
    yield "one";
  }
  await expect(createWhole(path, unasked())).rejects.toThrow("EEXIST");
  expect([isAsked, readFileSync(path, "utf8"), readdirSync(folder)]).toEqual([false, "another's", ["x"]]);
});

test("a replacement whose temporary name is fixed takes the place of what a killed one left", () => {
  const folder = temporaryFolder();
  const path = join(folder, "x");
  writeFileSync(`${path}.tmp`, "cut");
  replaceFile(path, "new", { temporary: `${path}.tmp` });
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(readdirSync(folder)).toEqual(["x"]);
});

test("what killed replacements left is removed, and nothing else", () => {
  const folder = temporaryFolder();
  for (const name of ["x", "x.new-0123456789ab", "x.news", "y.new-0123456789ab"]) writeFileSync(join(folder, name), "");
  removeTemporaries(join(folder, "x"));
  expect(readdirSync(folder).sort()).toEqual(["x", "x.news", "y.new-0123456789ab"]);
});

test("a replacement that fails leaves the old file and nothing beside it", (context) => {
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
  ["cut by a full disk, and called written", "the ne", "the new text"],
  ["another text", "the old text", undefined],
  ["longer", "the new text!", undefined],
];

test.each(candidates)("a candidate that a library wrote: %s", (_, written, after) => {
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

test("the file behind a link is named, so that the link stays", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "real"), "");
  chmodSync(join(folder, "real"), 0o600);
  symlinkSync(join(folder, "real"), join(folder, "link"));
  expect(linkTarget(join(folder, "link"))).toBe(join(folder, "real"));
  expect(linkTarget(join(folder, "none"))).toBe(join(folder, "none"));
});
