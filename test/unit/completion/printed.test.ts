import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { surfaceOf } from "../../../src/commands/commands/list.ts";
import { manPages } from "../../../scripts/docs/man.ts";
import { referenceText } from "../../../scripts/docs/reference.ts";
import { skillText } from "../../../scripts/docs/skill.ts";
import { scripts, shells } from "../../../src/completion/scripts.ts";
import type { Surface } from "../../../src/completion/surface.ts";
import { wholeTree } from "../../../src/program.ts";
import { root } from "../../support/program.ts";

let surface: Surface;
beforeAll(async () => {
  surface = await surfaceOf(wholeTree);
});

describe("completions/", () => {
  const files = { bash: "integ.bash", zsh: "_integ", fish: "integ.fish", powershell: "integ.ps1" } as const;
  it.each(shells)("of %s is up to date", async (shell) => {
    await expect(scripts[shell]).toMatchFileSnapshot(join(root, "completions", files[shell]));
  });
});

describe("docs/", () => {
  it("commands.md is up to date", async () => {
    await expect(referenceText(surface)).toMatchFileSnapshot(join(root, "docs", "commands.md"));
  });

  it("agents/SKILL.md is up to date, and short", async () => {
    const text = skillText(surface);
    await expect(text).toMatchFileSnapshot(join(root, "docs", "agents", "SKILL.md"));
    // A token has about four characters.
    expect(text.length).toBeLessThan(4 * 5000);
  });

  it("man/ is up to date", async () => {
    for (const { file, text } of manPages(surface))
      await expect(text).toMatchFileSnapshot(join(root, "docs", "man", file));
  });

  it("man/ has no page of a removed command", () => {
    const pages = manPages(surface).map(({ file }) => file);
    expect(readdirSync(join(root, "docs", "man")).filter((file) => !pages.includes(file))).toEqual([]);
  });
});
