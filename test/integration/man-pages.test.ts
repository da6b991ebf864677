import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { surfaceOf } from "../../src/commands/commands/list.ts";
import { manPages } from "../../scripts/docs/man.ts";
import type { Surface } from "../../src/completion/surface.ts";
import { wholeTree } from "../../src/program.ts";
import { isMissing } from "../support/tools.mjs";

let surface: Surface;
beforeAll(async () => {
  surface = await surfaceOf(wholeTree);
});

const linters: Readonly<Record<string, readonly string[]>> = {
  mandoc: ["mandoc", "-T", "lint", "-W", "style"],
  man: ["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"],
};

describe.each(Object.entries(linters))("the man pages, checked by %s", (name, [program = "", ...words]) => {
  it.skipIf(isMissing(name))("have no errors", () => {
    const folder = mkdtempSync(join(tmpdir(), "integ-man-"));
    try {
      const pages = manPages(surface);
      for (const { file, text } of pages) writeFileSync(join(folder, file), text);
      const files = pages.map(({ file }) => file);
      const { stdout, stderr, status } = spawnSync(program, [...words, ...files], { cwd: folder, encoding: "utf8" });
      expect([status, name === "mandoc" ? `${stdout}${stderr}` : stderr]).toEqual([0, ""]);
      // groff prints `x init` once per page, which shows that man has read all pages.
      if (name === "man") expect(stdout.match(/^x init$/gm)).toHaveLength(files.length);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.skipIf(isMissing(name))("are reported if they have an error", () => {
    const folder = mkdtempSync(join(tmpdir(), "integ-man-"));
    try {
      writeFileSync(join(folder, "bad.1"), ".TH BAD 1 2026-07-01 integ\n.SH NAME\nbad \\- \\fZx\n.NOSUCH\n.SH\n");
      const { stdout, stderr } = spawnSync(program, [...words, "bad.1"], { cwd: folder, encoding: "utf8" });
      expect(name === "mandoc" ? `${stdout}${stderr}` : stderr).not.toBe("");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a displayed man page", () => {
  it.skipIf(isMissing("mandoc"))("shows commands that can be copied unchanged", () => {
    const page = manPages(surface).find(({ file }) => file === "integ-oauth-clients-create.1")!;
    const read = execFileSync("mandoc", ["-T", "utf8", "-O", "width=200"], { input: page.text, encoding: "utf8" });
    const plain = read.replaceAll(/.\x08/gu, "");
    expect(plain).toContain(
      "integ oauth-clients create --service-account sa_1 --scope entity:read --secret-command 'vault kv put secret/ci value=-'",
    );
    expect(plain).toContain("--secret-format <format>");
  });
});
