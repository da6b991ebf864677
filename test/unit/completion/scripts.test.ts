// The scripts hold words of people, and shells read them: whatever stands in a summary is shown, never run.
import { Command } from "commander";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bashScript } from "../../../src/completion/bash.ts";
import { fishScript } from "../../../src/completion/fish.ts";
import { manPages } from "../../../src/completion/man.ts";
import { powershellScript } from "../../../src/completion/powershell.ts";
import { treeOf } from "../../../src/completion/tree.ts";
import { zshScript } from "../../../src/completion/zsh.ts";

/** Everything that some shell would act upon between some kind of quotes. */
const nasty = `it's "so" $(touch ran) \`touch ran\` $HOME ; touch ran | {a,b} [c] <d> *?~#! %s \\n \\' & ’‘ – done\\`;

function nastyTree(): ReturnType<typeof treeOf> {
  const root = new Command("integ").description(nasty).option("-x, --extra <nasty>", nasty);
  const noun = root.command("nouns").alias("noun").description(nasty);
  noun.command("do").description(nasty).argument("<path>", nasty).option("--flag <what>", nasty).option("--on", nasty);
  return treeOf(root, () => ({ examples: [] }));
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "integ-scripts-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function has(program: string): boolean {
  const found = spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;
  if (!found) console.warn(`skipped: scripts of ${program}: it is not installed`);
  return found;
}

function run(program: string, words: readonly string[]): string {
  const env = { PATH: process.env.PATH ?? "", HOME: folder, LANG: "C.UTF-8" };
  const { stdout, stderr, status } = spawnSync(program, words, { cwd: folder, encoding: "utf8", env });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  expect(existsSync(join(folder, "ran"))).toBe(false);
  return stdout;
}

function scriptFile(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

describe("summaries in a script", () => {
  it.skipIf(!has("bash"))("are not in bash's, and it is sound", () => {
    const file = scriptFile("integ.bash", bashScript(nastyTree()));
    run("bash", ["--norc", "-n", file]);
    expect(run("bash", ["--norc", "-c", `. '${file}'; _integ_children integ; printf %s "$children"`])).toBe(
      "nouns|noun help",
    );
  });

  it.skipIf(!has("zsh"))("are shown by zsh as they are", () => {
    const file = scriptFile("_integ", zshScript(nastyTree()));
    run("zsh", ["-f", "-n", file]);
    const show =
      "compdef() { }; . ./_integ; _integ_children integ; print -rl -- $children $others; _integ_flags 'integ nouns do'; print -rl -- $flags";
    expect(run("zsh", ["-f", "-c", show]).split("\n").slice(0, -1)).toEqual([
      `nouns:${nasty}`,
      "help:help of a command",
      `noun:${nasty}`,
      `--flag:${nasty}`,
      `--on:${nasty}`,
    ]);
  });

  it.skipIf(!has("fish"))("are shown by fish as they are", () => {
    const file = scriptFile("integ.fish", fishScript(nastyTree()));
    run("fish", ["--no-config", "-n", file]);
    expect(run("fish", ["--no-config", "-c", `source '${file}'; complete -C 'integ nouns do --o'`])).toBe(
      `--on\t${nasty}\n`,
    );
    expect(run("fish", ["--no-config", "-c", `source '${file}'; complete -C 'integ noun'`])).toBe(`nouns\t${nasty}\n`);
  });

  it("stand in PowerShell's between single quotes, every kind of which is doubled", () => {
    const script = powershellScript(nastyTree());
    const line = script.split("\n").find((one) => one.trim().startsWith("'--on "))!;
    expect(line.trim()).toBe(`'--on ${nasty.replaceAll(/['’‘]/g, "$&$&")}'`);
  });
});

describe("summaries in a man page", () => {
  const pages = (): ReturnType<typeof manPages> => manPages({ tree: nastyTree(), environment: [], exitCodes: [] });

  it.skipIf(!has("mandoc"))("are read as they are", () => {
    for (const { file, text } of pages()) {
      scriptFile(file, text);
      run("mandoc", ["-T", "lint", "-W", "style", file]);
      const read = run("mandoc", ["-T", "utf8", "-O", "width=1000", file]).replaceAll(/.\x08/gu, "");
      expect(read.split("\n").filter((line) => line.includes(nasty.replaceAll("`", ""))).length).toBeGreaterThan(1);
    }
  });

  it("begin no line with what roff takes for a request", () => {
    const dots = `${".so ".repeat(60)}${"'so ".repeat(60)}`;
    const root = new Command("integ").description(dots);
    const lines = manPages({ tree: treeOf(root, () => undefined), environment: [], exitCodes: [] })[0]!.text.split(
      "\n",
    );
    expect(lines.filter((line) => /^['.](?!\\"|TH|SH|PP|TP|BR)/.test(line))).toEqual([]);
    expect(lines.some((line) => line.startsWith("\\&.so"))).toBe(true);
  });
});

describe("every script", () => {
  const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript, powershell: powershellScript };
  it.each(Object.entries(scripts))("of %s is plain text", (_shell, scriptOf) => {
    const script = scriptOf(nastyTree());
    expect(script.replaceAll(/[\n\t]/g, "")).not.toMatch(/\p{Cc}/u);
    expect(script.endsWith("\n")).toBe(true);
  });
});
