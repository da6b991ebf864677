// Space on the disk for a secret that does not exist yet: which file it is, what is in it, and how it gets its name.
import {
  closeSync,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  contentOf,
  fillReserve,
  identityOf,
  isCut,
  isSameFile,
  putInPlace,
  reservedName,
  reserveFile,
  wipe,
} from "../../../src/secrets/delivered-secret.ts";

const size = 32 * 1024;
let root: string;
let folder: string;
let path: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "integ-reserve-"));
});
beforeEach(() => {
  folder = mkdtempSync(join(root, "one-"));
  path = join(folder, "reserve");
});
afterAll(() => rmSync(root, { recursive: true }));

function withFile<T>(work: (fd: number) => T, file = path): T {
  const fd = openSync(file, "r+");
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}

const allow = (): void => {};

describe("a reserve", () => {
  it("is zeros that stand on the disk, and of its owner alone", async () => {
    const fd = await reserveFile(path, () => {
      throw new Error("nothing was there");
    });
    closeSync(fd);
    expect(readFileSync(path).equals(Buffer.alloc(size))).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("that an earlier process left is shown before it is blanked", async () => {
    for (const [text, shown, cut] of [
      ["half a secret", "half a secret", true],
      ["", "", true],
      ["\0".repeat(size), "", false],
      [`s${"\0".repeat(size - 1)}`, "s", false],
    ] as const) {
      writeFileSync(path, text, { mode: 0o600 });
      const seen: unknown[] = [];
      closeSync(await reserveFile(path, (...given) => void seen.push(given)));
      expect(seen).toEqual([[shown, cut]]);
      expect(readFileSync(path).equals(Buffer.alloc(size))).toBe(true);
    }
  });

  it("is cut to its length, if something longer was there", async () => {
    writeFileSync(path, "x".repeat(3 * size), { mode: 0o600 });
    closeSync(await reserveFile(path, allow));
    expect(statSync(path).size).toBe(size);
  });

  it("that may not be blanked stays as it is", async () => {
    writeFileSync(path, "a whole secret", { mode: 0o600 });
    const refuse = (): never => {
      throw new Error("it is whole");
    };
    await expect(reserveFile(path, refuse)).rejects.toThrow("it is whole");
    expect(readFileSync(path, "utf8")).toBe("a whole secret");
  });

  it("with a second name is the finished file, and refused", async () => {
    writeFileSync(path, "finished", { mode: 0o600 });
    linkSync(path, join(folder, "finished"));
    await expect(reserveFile(path, allow)).rejects.toMatchObject({ code: "EEXIST", syscall: "open" });
    expect(readFileSync(path, "utf8")).toBe("finished");
  });

  it("cannot be where something else is, or where no folder is", async () => {
    await expect(reserveFile(join(folder, "none", "reserve"), allow)).rejects.toMatchObject({ code: "ENOENT" });
    symlinkSync(join(folder, "elsewhere"), path);
    await expect(reserveFile(path, allow)).rejects.toBeInstanceOf(Error);
    expect(existsSync(join(folder, "elsewhere"))).toBe(false);
  });
});

describe("the name of a reserve", () => {
  it.each([
    ["/a/b.key", "6k2f9", "/a/.b.key.integ-6k2f9"],
    ["/a/b", "a/b c:d.e-f", "/a/.b.integ-a_b_c_d.e-f"],
    [`/a/${"x".repeat(250)}`, "w", `/a/.${"x".repeat(180)}.integ-w`],
    [`/a/${"x".repeat(179)}é`, "w", `/a/.${"x".repeat(179)}_.integ-w`],
    [`/a/${"x".repeat(178)}é`, "w", `/a/.${"x".repeat(178)}é.integ-w`],
  ])("of %s for %s", (file, work, name) => {
    expect(reservedName(file, work)).toBe(name);
  });
});

describe("what is in a file", () => {
  it.each([
    ["", "", 0],
    ["\0\0", "", 2],
    ["a\0", "a", 2],
    ["a\0b\0\0", "a\0b", 5],
    // A zero in the middle, with text behind it.
    ["a\0\0b", "a\0\0b", 4],
    [`${"\0".repeat(20_000)}b${"\0".repeat(12_767)}`, `${"\0".repeat(20_000)}b`, 32_768],
    ["é", "é", 2],
    ["x".repeat(100_000), "x".repeat(100_000), 100_000],
  ])("is read without the zeros after it", (bytes, text, length) => {
    writeFileSync(path, bytes);
    expect(withFile((fd) => [contentOf(fd), fstatSync(fd).size])).toEqual([text, length]);
  });

  it("is known to be whole by its length", async () => {
    closeSync(await reserveFile(path, allow));
    expect(withFile(isCut)).toBe(false);
    withFile((fd) => fillReserve(fd, "the secret"));
    expect([withFile(isCut), readFileSync(path, "utf8")]).toEqual([true, "the secret"]);
    withFile((fd) => fillReserve(fd, "x".repeat(size)));
    expect(withFile(isCut)).toBe(false);
    truncateSync(path, size + 1);
    expect(withFile(isCut)).toBe(true);
  });

  it("is zeros once it is wiped, as long as it was", () => {
    writeFileSync(path, "the secret");
    withFile(wipe);
    expect(readFileSync(path)).toEqual(Buffer.alloc(10));
  });
});

describe("a file is the same", () => {
  it("under any name, and no other is", () => {
    writeFileSync(path, "1");
    const other = join(folder, "other");
    writeFileSync(other, "2");
    const identity = withFile(identityOf);
    expect(identity).toMatchObject({ device: String(statSync(path).dev), inode: String(statSync(path).ino) });
    expect([isSameFile(path, identity), isSameFile(other, identity)]).toEqual([true, false]);
    renameSync(path, join(folder, "moved"));
    expect([isSameFile(path, identity), isSameFile(join(folder, "moved"), identity)]).toEqual([false, true]);
    symlinkSync(join(folder, "moved"), path);
    expect(isSameFile(path, identity)).toBe(false);
  });

  it.each([
    ["device", { device: "0" }],
    ["inode", { inode: "0" }],
    ["birth", { born: "1" }],
  ])("only with the same %s", (_what, change) => {
    writeFileSync(path, "1");
    const identity = withFile(identityOf);
    expect(isSameFile(path, { ...identity, ...change })).toBe(false);
    expect(isSameFile(path, { ...identity, born: undefined })).toBe(true);
    expect(isSameFile(path, {})).toBe(false);
  });

  it("if its time of birth is one: before its last change", async () => {
    writeFileSync(path, "1");
    await new Promise((done) => setTimeout(done, 15));
    writeFileSync(path, "2");
    const { birthtimeNs, ctimeNs } = statSync(path, { bigint: true });
    const expected = birthtimeNs > 0n && birthtimeNs < ctimeNs ? String(birthtimeNs) : undefined;
    expect(withFile(identityOf).born).toBe(expected);
    expect(isSameFile(path, withFile(identityOf))).toBe(true);
  });
});

describe("a reserve gets its name", () => {
  const place = (force: boolean): Promise<Error | undefined> =>
    putInPlace(path, join(folder, "named"), force ? { is: "text", text: "before" } : { is: "absent" });

  it.each([true, false])("and loses the one that it had (over another file: %s)", async (force) => {
    writeFileSync(path, "the secret");
    expect(await place(force)).toBeUndefined();
    expect([existsSync(path), readFileSync(join(folder, "named"), "utf8")]).toEqual([false, "the secret"]);
    expect(lstatSync(join(folder, "named")).nlink).toBe(1);
  });

  it("over another file only if that is asked for", async () => {
    writeFileSync(join(folder, "named"), "theirs");
    writeFileSync(path, "the secret");
    await expect(place(false)).rejects.toMatchObject({ code: "EEXIST" });
    expect([readFileSync(path, "utf8"), readFileSync(join(folder, "named"), "utf8")]).toEqual(["the secret", "theirs"]);
    expect(await place(true)).toBeUndefined();
    expect(readFileSync(join(folder, "named"), "utf8")).toBe("the secret");
  });
});
