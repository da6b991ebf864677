// Answers over one kept connection, whose bytes are all read into the same space: however they are cut, none overwrites what
// stood there before it. Every answer is read as undici's own client reads it, to a read and to a change.
import { createServer as createTlsServer } from "node:tls";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { cert, key } from "./localhost-certificate.ts";
import { BodyBuffer, type Exchange, maxBodyBytes } from "../../../../src/api/http/exchange.ts";
import { decodeBody, Reception } from "../../../../src/api/http/transport.ts";
import { UsualConnection, type UsualConnectionOptions } from "../../../../src/api/http/usual-connection.ts";
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

/** A single resource, and a page of a list. */
const ways = [undefined, new BodyBuffer()];

test.each(Object.entries(cuts).flatMap(([how, cutsOf]) => ways.map((buffer) => ({ how, cutsOf, buffer }))))(
  "answers cut $how keep their headers and bodies, of a list or not",
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

test.each(ways)("the same over TLS, of a list or not", async (buffer) => {
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
  "a status without a body, the last of its connection": "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
  "a status without a body that has a length": "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
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
  "a body where there is none": "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
  "chunks where there is no body": "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
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

/** The beginnings of what is no answer, from a peer that then says nothing more: no one waits for the rest. */
const begun: Readonly<Record<string, string>> = {
  "another protocol's greeting": "SSH-2.0-OpenSSH_9.6\r\n",
  "a mail server's greeting": "220 mail ESMTP\r\n",
  "no line at all": "garbage",
  "an alert of TLS": "\x15\x03\x01\0\x02\x02\x46",
  "another version": "HTTP/1.2 200 OK\r\n",
  "lines without a return": "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
  "a folded line": "HTTP/1.1 200 OK\r\n x: y\r\n",
  "a length that is none": "HTTP/1.1 200 OK\r\nContent-Length: x\r\n",
  "a space before the colon": "HTTP/1.1 200 OK\r\nX-B : 1\r\n",
  "a zero in a value": "HTTP/1.1 200 OK\r\nX-A: b\0c\r\n",
};

describe("an answer with", () => {
  const answers = [
    ...Object.entries(begun).map(([what, text]) => ({ what, text, ends: false })),
    ...Object.entries(kept).map(([what, text]) => ({ what, text, ends: false })),
    ...Object.entries({ ...kept, ...wrong }).map(([what, text]) => ({
      what: `${what}, and then the end`,
      text,
      ends: true,
    })),
  ];

  test.each(answers)("$what: the same as through undici", async ({ text, ends }) => {
    const bytes = Buffer.from(text, "latin1");
    const peer = await startRawPeer((socket) =>
      socket.on("data", () => (ends ? socket.end(bytes) : socket.write(bytes))),
    );
    const twice = async (ask: () => Promise<Exchange>) => {
      const before = peer.connections();
      const both = [told(await ask()), told(await ask())];
      return { both, connections: peer.connections() - before };
    };
    const undici = new UndiciAlone(peer.origin);
    const expected = await twice(() => undici.get());
    undici.close();
    for (const buffer of ways) {
      const transport = transportTo({ timeoutMs });
      const request = { method: "GET", baseUrl: peer.origin, path: "/", headers: {}, buffer };
      const found = await twice(() => transport.exchange(request));
      transport.close();
      // A connection that closed after an answer which did not say so: undici may send the next request over it, and lose that.
      if (expected.both[1] !== expected.both[0] && found.both[1] === found.both[0])
        expect(found.both[0]).toBe(expected.both[0]);
      else expect(found).toEqual(expected);
    }
  });

  test.each(answers)("$what: the same behind a change, which is sent once", async ({ text, ends }) => {
    const bytes = Buffer.from(text, "latin1");
    let seen = "";
    const peer = await startRawPeer((socket) =>
      socket.on("data", (chunk: Buffer) => {
        seen += chunk.toString("latin1");
        if (seen.startsWith("POST ") && !seen.endsWith('{"a":1}')) return;
        if (ends) socket.end(bytes);
        else socket.write(bytes);
      }),
    );
    const ask = { baseUrl: peer.origin, path: "/v1/x", headers: { "x-own": "b" } };
    const transport = transportTo({ timeoutMs });
    const undici = new UndiciAlone(peer.origin);
    const read = told(await undici.get());
    undici.close();
    seen = "";
    const before = peer.connections();
    const changed = told(await transport.exchange({ ...ask, method: "POST", body: '{"a":1}' }));
    transport.close();
    expect(changed).toBe(read);
    expect(seen.split("POST /v1/x").length - 1, seen).toBe(1);
    expect(seen).toMatch(
      /\r\nconnection: close\r\n(?:.+\r\n)*x-own: b\r\n(?:.+\r\n)*content-length: 7\r\n\r\n\{"a":1\}$/,
    );
    expect(peer.connections() - before).toBe(1);
  });

  test.each(Object.entries({ ...kept, ...wrong }))("%s: the same in whatever pieces it comes", (_, text) => {
    const bytes = Buffer.from(text, "latin1");
    const whole = read([bytes]);
    expect(read(Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual(whole);
    for (let cut = 1; cut < Math.min(bytes.length, 400); cut += 1)
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)]), `cut at ${cut}`).toEqual(whole);
  });
});

const timeoutMs = 1500;

/** A server that answers while this thread stands still. */
async function startPeerInThread(text: string) {
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    const server = require("node:net").createServer((socket) => {
      socket.on("error", () => {}).once("data", () => {
        parentPort.postMessage("asked");
        setTimeout(() => socket.end(workerData), 100);
      });
    });
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
    { eval: true, workerData: text },
  );
  const [port] = (await once(worker, "message")) as [number];
  return {
    origin: `http://127.0.0.1:${port}`,
    asked: () => once(worker, "message"),
    close: () => worker.terminate(),
  };
}

/** What undici's own client makes of the answers of a peer, kept and closed as the transport does it. */
class UndiciAlone {
  readonly #origin: string;
  #client: Client | undefined;

  constructor(origin: string) {
    this.#origin = origin;
  }

  async get(): Promise<Exchange> {
    const options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 32 * 1024 };
    const client = (this.#client ??= new Client(this.#origin, options));
    const exchange = await new Promise<Exchange>((settle) => {
      const reception = new Reception({ maxBytes: maxBodyBytes, settle });
      const late = { reason: "timeout", detail: `no full response within ${timeoutMs / 1000} s` } as const;
      setTimeout(() => reception.break(late), timeoutMs);
      client.dispatch({ origin: this.#origin, path: "/", method: "GET" }, reception);
    });
    if (exchange.kind !== "response") this.close();
    if (exchange.kind !== "response" || exchange.headers["content-encoding"] === undefined) return exchange;
    const encoding = exchange.headers["content-encoding"];
    const body = await decodeBody(exchange.body, { encoding, maxBytes: maxBodyBytes });
    return Buffer.isBuffer(body) ? { ...exchange, body } : { kind: "broken", sent: true, ...body };
  }

  close(): void {
    this.#client?.destroy().catch(() => {});
    this.#client = undefined;
  }
}

describe("the end of an answer", () => {
  test.each(["HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", `${ok}Content-Length: 20\r\n\r\n{"a"`, ""])(
    "is not waited for behind a request that was not read: %j",
    async (text) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        socket.on("error", () => {}).pause();
        setTimeout(() => socket.end(text), 20);
      });
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const transport = transportTo({ timeoutMs });
      const body = Buffer.alloc(16 * 1024 * 1024, "x");
      const exchange = await transport.exchange({ method: "POST", baseUrl, path: "/", headers: {}, body });
      transport.close();
      server.close();
      expect(exchange).toMatchObject(
        text.endsWith("hello") ? { kind: "response", status: 200 } : { kind: "broken", sent: true, reason: "closed" },
      );
    },
  );

  test("is seen before the next request over TLS, also behind an unusual answer", async () => {
    const unusual = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const server = createTlsServer({ cert, key }, (socket) =>
      socket.on("error", () => {}).on("data", () => socket.end(unusual)),
    );
    await new Promise<void>((listening) => server.listen(0, "localhost", listening));
    const baseUrl = `https://localhost:${(server.address() as AddressInfo).port}`;
    const ends: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const transport = transportTo({ ca: cert, timeoutMs });
      for (let number = 0; number < 3; number += 1)
        ends.push((await transport.exchange({ method: "GET", baseUrl, path: "/", headers: {} })).kind);
      transport.close();
    }
    server.close();
    expect(ends).toEqual(ends.map(() => "response"));
  });

  test.each([
    "HTTP/1.0 200 OK\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello",
  ])("is read by a process that stood still beyond its time: %j", async (text) => {
    const peer = await startPeerInThread(text);
    const transport = transportTo({ timeoutMs: 400 });
    const request = { method: "POST", baseUrl: peer.origin, path: "/", headers: {} };
    const exchange = transport.exchange(request);
    await peer.asked();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    expect(await exchange).toMatchObject({ kind: "response", status: 200 });
    transport.close();
    await peer.close();
  });
});

test("HEAD waits for no body, whatever the connection before it carried", async () => {
  const head = `${ok}Content-Length: 5\r\n\r\n`;
  const peer = await startRawPeer((socket) =>
    socket.on("data", (chunk) => socket.write(chunk.toString().startsWith("HEAD") ? head : `${head}hello`)),
  );
  const transport = transportTo({ timeoutMs });
  for (const method of ["GET", "HEAD", "GET", "HEAD"])
    expect(await transport.exchange({ method, baseUrl: peer.origin, path: "/", headers: {} })).toMatchObject({
      kind: "response",
      status: 200,
    });
  transport.close();
});

/** A connection alone. @param undici what it gets for an unusual answer */
function connectionTo(
  { origin, port }: { readonly origin: string; readonly port: number },
  undici: UsualConnectionOptions["undici"],
): UsualConnection {
  return new UsualConnection({
    origin,
    spaceBytes: 1024,
    connect: (onread) => (_, callback) => {
      const socket = connect({ port, onread }, () => callback(null, socket));
      return socket;
    },
    undici,
  });
}

test.each([
  "a status without a body",
  "a status without a body, the last of its connection",
  "a status without a body that has a length",
  "a kept connection",
  "a length",
  "chunks",
])("%s needs no undici", (what) => {
  expect(read([Buffer.from(kept[what]!, "latin1")])).toMatchObject({ progress: "whole" });
});

describe("an unusual answer that no one can read", () => {
  const text = `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 21\r\n\r\n{"client_secret":"s"}`;

  test.each([true, false])("keeps what came, behind a change, where the service ends it: %s", async (ends) => {
    const peer = await startRawPeer((socket) =>
      socket.once("data", () => {
        const sent = inPieces(socket, Buffer.from(text), [20, text.length - 8]);
        if (ends) void sent.then(() => socket.end());
      }),
    );
    const missing = Object.assign(new Error("no such file"), { code: "ENOENT" });
    const connection = connectionTo(peer, () => Promise.reject(missing));
    const exchange = await new Promise<Exchange>((settle) => {
      const reception = new Reception({ maxBytes: maxBodyBytes, settle });
      connection.dispatch({ method: "POST", path: "/", reset: true }, reception);
      setTimeout(() => reception.break({ reason: "timeout", detail: "late" }), 300);
    });
    connection.destroy();
    expect(exchange).toMatchObject({ kind: "broken", sent: true, reason: ends ? "closed" : "timeout" });
    const partial = exchange.kind === "broken" ? exchange.partial : undefined;
    expect(partial?.status).toBe(201);
    expect(partial?.body.toString()).toContain('{"client_secret":"s"}');
    if (ends) expect(exchange).toMatchObject({ detail: expect.stringMatching(/could not be loaded \(ENOENT\)/) });
  });
});

describe("an unusual answer that goes on while undici is loaded", () => {
  const text = `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok}Content-Length: 9\r\n\r\n{"a":"b"}`;

  test.each([
    { what: "comes whole", cut: text.length, ends: false },
    { what: "comes whole, and then the end", cut: text.length, ends: true },
    { what: "comes in two pieces", cut: text.length - 4, ends: false },
    { what: "comes in two pieces, and then the end", cut: text.length - 4, ends: true },
    { what: "comes after its first note, and then the end", cut: text.indexOf("HTTP/1.1 200"), ends: true },
  ])("$what: it is whole, and in order", async ({ cut, ends }) => {
    const peer = await startRawPeer((socket) =>
      socket.once("data", () => {
        const sent = inPieces(socket, Buffer.from(text), cut === text.length ? [] : [cut]);
        if (ends) void sent.then(() => socket.end());
      }),
    );
    const connection = connectionTo(peer, async (stream) => {
      // By then all of it has come.
      await sleep(50);
      return new Client(peer.origin, {
        connect: (_, callback) => queueMicrotask(() => callback(null, stream as Socket)),
      });
    });
    const exchange = await new Promise<Exchange>((settle) =>
      connection.dispatch({ method: "POST", path: "/" }, new Reception({ maxBytes: maxBodyBytes, settle })),
    );
    connection.destroy();
    expect(exchange).toMatchObject({ kind: "response", status: 200 });
    expect(exchange.kind === "response" && exchange.body.toString()).toBe('{"a":"b"}');
    expect(peer.connections()).toBe(1);
  });
});

function told(exchange: Exchange): string {
  return JSON.stringify(exchange, (_, value: unknown) => (Buffer.isBuffer(value) ? value.toString("latin1") : value));
}

/** What is made of an answer, and what is handed to undici. What comes is overwritten after each piece. */
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
