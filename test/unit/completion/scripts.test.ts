// Shells interpret words of users and of the service, so every completion must be shown and never run.
import { Command } from "commander";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { manPages } from "../../../scripts/docs/man.ts";
import { scripts, shells } from "../../../src/completion/scripts.ts";
import { treeOf } from "../../../src/completion/tree.ts";
import { wholeTree } from "../../../src/program.ts";
import { isMissing } from "../../support/tools.mjs";

const quotes = "\u2019\u2018";
const nasty = `it's "so" $(touch ran) \`touch ran\` $HOME ; touch ran | {a,b} [c] <d> *?~#! %s \\n \\' & ${quotes} – done\\`;

function hostileTree(): ReturnType<typeof treeOf> {
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

function run(program: string, words: readonly string[]): string {
  const env = { PATH: `${folder}:${process.env.PATH ?? ""}`, HOME: folder, LANG: "C.UTF-8" };
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

function installProgram(kind: string): void {
  const answer = scriptFile("answer", `${kind} \n--plain\t${nasty}\n--${nasty}\n`);
  writeFileSync(join(folder, "integ"), `#!/bin/sh\nexec cat '${answer}'\n`, { mode: 0o755 });
}

describe("a completion", () => {
  beforeAll(() => installProgram("options"));

  it.skipIf(isMissing("bash"))("is quoted by bash, and the script is valid", () => {
    const file = scriptFile("integ.bash", scripts.bash);
    run("bash", ["--norc", "-n", file]);
    const ask = `. '${file}'; COMP_LINE='integ --' COMP_POINT=8 COMP_CWORD=1 COMP_WORDS=(integ --); _integ; eval "printf '%s\n' \${COMPREPLY[*]}"`;
    expect(run("bash", ["--norc", "-c", ask])).toBe(`--plain\n--${nasty}\n`);
  });

  it.skipIf(isMissing("zsh"))("is shown unchanged by zsh", () => {
    const file = scriptFile("_integ", scripts.zsh);
    run("zsh", ["-f", "-n", file]);
    const show =
      "compdef() { }; _describe() { print -rl -- $found }; . ./_integ; words=(integ --) CURRENT=2 PREFIX=--; _integ";
    expect(run("zsh", ["-f", "-c", show])).toBe(`--plain:${nasty}\n--${nasty}\n`);
  });

  it.skipIf(isMissing("fish"))("is shown unchanged by fish", () => {
    const file = scriptFile("integ.fish", scripts.fish);
    run("fish", ["--no-config", "-n", file]);
    expect(run("fish", ["--no-config", "-c", `source '${file}'; complete -C 'integ nouns do --p'`])).toBe(
      `--plain\t${nasty}\n`,
    );
  });
});

describe("summaries in man pages", () => {
  const pages = (): ReturnType<typeof manPages> => manPages({ tree: hostileTree(), environment: [], exitCodes: [] });

  it.skipIf(isMissing("mandoc"))("are shown unchanged", () => {
    for (const { file, text } of pages()) {
      scriptFile(file, text);
      run("mandoc", ["-T", "lint", "-W", "style", file]);
      const read = run("mandoc", ["-T", "utf8", "-O", "width=1000", file]).replaceAll(/.\x08/gu, "");
      expect(read.split("\n").filter((line) => line.includes(nasty.replaceAll("`", ""))).length).toBeGreaterThan(1);
    }
  });

  it("never start a line with a roff request", () => {
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
  it.each(shells)("of %s runs the program once for each Tab, and contains no command", async (shell) => {
    const { root } = treeOf((await wholeTree()).root, () => undefined);
    const text = scripts[shell];
    expect(text.match(/__complete \S+ ":\$\w+" 2>/g)).toHaveLength(1);
    const named = root.nodes.map(({ path }) => path.at(-1)!).filter((name) => new RegExp(`\\b${name}\\b`).test(text));
    // `completion` and `commands` are also words of the shells themselves.
    expect(named.filter((name) => !["completion", "commands"].includes(name))).toEqual([]);
  });

  it.each(shells)("of %s is plain text", (shell) => {
    expect(scripts[shell].replaceAll(/[\n\t]/g, "")).not.toMatch(/\p{Cc}/u);
    expect(scripts[shell].endsWith("\n")).toBe(true);
  });
});
