// Answers over one kept connection, whose bytes are all read into the same space: however they are cut, none overwrites what
// stood there before it.
import { createServer as createTlsServer } from "node:tls";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { cert, key } from "./localhost-certificate.ts";
import { closePeers, startRawPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

/** The answer of a number, recognisable in every header and in its body, which is longer than one read. */
function answerOf(number: number): { readonly bytes: Buffer; readonly body: string } {
  const body = JSON.stringify({ number, text: String(number % 10).repeat(number % 3 === 0 ? 200_000 : 50) });
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRequest-Id: request-${number}-${"r".repeat(40)}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return { bytes: Buffer.from(head + body), body };
}

/** Sends the bytes cut at these places, each piece as one that is read alone. */
async function inPieces(socket: Socket, bytes: Buffer, cuts: readonly number[]): Promise<void> {
  socket.setNoDelay(true);
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    await new Promise<void>((written) => socket.write(bytes.subarray(from, to), () => written()));
    from = to;
    if (to < bytes.length) await new Promise((turn) => setTimeout(turn, 2));
  }
}

function answering(cutsOf: (number: number) => readonly number[]): (socket: Socket) => void {
  return (socket) => {
    let number = 0;
    socket.on("data", () => {
      const at = number++;
      void inPieces(socket, answerOf(at).bytes, cutsOf(at));
    });
  };
}

const cuts: Readonly<Record<string, (number: number) => readonly number[]>> = {
  whole: () => [],
  "in the middle of a header": (number) => [20 + number],
  "in three pieces of the head": (number) => [3 + number, 40 + number, 80],
  "behind the head": (number) => [answerOf(number).bytes.indexOf("\r\n\r\n") + 4],
  "in the head and in the body": (number) => [60, answerOf(number).bytes.indexOf("\r\n\r\n") + 10],
};

test.each(Object.entries(cuts))("answers cut %s keep their headers and bodies", async (_, cutsOf) => {
  const peer = await startRawPeer(answering(cutsOf));
  const transport = transportTo();
  for (let number = 0; number < 12; number += 1) {
    const exchange = await transport.exchange({ method: "GET", baseUrl: peer.origin, path: "/", headers: {} });
    const { body } = answerOf(number);
    expect(exchange).toMatchObject({
      kind: "response",
      headers: {
        "content-type": "application/json",
        "request-id": `request-${number}-${"r".repeat(40)}`,
        "content-length": String(body.length),
      },
    });
    expect(exchange.kind === "response" && exchange.body.toString()).toBe(body);
  }
  expect(peer.connections()).toBe(1);
});

test("the same over TLS", async () => {
  const server = createTlsServer(
    { cert, key },
    answering((number) => [20 + number, 90]),
  );
  await new Promise<void>((listening) => server.listen(0, "localhost", listening));
  const { port } = server.address() as AddressInfo;
  try {
    const transport = transportTo({ ca: cert });
    for (let number = 0; number < 6; number += 1) {
      const request = { method: "GET", baseUrl: `https://localhost:${port}`, path: "/", headers: {} };
      const exchange = await transport.exchange(request);
      expect(exchange).toMatchObject({ headers: { "request-id": `request-${number}-${"r".repeat(40)}` } });
      expect(exchange.kind === "response" && exchange.body.toString()).toBe(answerOf(number).body);
    }
    transport.close();
  } finally {
    server.close();
  }
});
