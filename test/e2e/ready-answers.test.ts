// What is answered before anything is loaded says exactly what the program itself would say.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { helpTopics } from "../../src/completion/help-topics.ts";
import { nodesBelow, treeOf } from "../../src/completion/tree.ts";
import { readCommandLine } from "../../src/edge/run.ts";
import { readyAnswer, type ReadyHelp, readyHelpFile } from "../../src/edge/ready.ts";
import { wholeTree } from "../../src/program.ts";
import { Home, root } from "../support/program.ts";

const at = new Home();
afterAll(() => at.remove());

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

async function liveHelp(words: readonly string[], width = 80): Promise<string> {
  const found = await readCommandLine(words, { width, version });
  if (!("help" in found)) throw new Error("no help screen");
  return `${found.help.trimEnd()}\n`;
}

async function paths(): Promise<string[][]> {
  const { root: tree, verbOf } = await wholeTree();
  return [...nodesBelow(treeOf(tree, verbOf).root)].map(({ path }) => [...path]);
}

describe("answers that are ready", () => {
  it.each([80, 100])("at %i columns are the help screens of every command and topic", async (width) => {
    const ready = JSON.parse(readFileSync(join(root, "dist", readyHelpFile(width)), "utf8")) as ReadyHelp;
    const live: ReadyHelp = { commands: {}, topics: {} };
    for (const path of await paths())
      Object.assign(live.commands, { [path.join(" ")]: await liveHelp([...path, "--help"], width) });
    for (const topic of Object.keys(helpTopics))
      Object.assign(live.topics, { [topic]: await liveHelp(["help", topic], width) });
    expect(ready).toEqual(live);
  });

  it.each([
    ["", ["--help"]],
    ["--help", ["--help"]],
    ["-h", ["--help"]],
    ["help", ["--help"]],
    ["help keys create", ["keys", "create", "--help"]],
    ["keys create -h", ["keys", "create", "--help"]],
    ["help journal", ["journal", "--help"]],
    ["help exit-codes", ["help", "exit-codes"]],
  ])("integ %s prints one", async (line, live) => {
    const words = line.split(" ").filter(Boolean);
    const process = { argv: ["node", "integ", ...words], stdout: {}, stderr: {} } as unknown as NodeJS.Process;
    expect(readyAnswer(process, join(root, "dist"))).toBe(await liveHelp(live));
    const { code, stdout, stderr } = await at.integ(words);
    expect([code, stdout, stderr]).toEqual([0, await liveHelp(live), ""]);
  });

  it.each(["states --help", "help whoami", "help constructor", "help keys create --help", "keys", "--version --help"])(
    "there is none for integ %s",
    (line) => {
      const process = { argv: ["node", "integ", ...line.split(" ")], stdout: {}, stderr: {} };
      expect(readyAnswer(process as unknown as NodeJS.Process, join(root, "dist"))).toBeUndefined();
    },
  );

  const full = existsSync("/dev/full");
  if (!full) console.warn("skipped: answers on a full disk: there is no /dev/full");
  it.runIf(full).each(["--help", "--version"])("a full disk under integ %s is told", async (word) => {
    const { code, stderr } = await at.integ([word], { under: ["sh", "-c", 'exec "$@" >/dev/full', "sh"] });
    expect([code, stderr]).toEqual([1, expect.stringContaining("Cannot write to standard output")]);
  });

  it.each(["--help", "--version"])("a reader that is gone under integ %s is no failure", async (word) => {
    const { code, stderr } = await at.integ([word], {
      under: ["bash", "-c", '"$@" | true; echo "${PIPESTATUS[0]}" >&2', "bash"],
    });
    expect([code, stderr]).toEqual([0, "0\n"]);
  });
});
