import { type ChildProcess, execFileSync, spawn, type StdioOptions } from "node:child_process";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { maskLines } from "../../../src/secrets/stdout.ts";
import { bundleDriver, temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "stdout-driver.ts"));
});
afterAll(() => driver.remove());

/** @param line a shell line that names the driver as $D. @returns the driver's standard error */
function underShell(line: string, env: Record<string, string> = {}): string {
  const err = join(temporaryFolder(), "err");
  const script = line.replaceAll("$D", `"${process.execPath}" "${driver.path}"`).replaceAll("2>err", `2>"${err}"`);
  execFileSync("/bin/sh", ["-c", script], { env: { ...process.env, GITHUB_ACTIONS: "", ...env }, encoding: "utf8" });
  return readFileSync(err, "utf8");
}

interface Run {
  readonly work?: "check" | "deliver";
  /** Called at the start, and again when the driver has checked its output and is about to print. */
  readonly tamper?: (child: ChildProcess, isReady: boolean) => void;
}

function run(stdio: StdioOptions, { work = "check", tamper }: Run = {}): Promise<string> {
  return new Promise((resolve) => {
    const env = { ...process.env, GITHUB_ACTIONS: "" };
    const child = spawn(process.execPath, [driver.path, work, "300"], { stdio, env });
    tamper?.(child, false);
    let text = "";
    child.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("ready")) tamper?.(child, true);
    });
    child.on("close", () => resolve(text));
  });
}

describe("standard output before the request", () => {
  it.each([
    ["a pipe with a slow reader that holds data", "{ echo first; $D check 2>err; } | { sleep 0.5; cat; }"],
    ["a command substitution", "x=$($D check 2>err)"],
  ])("accepts %s", (_what, line) => {
    expect(underShell(line)).toBe("fine\n");
  });

  it.each([
    ["is closed", "$D check >&- 2>err", "is closed, or goes to the null device"],
    ["is a full device", "$D check >/dev/full 2>err", "no space left"],
  ])("that %s: exit 2 with an alternative", (_what, line, words) => {
    const text = underShell(line);
    expect(text).toContain("usage: The secret cannot go to standard output, which ");
    expect(text).toContain(words);
  });

  it("accepts a socket with a reader, but not one whose reader has exited", async () => {
    expect(await run(["ignore", "pipe", "pipe"])).toBe("fine\n");
    const leave = { tamper: (child: ChildProcess) => void child.stdout!.destroy() };
    expect(await run(["ignore", "pipe", "pipe"], leave)).toContain("a pipe whose reader has exited");
  });

  it("accepts a named pipe that one process reads and writes", async () => {
    const fifo = join(temporaryFolder(), "fifo");
    execFileSync("mkfifo", [fifo]);
    const fd = openSync(fifo, "r+");
    writeSync(fd, "there is something to read");
    expect(await run(["ignore", fd, "pipe"])).toBe("fine\n");
    closeSync(fd);
  });
});

describe("printing the secret", () => {
  it("prints the receipt", () => {
    expect(underShell(`test "$($D deliver 2>err)" = "receipt with canary"`)).toBe("ready\nfine\n");
  });

  it("masks it first on GitHub Actions, on standard error", () => {
    const text = underShell("$D deliver 2>err | cat", { GITHUB_ACTIONS: "true" });
    expect(text).toBe("ready\n::add-mask::canary%25%0D%0A1\n::add-mask::canary%25\\r\\n1\nfine\n");
    expect(maskLines("a%b", '{"client_secret":"a%b"}')).toBe("::add-mask::a%25b\n");
  });

  it.each([
    ['"a\\/b\\u002bc"', ["a/b+c", "a\\/b\\u002bc"]],
    ['"a\\"b"', ['a"b', 'a\\"b', 'a""b']],
    ['"it\'s"', ["it's", "it''s"]],
  ])("masks every form that a format may print: %s", (raw, forms) => {
    const secret = JSON.parse(raw) as string;
    const lines = maskLines(secret, `{"id":"x","client_secret":${raw}}`).trim().split("\n");
    expect(lines).toEqual(forms.map((form) => `::add-mask::${form}`));
  });

  it("keeps the secret if the reader exits after the request: exit 12", async () => {
    const leave = (child: ChildProcess, isReady: boolean): void => void (isReady && child.stdout!.destroy());
    const text = await run(["ignore", "pipe", "pipe"], { work: "deliver", tamper: leave });
    expect(text).toContain("undelivered: Standard output did not take");
  });

  it("fails on a full disk: exit 12", (context) => {
    const disk = mountSmallDisk(16, context);
    fillDisk(disk, 0);
    expect(underShell(`$D deliver >>"${disk}/out" 2>err`)).toContain("undelivered: Standard output did not take");
  });
});
