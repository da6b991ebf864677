// Each response of a hostile or broken server to a list soon ends in a clear error, in bounded memory.
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Home, isOtherBinary, root } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { type Answer, entity, envelope, startListServer } from "./list-server.ts";

/** A module that writes the peak memory of its process, in kilobytes, to BENCH_PEAK_FILE at exit. */
const peakMemory = join(root, "bench", "peak-memory.cjs");
const isUnmeasured = isOtherBinary("peak memory, which a module loaded by NODE_OPTIONS measures");
const json = { "content-type": "application/json" };
const validPage = envelope([entity(0)], null);

function flood(response: ServerResponse, chunk: Buffer, bytes: number): void {
  let left = bytes;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      if (!response.write(chunk)) return void response.once("drain", more);
    }
    response.end();
  };
  more();
}

function body(text: string, headers: Record<string, string> = json): Answer {
  return (response) => void response.writeHead(200, headers).end(text);
}

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const bomb = gzipSync(Buffer.alloc(300_000_000, 0x20), { level: 9 });

const answers: Record<string, Answer> = {
  HTML: body("<!doctype html><title>Sign in</title>", { "content-type": "text/html" }),
  "JSON cut before its last byte": body(validPage.slice(0, -1)),
  "nesting 100,000 deep": body(envelope([nested(100_000)], null)),
  "a response cut by the connection": (response) => {
    response.writeHead(200, { ...json, "content-length": String(validPage.length) });
    response.write(validPage.slice(0, 60), () => response.destroy());
  },
  "300 MB in 300 kB of gzip": (response) =>
    void response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(bomb),
  "two encodings": (response) => void response.writeHead(200, { ...json, "content-encoding": "gzip, br" }).end(bomb),
  "a gigabyte announced": (response) => {
    response.writeHead(200, { ...json, "content-length": String(2 ** 30) });
    flood(response, Buffer.alloc(65_536, 0x20), 2 ** 30);
  },
  "without an end": (response) => {
    response.writeHead(200, json);
    flood(response, Buffer.alloc(65_536, 0x20), Number.MAX_SAFE_INTEGER);
  },
  "headers without an end": (response) => {
    const line = `x: ${"y".repeat(8000)}\r\n`;
    response.socket!.write("HTTP/1.1 200 OK\r\n");
    for (let i = 0; i < 20; i += 1) response.socket!.write(line);
  },
  "a byte a second": (response) => {
    response.writeHead(200, json);
    let at = 0;
    const timer = setInterval(() => response.write(validPage[at++] ?? " "), 1000);
    response.on("close", () => clearInterval(timer));
  },
};

describe.each(Object.entries(answers))("%s", (name, answer) => {
  it.each(["ndjson", "table"])("is a clear error, and no row is printed: %s", async (format) => {
    const server = await startListServer(() => answer);
    const home = new Home(server.env);
    try {
      const words = ["entities", "list", "--all", "-o", format, "--retry-for", "0", "--timeout", "3s"];
      // Peak memory can be measured only in a separate process.
      const isMeasured = (isFull || format === "ndjson") && !isUnmeasured;
      const env = { NODE_OPTIONS: `--require ${peakMemory}`, BENCH_PEAK_FILE: home.path("peak") };
      const started = Date.now();
      const { code, stdout, stderr } = await home.integ(words, isMeasured ? { env } : {});
      expect([code, stdout]).toEqual([11, ""]);
      expect(stderr).toContain(format === "table" ? "\n  Fix: " : '"hint":"');
      if (name === "a gigabyte announced") expect(stderr).toContain("larger than 64 MiB.");
      expect(stderr).not.toMatch(/a bug in integ|\n\s+at /);
      expect(Date.now() - started).toBeLessThan(20_000);
      if (isMeasured) expect(Number(readFileSync(home.path("peak"), "utf8"))).toBeLessThan(300_000);
    } finally {
      home.remove();
      await server.stop();
    }
  });
});
