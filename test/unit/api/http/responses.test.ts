// Sends each response whole and byte by byte. No exchange may return a wrong body, exceed the deadline or repeat a change.
import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Exchange } from "../../../../src/api/http/exchange.ts";
import { closePeers, startRawPeer, transportTo } from "../peer.ts";
import { malformed, starts, valid } from "./malformed-responses.ts";

afterEach(closePeers);

interface Case {
  readonly name: string;
  readonly text: string;
  readonly outcome: string;
  /** True if the peer closes the connection after the text. */
  readonly ends: boolean;
  /** True if only the deadline ends the exchange. */
  readonly waits: boolean;
}

/** First words of the names of responses that are incomplete until the connection ends. */
const untilEnd = ["nothing", "half", "no last chunk", "a body up to the end"];

function openEnd(name: string, outcome: string): Pick<Case, "outcome" | "waits"> {
  const waits = untilEnd.some((start) => name.startsWith(start));
  return { waits, outcome: waits ? "broken" : outcome };
}

const cases: readonly Case[] = [
  ...Object.entries({ ...valid, ...malformed }).flatMap(([name, [text, outcome]]) => [
    { name, text, outcome, ends: true, waits: false },
    { name, text, ends: false, ...openEnd(name, outcome) },
  ]),
  ...Object.entries(starts).map(([name, text]) => ({ name, text, outcome: "broken", ends: false, waits: false })),
];

function shown(exchange: Exchange): string {
  if (exchange.kind === "broken") return "broken";
  return `${exchange.status} ${exchange.body.toString("latin1")}`.trim();
}

async function write(socket: Socket, bytes: Buffer, step: number): Promise<void> {
  socket.setNoDelay(true);
  for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
    socket.write(bytes.subarray(at, at + step));
    await new Promise((turn) => setImmediate(turn));
  }
}

async function faultsOf({ name, text, outcome, ends, waits }: Case, method: "GET" | "POST", inBytes: boolean) {
  const bytes = Buffer.from(text, "latin1");
  let seen = "";
  const peer = await startRawPeer((socket) =>
    socket.on("data", (chunk: Buffer) => {
      seen += chunk.toString("latin1");
      if (method === "POST" && !seen.endsWith('{"a":1}')) return;
      const written = write(socket, bytes, inBytes ? Math.ceil(bytes.length / 400) : bytes.length || 1);
      if (ends) void written.then(() => socket.end());
    }),
  );
  const transport = transportTo({ timeoutMs: waits ? 1000 : 30_000 });
  const body = method === "POST" ? '{"a":1}' : undefined;
  const found = shown(await transport.exchange({ method, baseUrl: peer.origin, path: "/v1/x", headers: {}, body }));
  transport.close();
  const faults = found === outcome ? [] : [`${found}, not ${outcome}`];
  const sent = seen.split(`${method} /v1/x`).length - 1;
  if (sent !== 1 || peer.connections() !== 1) faults.push(`sent ${sent} times, over ${peer.connections()} connections`);
  return faults.map((fault) => `${name}${ends ? ", and then the end" : ""}: ${fault}`);
}

describe.each(["GET", "POST"] as const)("the response to %s", (method) => {
  test.each([false, true])("matches the table, byte by byte: %s", { timeout: 60_000 }, async (inBytes) => {
    expect(cases.length).toBeGreaterThan(150);
    const faults: string[] = [];
    for (let at = 0; at < cases.length; at += 50) {
      const some = cases.slice(at, at + 50).map((one) => faultsOf(one, method, inBytes));
      faults.push(...(await Promise.all(some)).flat());
    }
    expect(faults).toEqual([]);
  });
});

test("two valid responses share a connection, and malformed ones end theirs", async () => {
  for (const [name, [text, outcome]] of Object.entries({ ...valid, ...malformed })) {
    const peer = await startRawPeer((socket) => socket.on("data", () => socket.write(Buffer.from(text, "latin1"))));
    const transport = transportTo({ timeoutMs: 150 });
    const request = { method: "GET", baseUrl: peer.origin, path: "/", headers: {} };
    const found = [shown(await transport.exchange(request)), shown(await transport.exchange(request))];
    transport.close();
    // A wrong encoding of the body does not affect the connection.
    if (outcome === "broken" && !name.startsWith("an encoding")) expect(peer.connections(), name).toBe(2);
    for (const one of found) expect(["broken", outcome], name).toContain(one);
  }
});
