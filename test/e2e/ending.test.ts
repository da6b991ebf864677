import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { envelope, type ListServer, startListServer } from "./list-server.ts";

const at = new Home();
const pages = 20;
let server: ListServer;

/** All pages together have two megabytes, more than a pipe and the buffers at both ends can hold. */
function page(index: number): string {
  const rows = Array.from({ length: 500 }, (_, row) => ({
    id: `ent_${index}_${row}`,
    object: "entity",
    type: "person",
    status: "active",
    display_name: `Person ${row} of page ${index} ${"x".repeat(100)}`,
  }));
  return envelope(
    rows.map((row) => JSON.stringify(row)),
    index + 1 < pages ? `page-${index + 1}` : null,
  );
}

beforeAll(async () => {
  server = await startListServer(({ token }) => page(token === undefined ? 0 : Number(token.slice("page-".length))));
});
afterAll(async () => {
  await server.stop();
  at.remove();
});

const all = ["entities", "list", "--all", "--limit", "500"];
const outputs: readonly (readonly string[])[] = [
  [...all, "--ndjson"],
  [...all, "-o", "yaml"],
  ["schema", "policy"],
  ["--help"],
];

/** A program that leaves standard output full and in non-blocking mode. */
function filling(): string {
  const path = at.path("filling.cjs");
  const text = `new (require("node:net").Socket)({ fd: 1 });
try { for (;;) require("node:fs").writeSync(1, Buffer.alloc(1024)); } catch { process.reallyExit(0); }
`;
  writeFileSync(path, text);
  return path;
}

describe("the complete output", () => {
  it.each(outputs.map((words) => [words]))("reaches a slow reader: integ %j", async (words) => {
    const { code, stdout } = await at.spawned(words, { env: server.env });
    expect(code).toBe(0);
    if (words.includes("--all")) expect(stdout.length).toBeGreaterThan(1_500_000);
    for (const line of ['"$@"', '{ node "$FILLING"; "$@"; }']) {
      const slow = ["bash", "-c", `${line} | { sleep 0.5; cat; }; exit "\${PIPESTATUS[0]}"`, "sh"];
      const piped = await at.spawned(words, { env: { ...server.env, FILLING: filling() }, under: slow });
      expect([line, piped.code, piped.stdout.replace(/^\0+/, "") === stdout]).toEqual([line, 0, true]);
    }
    // Node gives a child a socket for its output; a shell gives it a pipe.
    const child = at.start(words, { env: server.env });
    let received = "";
    child.stdout!.setEncoding("utf8").on("data", (chunk) => (received += String(chunk)));
    child.stdout!.pause();
    const closed = once(child, "close");
    await sleep(500);
    child.stdout!.resume();
    expect([(await closed)[0], received === stdout]).toEqual([0, true]);
  });
});
