// Answers over one kept connection, whose bytes are all read into the same space: however they are cut, none overwrites what
// stood there before it. The connection of a walk reads every answer as undici does.
import { createServer as createTlsServer } from "node:tls";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { cert, key } from "./localhost-certificate.ts";
import { BodyBuffer, type Exchange } from "../../../../src/api/http/exchange.ts";
import { UsualResponse } from "../../../../src/api/http/usual-response.ts";
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

/** One that undici reads, and one of a walk. */
const ways = [undefined, new BodyBuffer()];

test.each(Object.entries(cuts).flatMap(([how, cutsOf]) => ways.map((buffer) => ({ how, cutsOf, buffer }))))(
  "answers cut $how keep their headers and bodies, in a walk or not",
  async ({ cutsOf, buffer }) => {
    const peer = await startRawPeer(answering(cutsOf));
    const transport = transportTo();
    for (let number = 0; number < 12; number += 1) {
      const exchange = await transport.exchange({
        method: "GET",
        baseUrl: peer.origin,
        path: "/",
        headers: {},
        buffer,
      });
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
  },
);

test.each(ways)("the same over TLS, in a walk or not", async (buffer) => {
  const server = createTlsServer(
    { cert, key },
    answering((number) => [20 + number, 90]),
  );
  await new Promise<void>((listening) => server.listen(0, "localhost", listening));
  const { port } = server.address() as AddressInfo;
  try {
    const transport = transportTo({ ca: cert });
    for (let number = 0; number < 6; number += 1) {
      const request = { method: "GET", baseUrl: `https://localhost:${port}`, path: "/", headers: {}, buffer };
      const exchange = await transport.exchange(request);
      expect(exchange).toMatchObject({ headers: { "request-id": `request-${number}-${"r".repeat(40)}` } });
      expect(exchange.kind === "response" && exchange.body.toString()).toBe(answerOf(number).body);
    }
    transport.close();
  } finally {
    server.close();
  }
});

const json = "Content-Type: application/json\r\n";
const ok = `HTTP/1.1 200 OK\r\n${json}`;
const long = "x".repeat(9000);
const inChunks = `${ok}Transfer-Encoding: chunked\r\n\r\n`;

/** Answers of every framing, right and wrong. Those that leave the connection open are also asked for twice over it. */
const kept: Readonly<Record<string, string>> = {
  "a length": `${ok}Content-Length: 9\r\n\r\n{"a":"é"}`,
  "no body": `${ok}Content-Length: 0\r\n\r\n`,
  "no space before a value": `HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\n{}`,
  "spaces around a value": `HTTP/1.1 200 OK\r\nX-A:  \t b c \t\r\nContent-Length:   2  \r\n\r\n{}`,
  "an empty value": `HTTP/1.1 200 OK\r\nX-Empty:\r\nX-A: b\r\nContent-Length: 2\r\n\r\n{}`,
  "a value of bytes": "HTTP/1.1 200 OK\r\nX-A: \xe9\xff\x80 \t!\r\nContent-Length: 2\r\n\r\n{}",
  "repeated headers": `${ok}X-Two: 1\r\nx-two: 2\r\n__proto__: x\r\nContent-Length: 2\r\n\r\n{}`,
  "a refusal": `HTTP/1.1 429 Too Many Requests\r\n${json}Retry-After: 7\r\nContent-Length: 2\r\n\r\n{}`,
  "an error": `HTTP/1.1 503 \r\nContent-Length: 3\r\n\r\nno!`,
  "a redirect": `HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n`,
  "no reason": `HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}`,
  "a status without a body": "HTTP/1.1 204 No Content\r\n\r\n",
  "another without a body": "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
  "a note before it": `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok}Content-Length: 2\r\n\r\n{}`,
  "two notes before it": `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${ok}Content-Length: 2\r\n\r\n{}`,
  "a kept connection": `${ok}Connection: keep-alive\r\nKeep-Alive: timeout=60, max=9\r\nContent-Length: 2\r\n\r\n{}`,
  "one kept for a second": `${ok}Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\n{}`,
  "a large head": `${ok}X-Large: ${long}\r\nX-Too: ${long}\r\nContent-Length: 2\r\n\r\n{}`,
  chunks: `${inChunks}4\r\n{"a"\r\n00A\r\n:"bcdefgh"\r\n1\r\n}\r\n0\r\n\r\n`,
  "no chunk": `${inChunks}0\r\n\r\n`,
  "chunks in other letters": `HTTP/1.1 200 OK\r\ntransfer-ENCODING: Chunked\r\n\r\n2\r\n{}\r\n000\r\n\r\n`,
  "chunks with extensions": `${inChunks}2\r\n{"\r\n3;a=b;c="d"\r\na":\r\n2\r\n1}\r\n0;z\r\n\r\n`,
  "chunks with trailers": `${inChunks}2\r\n{}\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n`,
};

const wrong: Readonly<Record<string, string>> = {
  nothing: "",
  "no HTTP": "hello\r\n\r\n",
  "half a head": "HTTP/1.1 200 OK\r\nContent-Le",
  "half a body": `${ok}Content-Length: 20\r\n\r\n{"a"`,
  "half a chunk": `${inChunks}9\r\n{"a"`,
  "no last chunk": `${inChunks}2\r\n{}\r\n`,
  "half the last chunk": `${inChunks}2\r\n{}\r\n0\r\n`,
  "half a trailer": `${inChunks}2\r\n{}\r\n0\r\nX-Sum`,
  "more than it has": `${ok}Content-Length: 2\r\n\r\n{}{}`,
  "another answer behind it": `${ok}Content-Length: 2\r\n\r\n{}${ok}Content-Length: 3\r\n\r\nbad`,
  "another answer behind chunks": `${inChunks}2\r\n{}\r\n0\r\n\r\n${ok}Content-Length: 3\r\n\r\nbad`,
  "a length and chunks": `${ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "chunks and a length": `${ok}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "two lengths": `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `,
  "the same length twice": `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`,
  "a length that is none": `${ok}Content-Length: two\r\n\r\n{}`,
  "a length with a sign": `${ok}Content-Length: +2\r\n\r\n{}`,
  "a length beyond every number": `${ok}Content-Length: 99999999999999999999999\r\n\r\n{}`,
  "a length beyond the limit": `${ok}Content-Length: 99999999\r\n\r\n{}`,
  "another encoding": `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "chunks twice": `${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "a size that is none": `${inChunks}2\r\n{}\r\nx\r\n`,
  "no size": `${inChunks}\r\n{}\r\n0\r\n\r\n`,
  "a size beyond every number": `${inChunks}fffffffffffffffff\r\n{}`,
  "a size with a sign": `${inChunks}-1\r\n{}`,
  "a size without its end": `${inChunks}2\n{}\r\n0\r\n\r\n`,
  "a chunk that is longer than it says": `${inChunks}1\r\n{}\r\n0\r\n\r\n`,
  "a chunk without its end": `${inChunks}2\r\n{}0\r\n\r\n`,
  "a folded header": `${ok}X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}`,
  "lines without a return": `${ok}Content-Length: 2\n\n{}`,
  "a header without a name": `${ok}: b\r\nContent-Length: 2\r\n\r\n{}`,
  "a header without a colon": `${ok}X-A\r\nContent-Length: 2\r\n\r\n{}`,
  "a space before the colon": `${ok}Content-Length : 2\r\n\r\n{}`,
  "a control in a value": `${ok}X-A: b\x01c\r\nContent-Length: 2\r\n\r\n{}`,
  "a zero in a value": `${ok}X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}`,
  "a return in a value": `${ok}X-A: b\rc\r\nContent-Length: 2\r\n\r\n{}`,
  "a status of two digits": "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
  "a status of no kind": "HTTP/1.1 700 Odd\r\nContent-Length: 2\r\n\r\n{}",
  "an older version": `HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}`,
  "an older version that is kept": `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}`,
  "another version": "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
  "a body up to the end": `${ok}\r\n{"a":1}`,
  "a connection that closes": `${ok}Connection: close\r\nContent-Length: 2\r\n\r\n{}`,
  "chunks of a connection that closes": `${ok}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "another protocol": "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
  "an offer of one": `${ok}Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}`,
  "an encoding that is no gzip": `${ok}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
  "a head that is too large": `${ok}X-Large: ${long.repeat(4)}\r\nContent-Length: 2\r\n\r\n{}`,
};

describe("an answer with", () => {
  const answers = [
    ...Object.entries(kept).map(([what, text]) => ({ what, text, ends: false })),
    ...Object.entries({ ...kept, ...wrong }).map(([what, text]) => ({
      what: `${what}, and then the end`,
      text,
      ends: true,
    })),
  ];

  test.each(answers)("$what: the same in a walk and elsewhere", async ({ text, ends }) => {
    const bytes = Buffer.from(text, "latin1");
    const peer = await startRawPeer((socket) =>
      socket.on("data", () => (ends ? socket.end(bytes) : socket.write(bytes))),
    );
    const heard: { readonly both: string[]; readonly connections: number }[] = [];
    for (const buffer of [undefined, new BodyBuffer()]) {
      const transport = transportTo({ timeoutMs: 1500 });
      const request = { method: "GET", baseUrl: peer.origin, path: "/", headers: {}, buffer };
      const before = peer.connections();
      const both: string[] = [];
      for (let time = 0; time < 2; time += 1) both.push(told(await transport.exchange(request)));
      heard.push({ both, connections: peer.connections() - before });
      transport.close();
    }
    const [elsewhere, walk] = heard;
    // A connection that closed after an answer which did not say so: undici may send the next request over it, and lose that.
    if (elsewhere?.both[1] !== elsewhere?.both[0] && walk?.both[1] === walk?.both[0])
      expect(walk?.both[0]).toBe(elsewhere?.both[0]);
    else expect(walk).toEqual(elsewhere);
  });

  test.each(Object.entries({ ...kept, ...wrong }))("%s: the same in whatever pieces it comes", (_, text) => {
    const bytes = Buffer.from(text, "latin1");
    const whole = read([bytes]);
    expect(read(Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual(whole);
    for (let cut = 1; cut < Math.min(bytes.length, 400); cut += 1)
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)]), `cut at ${cut}`).toEqual(whole);
  });
});

function told(exchange: Exchange): string {
  return JSON.stringify(exchange, (_, value: unknown) => (Buffer.isBuffer(value) ? value.toString("latin1") : value));
}

/** What a walk's connection makes of an answer, and what it hands to undici. What comes is overwritten after each piece. */
function read(pieces: readonly Buffer[]): object {
  let body = "";
  let head: unknown;
  const response = new UsualResponse({
    onHeaders(status, raw) {
      head = { status, raw };
      return true;
    },
    onData(chunk) {
      body += chunk.toString("latin1");
      return true;
    },
  });
  let progress = "more";
  let rest = "";
  for (const piece of pieces) {
    if (progress !== "more") {
      rest += piece.toString("latin1");
      continue;
    }
    const bytes = Buffer.from(piece);
    progress = response.read(bytes);
    if (progress === "unusual") rest = response.replay.toString("latin1");
    bytes.fill(0);
  }
  // What is behind a whole answer may come with it or after it.
  if (progress === "surplus" || progress === "malformed") rest = "";
  return {
    body,
    head,
    progress: progress === "whole" && rest !== "" ? "surplus" : progress,
    rest: progress === "unusual" ? rest : "",
  };
}
