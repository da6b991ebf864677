// What is answered before anything is loaded says exactly what the program itself would say.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readCommandLine } from "../../src/edge/command-line.ts";
import { readyHelpFile } from "../../src/edge/ready-answer.ts";
import { Home, root } from "../support/program.ts";

const at = new Home();
afterAll(() => at.remove());

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

async function liveHelp(width: number): Promise<string> {
  const found = await readCommandLine(["--help"], { width, version });
  if (!("help" in found)) throw new Error("no help screen");
  return `${found.help.trimEnd()}\n`;
}

describe("answers that are ready", () => {
  it.each([80, 100])("the first help screen at %i columns is the command tree's", async (width) => {
    expect(readFileSync(join(root, "dist", readyHelpFile(width)), "utf8")).toBe(await liveHelp(width));
  });

  it.each([["--help"], ["-h"], ["help"]])("integ %s prints it", async (word) => {
    const { code, stdout, stderr } = await at.integ([word]);
    expect([code, stdout, stderr]).toEqual([0, await liveHelp(80), ""]);
  });

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
