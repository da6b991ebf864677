import { chmodSync, closeSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createPrivateFile,
  ensurePrivateFolder,
  openPrivateFile,
  readPrivateFile,
} from "../../../src/disk/private-file.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test("a new file is its owner's alone, whatever the umask, and never one that is there", () => {
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

test("a file that others may read is refused, as is a link", () => {
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

test("a folder is made with its parents, 0700; one that others can write to is refused", () => {
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
