import { spawn } from "@lydell/node-pty";
import { afterEach, describe, expect, it } from "vitest";
import { type Answer, entity, envelope, startListServer } from "../e2e/list-server.ts";
import { program } from "../support/program.ts";
import { homeOfFile, serviceOfFile } from "../support/service.ts";
import { shown } from "./screen.ts";
import { Session } from "./session.ts";

const service = await serviceOfFile();
const home = homeOfFile(service.env);

afterEach(() => service.calm());

interface Ran {
  readonly code: number;
  readonly written: string;
}

function runAt(columns: number, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const pty = spawn(program[0], [...program.slice(1), ...words], {
    cols: columns,
    rows: 40,
    cwd: home.folder,
    env: { ...home.env, TERM: "xterm-256color", ...env },
  });
  let written = "";
  pty.onData((text) => (written += text));
  return new Promise((done) => pty.onExit(({ exitCode }) => done({ code: exitCode, written })));
}

/** Sends responses on the test's signal, one at a time, so that the display does not depend on speed. */
class HeldAnswers {
  #released = 0;
  readonly #waiting: (() => void)[] = [];

  answer(body: string, status = 200): Answer {
    return (response) => {
      const send = (): void => void response.writeHead(status, { "content-type": "application/json" }).end(body);
      if (this.#released === 0) return void this.#waiting.push(send);
      this.#released -= 1;
      send();
    };
  }

  release(): void {
    const send = this.#waiting.shift();
    if (send) send();
    else this.#released += 1;
  }
}

const list = ["entities", "list", "--limit", "3"];
const limitRate = (seconds: number): Promise<void> =>
  service.fault(`GET /v1/entities status=429 retry-after=${seconds} times=1`);

describe("another program's rows at the same terminal", () => {
  it.each(["| cat", "2>&1 | cat", "2>/dev/null | cat"])("have no part of a spinner before them: %s", async (rest) => {
    const body = envelope([entity(1)], null);
    const json = { "content-type": "application/json" };
    const late: Answer = (response) => void setTimeout(() => response.writeHead(200, json).end(body), 2500);
    const server = await startListServer(() => late);
    const line = `${program.map((word) => `"${word}"`).join(" ")} entities list --all --ndjson ${rest}`;
    const pty = spawn("/bin/sh", ["-c", line], {
      cols: 100,
      rows: 40,
      cwd: home.folder,
      env: { ...home.env, ...server.env, TERM: "xterm-256color" },
    });
    let written = "";
    pty.onData((text) => (written += text));
    await new Promise((done) => pty.onExit(done));
    await server.stop();
    const lines = written.split("\r\n").filter((text) => !/^Note: [^\u001b]*$/.test(text));
    expect(lines).toEqual([entity(1), ""]);
  });
});

describe("a wait requested by the service", () => {
  it.each([60, 120])("counts down at %i columns, in one row, and is erased", async (columns) => {
    await limitRate(3);
    const { code, written } = await runAt(columns, list);
    expect(code).toBe(0);
    const left = [...written.matchAll(/\((\d) s left\)/g)].map(([, seconds]) => Number(seconds));
    expect(left.length).toBeGreaterThan(0);
    expect(left).toEqual([...left].sort((a, b) => b - a));
    expect(Math.max(...left)).toBeLessThanOrEqual(3);
    const half = written.slice(0, written.lastIndexOf("s left)") + 7);
    const during = await shown(half, { columns, mayStyle: true });
    expect(during.lines).toHaveLength(1);
    expect(during.lines[0]).toMatch(/\(\d s left\)$/);
    expect(during.lines[0]!.length).toBeLessThanOrEqual(columns);
    const { lines, effects } = await shown(written, { columns, mayStyle: true });
    expect(effects).toEqual([]);
    expect(lines.join("\n")).not.toMatch(/s left|refused/);
  });
});

describe("a slow response", () => {
  it("is awaited with a spinner, which is erased before the first row", async () => {
    const answers = new HeldAnswers();
    const server = await startListServer(() => answers.answer(envelope([entity(1), entity(2)], null)));
    try {
      const dialog = new Session(["entities", "list"], { home, env: server.env });
      await dialog.seen(/\S Reading entities/);
      expect((await dialog.screen()).lines).toHaveLength(1);
      answers.release();
      expect(await dialog.ended, dialog.written).toBe(0);
      const { lines, effects } = await dialog.screen();
      expect(effects).toEqual([]);
      expect(lines).toHaveLength(3);
      expect(lines[0]).toMatch(/^ID +TYPE/);
      expect(dialog.written.lastIndexOf("Reading entities")).toBeLessThan(dialog.written.indexOf("ent_1"));
    } finally {
      await server.stop();
    }
  });

  it.each([
    [
      "a creation",
      ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--secret-file", "s"],
    ],
    ["a revocation", ["oauth-clients", "revoke", "oac_1", "--yes"]],
    ["any change", ["api", "/v1/any", "-X", "DELETE"]],
  ])("shows that a change is in progress: %s", async (_what, words) => {
    const answers = new HeldAnswers();
    const server = await startListServer(() => answers.answer('{"code":"not_allowed"}', 403));
    try {
      const dialog = new Session(words, { home, env: server.env });
      await dialog.seen(/\S (Waiting for the service|DELETE \/v1\/any)/);
      answers.release();
      expect(await dialog.ended, dialog.written).toBe(3);
      const { lines } = await dialog.screen();
      expect(lines.join("\n")).not.toContain("Waiting for the service");
      expect(lines.some((line) => line.startsWith("Error: "))).toBe(true);
    } finally {
      await server.stop();
    }
  });
});
