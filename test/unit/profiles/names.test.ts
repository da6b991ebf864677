import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readProfileNames } from "../../../src/profiles/names.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "integ-names-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("profile names for completion", () => {
  it("are those in the file", () => {
    const prod = { name: "prod", region: "us", base_url: "https://us.example.com" };
    const file = { version: 1, default: "prod", profiles: [{ ...prod, more: 1 }] };
    writeFileSync(join(folder, "profiles.json"), JSON.stringify(file));
    expect(readProfileNames(folder)).toEqual([{ ...prod, isDefault: true }]);
  });

  it("are none without a file", () => {
    expect(readProfileNames(folder)).toEqual([]);
  });

  it.each(["", "{", "null", "[]", '{"profiles":{}}', '{"profiles":[null,1,{},{"name":"x"},{"name":2}]}'])(
    "are none for %j",
    (text) => {
      writeFileSync(join(folder, "profiles.json"), text);
      expect(readProfileNames(folder)).toEqual([]);
    },
  );
});
