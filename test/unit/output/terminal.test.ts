import fs from "node:fs";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { BrokenPipe, colorLevel, Terminal, type TerminalFacts } from "../../../src/output/terminal.ts";
import { KeptStream, TerminalStream } from "./streams.ts";

type WriteFile = (fd: number, data: Buffer, offset: number) => number;

const { writeSync } = fs;

function replaceWriteSync(write: unknown): void {
  Object.assign(fs, { writeSync: write });
  syncBuiltinESMExports();
}

const folder = mkdtempSync(join(tmpdir(), "integ-terminal-"));
afterAll(() => rmSync(folder, { recursive: true }));

function terminal(facts: Partial<TerminalFacts> = {}): Terminal {
  return new Terminal({
    stdin: new PassThrough(),
    stdout: new KeptStream(),
    stderr: new KeptStream(),
    env: {},
    ...facts,
  });
}

function errno(code: string): Error {
  return Object.assign(new Error(`${code}: made by the test`), { code });
}

describe("writing to a file", () => {
  async function written(data: string, write: WriteFile): Promise<{ content: string; error: unknown }> {
    replaceWriteSync(write);
    const path = join(folder, "out");
    const fd = openSync(path, "w");
    const stdout = Object.assign(new KeptStream(), { fd });
    try {
      await terminal({ stdout }).writeOut(data);
      return { content: readFileSync(path, "utf8"), error: undefined };
    } catch (error) {
      return { content: readFileSync(path, "utf8"), error };
    } finally {
      replaceWriteSync(writeSync);
      closeSync(fd);
      expect(stdout.text).toBe("");
    }
  }

  it("continues after every short write", async () => {
    const data = "Zoë 🙂 ".repeat(1000);
    const some = (fd: number, bytes: Buffer, offset: number): number =>
      writeSync(fd, bytes, offset, Math.min(7, bytes.length - offset));
    expect(await written(data, some)).toEqual({ content: data, error: undefined });
  });

  it("reports a full disk, even after a partial write", async () => {
    let room = 10;
    const { content, error } = await written("x".repeat(100), (fd, bytes, offset) => {
      if (room === 0) throw errno("ENOSPC");
      const taken = writeSync(fd, bytes, offset, room);
      room -= taken;
      return taken;
    });
    expect(content).toBe("x".repeat(10));
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("ENOSPC"),
      details: { hint: expect.stringContaining("Free space on the disk") },
    });
  });

  it("does not wait endlessly for a file that accepts no data", async () => {
    expect((await written("x", () => 0)).error).toMatchObject({ kind: "failed" });
  });

  it("works with a real full device and a real null device", async () => {
    for (const [path, fails] of [
      ["/dev/full", true],
      ["/dev/null", false],
    ] as const) {
      const fd = openSync(path, "w");
      const attempt = terminal({ stdout: Object.assign(new KeptStream(), { fd }) }).writeOut("x");
      await (fails
        ? expect(attempt).rejects.toMatchObject({ kind: "failed" })
        : expect(attempt).resolves.toBeUndefined());
      closeSync(fd);
    }
  });
});

describe("writing to a stream", () => {
  it("resolves when the stream has taken the data", async () => {
    const stdout = new KeptStream();
    let isTaken = false;
    const write = terminal({ stdout }).writeOut("x".repeat(1_000_000));
    void write.then(() => (isTaken = true));
    await Promise.resolve();
    expect(isTaken).toBe(false);
    await write;
    expect(stdout.text.length).toBe(1_000_000);
  });

  it.each(["EPIPE", "ECONNRESET"])("reports a reader that has exited with its own error: %s", async (code) => {
    const stdout = new KeptStream();
    stdout.fails = errno(code);
    const out = terminal({ stdout });
    await expect(out.writeOut("x")).rejects.toBeInstanceOf(BrokenPipe);
    await expect(out.writeOut("y")).rejects.toBeInstanceOf(BrokenPipe);
  });

  it("remembers a reader that exited between two writes", async () => {
    const stdout = new KeptStream();
    const out = terminal({ stdout });
    stdout.emit("error", errno("EPIPE"));
    await expect(out.writeOut("x")).rejects.toBeInstanceOf(BrokenPipe);
    const destroyed = new KeptStream();
    const other = terminal({ stdout: destroyed });
    destroyed.destroy();
    await expect(other.writeOut("x")).rejects.toBeInstanceOf(BrokenPipe);
  });

  it("reports any other error as a failure", async () => {
    const stdout = new KeptStream();
    stdout.fails = errno("EIO");
    await expect(terminal({ stdout }).writeOut("x")).rejects.toMatchObject({
      kind: "failed",
      message: "Cannot write to standard output: EIO: made by the test.",
    });
  });

  it("ignores a standard error that cannot be written", async () => {
    const stderr = new KeptStream();
    stderr.fails = errno("EPIPE");
    const out = terminal({ stderr });
    out.writeErr("x");
    await new Promise((resolve) => setTimeout(resolve, 10));
    out.writeErr("y");
    await out.writeOut("z");
  });
});

describe("the state of the streams", () => {
  it("shows which are terminals, and their width", () => {
    const wide = Object.assign(new TerminalStream(), { columns: 132 });
    expect(terminal({ stdout: wide })).toMatchObject({
      isTTY: { stdin: false, stdout: true, stderr: false },
      width: 132,
    });
    expect(terminal({ stderr: wide }).width).toBe(132);
    expect(terminal().width).toBe(80);
    expect(terminal({ stdout: Object.assign(new TerminalStream(), { columns: 0 }) }).width).toBe(80);
  });

  it("has the color of each stream separately", () => {
    const stdout = new TerminalStream();
    expect(terminal({ stdout, env: { TERM: "xterm-256color" } }).color).toEqual({ stdout: 2, stderr: 0 });
    expect(terminal({ stdout, env: { TERM: "xterm" }, noColor: true }).color).toEqual({ stdout: 0, stderr: 0 });
  });
});

describe("color", () => {
  const level = (env: Record<string, string>, isTerminal = true, noColor = false): number =>
    colorLevel({ env, isTerminal, noColor });

  it.each([
    ["a terminal", {}, 1],
    ["256 colors", { TERM: "screen-256color" }, 2],
    ["true color", { COLORTERM: "truecolor" }, 3],
    ["a dumb terminal", { TERM: "dumb" }, 0],
    ["NO_COLOR", { NO_COLOR: "1" }, 0],
    ["an empty NO_COLOR, which is ignored", { NO_COLOR: "" }, 1],
    ["NO_COLOR before FORCE_COLOR", { NO_COLOR: "1", FORCE_COLOR: "3" }, 0],
    ["FORCE_COLOR=0", { FORCE_COLOR: "0" }, 0],
    ["FORCE_COLOR=false", { FORCE_COLOR: "false" }, 0],
    ["FORCE_COLOR before TERM=dumb", { FORCE_COLOR: "1", TERM: "dumb" }, 1],
    ["CLICOLOR=0", { CLICOLOR: "0" }, 0],
  ])("%s", (_what, env: Record<string, string>, expected) => {
    expect(level(env)).toBe(expected);
  });

  it("is on a pipe only if it is forced", () => {
    expect(level({ COLORTERM: "truecolor" }, false)).toBe(0);
    expect([level({ FORCE_COLOR: "" }, false), level({ FORCE_COLOR: "3" }, false)]).toEqual([1, 3]);
    expect([level({ CLICOLOR_FORCE: "1" }, false), level({ CLICOLOR_FORCE: "0" }, false)]).toEqual([1, 0]);
  });

  it("is off with --no-color, whatever the environment says", () => {
    expect(level({ FORCE_COLOR: "3" }, true, true)).toBe(0);
  });
});
