// No export or secret may overwrite a file of the program itself, under any name.
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { isAmong } from "../../../src/disk/private-file.ts";

const folder = mkdtempSync(join(tmpdir(), "integ-own-"));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (...names: string[]): string => join(folder, ...names);

mkdirSync(at("state", "undelivered"), { recursive: true });
writeFileSync(at("state", "journal.ndjson"), "");
linkSync(at("state", "journal.ndjson"), at("hard"));
symlinkSync(at("state"), at("elsewhere"));
symlinkSync(at("state", "journal.ndjson"), at("soft"));
const own = [at("state", "journal.ndjson"), at("state", "undelivered")];

describe("a file of the program itself", () => {
  it.each([
    ["itself", "state/journal.ndjson"],
    ["a hard link to it", "hard"],
    ["a symbolic link to it", "soft"],
    ["through a linked folder", "elsewhere/journal.ndjson"],
    ["in one of its folders", "state/undelivered/x"],
    ["a copy of its damage", "state/journal.ndjson.damaged-120-abcdef"],
  ])("is recognized: %s", (_what, path) => {
    expect(isAmong(own, at(path))).toBe(true);
  });

  it.each(["state/other.ndjson", "state/journal.ndjson-copy", "journal.ndjson", "state/undelivered-no"])(
    "is not %s",
    (path) => {
      expect(isAmong(own, at(path))).toBe(false);
    },
  );
});
