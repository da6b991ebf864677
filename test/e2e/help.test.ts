import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { homeOfFile } from "../support/service.ts";

const home = homeOfFile();

const widestOf = (text: string): number => Math.max(...text.split("\n").map((line) => line.length));

describe("help", () => {
  it.each([
    [50, 50],
    [72, 72],
    [100, 100],
    [200, 100],
  ])("on a terminal of %i columns has lines of at most %i", async (columns, most) => {
    const { code, stdout } = await home.integ(["keys", "create", "--help"], { columns });
    expect(code).toBe(0);
    // Examples are never wrapped, so their width is not checked.
    const wrapped = stdout.slice(0, stdout.indexOf("\nExamples:"));
    expect(widestOf(wrapped)).toBeLessThanOrEqual(most);
    expect(widestOf(wrapped)).toBeGreaterThan(most - 12);
  });

  it("has lines of at most 80 columns if its output is not a terminal", async () => {
    const { stdout } = await home.integ(["help", "output"]);
    expect([widestOf(stdout) <= 80, widestOf(stdout) > 70]).toEqual([true, true]);
  });

  it("on secrets shows the address forms of stores", async () => {
    const { stdout } = await home.integ(["help", "secrets"]);
    for (const part of ["github:<owner>/<repo>", "github:org/<organization>#<NAME>", "?visibility=all"])
      expect(stdout).toContain(part);
  });

  it.each([
    ["", "--help"],
    ["-h", "--help"],
    ["help", "--help"],
    ["help keys create", "keys create --help"],
    ["keys create -h", "keys create --help"],
    ["help journal", "journal --help"],
  ])("of integ %s is the same as of integ %s", async (line, same) => {
    const [one, other] = [line, same].map((words) => home.integ(words.split(" ").filter(Boolean)));
    expect(await one).toEqual(await other);
    expect(await one).toMatchObject({ code: 0, stdout: expect.stringContaining("Usage: integ"), stderr: "" });
  });

  it("of a noun without its verb is an error, with the same help", async () => {
    const { stdout } = await home.integ(["journal", "--help"]);
    expect(await home.integ(["journal"])).toMatchObject({ code: 2, stdout: "", stderr: stdout });
  });
});

describe.each(["--help", "--version"])("integ %s", (word) => {
  const full = existsSync("/dev/full");
  if (!full) console.warn("skipped: answers on a full disk: there is no /dev/full");
  it.runIf(full)("reports a full disk", async () => {
    const { code, stderr } = await home.integ([word], { under: ["sh", "-c", 'exec "$@" >/dev/full', "sh"] });
    expect([code, stderr]).toEqual([1, expect.stringContaining("Cannot write to standard output")]);
  });

  it("does not fail if its reader has exited", async () => {
    const { code, stderr } = await home.integ([word], {
      under: ["bash", "-c", '"$@" | true; echo "${PIPESTATUS[0]}" >&2', "bash"],
    });
    expect([code, stderr]).toEqual([0, "0\n"]);
  });
});
