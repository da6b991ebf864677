// Waiting, as a terminal shows it: a countdown that stays readable on a narrow one, a row counter, nothing left of either;
// one plain line where nothing can be drawn.
import { spawn } from "@lydell/node-pty";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { entity, envelope, startListServer } from "../e2e/list-server.ts";
import { Home, program } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";
import { shown } from "./screen.ts";

let service: Service;
let home: Home;

beforeAll(async () => {
  service = await startService();
  home = new Home(service.env);
});
afterEach(() => service.calm());
afterAll(async () => {
  home.remove();
  await service.stop();
});

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

const list = ["entities", "list", "--limit", "3"];
const busy = (seconds: number): Promise<void> =>
  service.fault(`GET /v1/entities status=429 retry-after=${seconds} times=1`);

describe("a wait that the service asks for", () => {
  it.each([40, 120])("counts down at %i columns, in one row, and is wiped", async (columns) => {
    await busy(3);
    const { code, written } = await runAt(columns, list);
    expect(code).toBe(0);
    expect(written).toMatch(/\([123] s left\)/);
    // Whatever was on the screen at a frame, the countdown never began a second row.
    const half = written.slice(0, written.lastIndexOf("s left)") + 7);
    const during = await shown(half, { columns, mayStyle: true });
    expect(during.lines).toHaveLength(1);
    expect(during.lines[0]).toMatch(/\(\d s left\)$/);
    expect(during.lines[0]!.length).toBeLessThanOrEqual(columns);
    const { lines, effects } = await shown(written, { columns, mayStyle: true });
    expect(effects).toEqual([]);
    expect(lines.join("\n")).not.toMatch(/s left|refused/);
  });

  it.each([
    ["a dumb terminal", () => runAt(80, list, { TERM: "dumb" })],
    [
      "a pipe",
      async () => {
        const { code, stderr } = await home.integ(list);
        return { code: code ?? -1, written: stderr };
      },
    ],
  ])("is one plain line on %s", async (_what, run) => {
    await busy(5);
    const { code, written } = await run();
    expect(code).toBe(0);
    expect(written.match(/Trying again \(in 5 s\)\./g)).toHaveLength(1);
    // oxlint-disable-next-line no-control-regex
    expect(written).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f]/);
  });

  it("is not told to who asked for quiet", async () => {
    await busy(5);
    const { code, stderr } = await home.integ([...list, "--quiet"]);
    expect([code, stderr]).toEqual([0, ""]);
  });
});

describe("a long list", () => {
  it("counts its rows, and leaves nothing of the counter", async () => {
    const pages = [0, 1, 2, 3];
    const server = await startListServer(({ index }) => (response) => {
      const next = index + 1 < pages.length ? `token-${index}` : null;
      const page = envelope([entity(index * 2), entity(index * 2 + 1)], next);
      void sleep(400).then(() => response.writeHead(200, { "content-type": "application/json" }).end(page));
    });
    try {
      const words = ["entities", "list", "--all", "--ndjson", "--out", "rows"];
      const { code, written } = await runAt(40, words, server.env);
      expect(code, written).toBe(0);
      expect(written).toMatch(/Reading entities: [246]/);
      const { lines } = await shown(written, { columns: 40, mayStyle: true });
      expect(lines.join("\n")).not.toContain("Reading entities");
    } finally {
      await server.stop();
    }
  });

  it.each([40, 20])("fits %i columns: no row is wrapped", async (columns) => {
    const { code, written } = await runAt(columns, ["entities", "list", "--limit", "5", "--quiet"]);
    expect(code).toBe(0);
    const { lines } = await shown(written, { columns, mayStyle: true });
    expect(lines.length).toBeGreaterThanOrEqual(6);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns);
  });
});
