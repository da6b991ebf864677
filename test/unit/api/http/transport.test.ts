// One exchange over real sockets: what it gives back, what it refuses, and what it never does.
import type { Socket } from "node:net";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import type { Exchange, ExchangeRequest } from "../../../../src/api/http/exchange.ts";
import { Failure } from "../../../../src/errors.ts";
import { answerJson, closePeers, startPeer, startRawPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

function get(baseUrl: string, more: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return { method: "GET", baseUrl, path: "/v1/entities", headers: {}, ...more };
}

function broken(exchange: Exchange): Extract<Exchange, { kind: "broken" }> {
  if (exchange.kind !== "broken") throw new Error(`status ${exchange.status}, not broken`);
  return exchange;
}

function whole(exchange: Exchange): Extract<Exchange, { kind: "response" }> {
  if (exchange.kind !== "response") throw new Error(`${exchange.reason}: ${exchange.detail}`);
  return exchange;
}

async function refusal(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
}

/** A server that answers while this thread stands still. @param size of each body, bytes */
async function startPeerInThread(size: number) {
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    const server = require("node:http").createServer((request, response) => {
      parentPort.postMessage("asked");
      setTimeout(() => response.end(Buffer.alloc(workerData, "x")), 100);
    });
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
    { eval: true, workerData: size },
  );
  const [port] = (await once(worker, "message")) as [number];
  return {
    origin: `http://127.0.0.1:${port}`,
    asked: () => once(worker, "message"),
    close: () => worker.terminate(),
  };
}

describe("what is sent", () => {
  test("method, path with query, headers and body, byte for byte, and no other origin's host", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 201, { ok: true }));
    const transport = transportTo();
    const answer = await transport.exchange({
      method: "POST",
      baseUrl: `${peer.origin}/base/`,
      path: "/v1/things?a=%20b",
      headers: { authorization: "Basic eDo=", "idempotency-key": "k-1" },
      body: '{"z":1,"a":"é"}',
    });
    expect(whole(answer)).toMatchObject({ status: 201, body: Buffer.from('{"ok":true}') });
    expect(peer.received).toMatchObject([
      {
        method: "POST",
        url: "/base/v1/things?a=%20b",
        body: '{"z":1,"a":"é"}',
        headers: {
          host: peer.origin.slice("http://".length),
          authorization: "Basic eDo=",
          "idempotency-key": "k-1",
          "user-agent": "integ-test/0",
          "accept-encoding": "identity",
          connection: "close",
        },
      },
    ]);
  });

  test("header names in lower case without a prototype, repeated ones joined", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () =>
        socket.end(
          "HTTP/1.1 200 OK\r\nRequest-ID: a\r\nX-Two: 1\r\nx-two: 2\r\n__proto__: x\r\nContent-Length: 0\r\n\r\n",
        ),
      );
    });
    const { headers } = whole(await transportTo().exchange(get(peer.origin)));
    expect(headers["request-id"]).toBe("a");
    expect(headers["x-two"]).toBe("1, 2");
    expect(Object.getPrototypeOf(headers)).toBeNull();
    expect(Object.keys(headers)).toContain("__proto__");
  });

  test.each(["\r\nx: y", "a\nb", "a\0b", "ключ", "a\x7f", "\ud800"])(
    "a header value with %j is refused, and nothing is sent",
    async (value) => {
      const peer = await startPeer((_, response) => answerJson(response, 200, {}));
      const failure = await refusal(transportTo().exchange(get(peer.origin, { headers: { "x-a": value } })));
      expect(failure.kind).toBe("usage");
      // It may be a secret.
      expect(failure.message).not.toContain(value);
      expect(peer.connections()).toBe(0);
    },
  );

  test.each<Partial<ExchangeRequest>>([
    { headers: { "a b": "c" } },
    { headers: { "": "c" } },
    { headers: { Host: "elsewhere.example" } },
    { headers: { "Content-Length": "0" } },
    { headers: { "Transfer-Encoding": "chunked" } },
    { headers: { "Proxy-Authorization": "Basic x" } },
    { path: "v1" },
    { path: "/v1 /x" },
    { path: "/v1\r\nx: y" },
    { path: "/v1#x" },
    { path: "/é" },
    { method: "CONNECT" },
    { method: "TRACE" },
    { method: "GET /x HTTP/1.1" },
  ])("%j is refused, and nothing is sent", async (wrong) => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    expect((await refusal(transportTo().exchange(get(peer.origin, wrong)))).kind).toBe("usage");
    expect(peer.connections()).toBe(0);
  });

  test.each([
    "http://api.example.com",
    "http://127.0.0.1.example.com",
    "http://10.0.0.1",
    "http://localhost.example.com",
    "ftp://localhost",
    "sandbox://us",
    "https://user:secret@api.example.com",
    "https://api.example.com?x=1",
    "https://api.example.com/#x",
    "no address",
    "",
  ])("nothing goes to %j", async (address) => {
    expect((await refusal(transportTo().exchange(get(address)))).kind).toBe("usage");
  });

  test("the logical address is looked up for each exchange, and never sent", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    const asked: string[] = [];
    const transport = transportTo({ locate: async (baseUrl) => (asked.push(baseUrl), peer.origin) });
    whole(await transport.exchange(get("sandbox://us")));
    expect(asked).toEqual(["sandbox://us"]);
    expect(JSON.stringify(peer.received)).not.toContain("sandbox");
  });
});

describe("connections", () => {
  test("reads share one, a change has its own", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    const transport = transportTo();
    for (let i = 0; i < 5; i++) whole(await transport.exchange(get(peer.origin)));
    expect(peer.connections()).toBe(1);
    whole(await transport.exchange(get(peer.origin, { method: "POST", body: "{}" })));
    expect(peer.connections()).toBe(2);
    whole(await transport.exchange(get(peer.origin)));
    expect(peer.connections()).toBe(2);
    whole(await transport.exchange(get(peer.origin, { method: "DELETE" })));
    expect(peer.connections()).toBe(3);
    transport.close();
  });

  test("reads at once do not wait for each other", async () => {
    const waiting: (() => void)[] = [];
    const peer = await startPeer((_, response) => {
      waiting.push(() => answerJson(response, 200, {}));
      if (waiting.length === 3) for (const go of waiting) go();
    });
    const transport = transportTo();
    await Promise.all([1, 2, 3].map(async () => whole(await transport.exchange(get(peer.origin)))));
    expect(peer.connections()).toBe(3);
    transport.close();
  });

  test("one that the server has closed meanwhile is no broken read", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}");
        setTimeout(() => socket.end(), 10);
      });
    });
    const transport = transportTo();
    for (let i = 0; i < 3; i++) {
      whole(await transport.exchange(get(peer.origin)));
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect(peer.connections()).toBe(3);
  });

  describe("of a walk that the server closes after each response, and does not say so", () => {
    const response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const closings: Record<string, (socket: Socket) => void> = {
      "with its last byte": (socket) => void socket.end(response),
      "a turn later": (socket) => void (socket.write(response), setImmediate(() => socket.end())),
      "when the next request comes": (socket) =>
        void (socket.write(response), socket.once("data", () => socket.destroy())),
      "with a reset": (socket) => void (socket.write(response), socket.once("data", () => socket.resetAndDestroy())),
    };

    test.each(Object.keys(closings))("%s: every page comes, and each is asked for once more at most", async (name) => {
      let asked = 0;
      const peer = await startRawPeer((socket) => {
        socket.on("data", () => asked++);
        socket.once("data", () => closings[name]!(socket));
      });
      const transport = transportTo();
      for (let page = 0; page < 5; page++) whole(await transport.exchange(get(peer.origin)));
      expect(peer.connections()).toBe(5);
      expect(asked).toBeLessThanOrEqual(9);
      transport.close();
    });

    test.each([
      ["before its first byte, on a new connection", "", 1],
      ["within a response, on one that had carried another", "HTTP/1.1 200", 2],
    ])("%s: broken, and not asked for again", async (_when, begun, broken) => {
      let asked = 0;
      const peer = await startRawPeer((socket) => {
        socket.on("data", () => {
          asked += 1;
          if (asked === broken) socket.end(begun);
          else socket.write(response);
        });
      });
      const transport = transportTo();
      for (let page = 1; page < broken; page++) whole(await transport.exchange(get(peer.origin)));
      const end = await transport.exchange(get(peer.origin));
      expect(end).toMatchObject({ kind: "broken", sent: true, reason: "closed" });
      expect(asked).toBe(broken);
      transport.close();
    });
  });

  test("an answer that goes on beyond its length does not reach the next question", async () => {
    let count = 0;
    const peer = await startRawPeer((socket) => {
      socket.on("data", () =>
        socket.write(
          `HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${++count}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
        ),
      );
    });
    const transport = transportTo();
    for (let i = 0; i < 3; i++) {
      const answer = await transport.exchange(get(peer.origin));
      if (answer.kind === "response") expect(answer.body.toString()).not.toBe("evil");
    }
    transport.close();
  });
});

describe("what comes back", () => {
  test.each([301, 302, 303, 307, 308])("a redirect (%d) is an answer, and nobody goes there", async (status) => {
    const there = await startPeer((_, response) => answerJson(response, 200, {}));
    const peer = await startPeer((_, response) => answerJson(response, status, "", { location: `${there.origin}/v1` }));
    expect(whole(await transportTo().exchange(get(peer.origin))).status).toBe(status);
    expect(there.connections()).toBe(0);
    expect(peer.received).toHaveLength(1);
  });

  test("interim answers are passed over", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () =>
        socket.end("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
      );
    });
    expect(whole(await transportTo().exchange(get(peer.origin))).body.toString()).toBe("{}");
  });

  const gzipped = gzipSync('{"a":1}');

  test.each([
    ["identity", Buffer.from('{"a":1}')],
    ["gzip", gzipped],
    ["GZIP", gzipped],
    ["x-gzip", gzipped],
    ["deflate", deflateSync('{"a":1}')],
    ["br", brotliCompressSync('{"a":1}')],
  ])("encoding %s is undone", async (encoding, body) => {
    const peer = await startPeer((_, response) => {
      response.writeHead(200, { "content-encoding": encoding });
      response.end(body);
    });
    expect(whole(await transportTo().exchange(get(peer.origin))).body.toString()).toBe('{"a":1}');
  });

  test.each([
    ["br", gzipped, "malformed"],
    ["deflate", gzipped, "malformed"],
    ["snappy", gzipped, "malformed"],
    ["constructor", gzipped, "malformed"],
    ["br", brotliCompressSync(Buffer.alloc(50 * 1024 * 1024)), "too_large"],
    ["gzip, gzip", gzipSync(gzipped), "malformed"],
    ["gzip", Buffer.from("no gzip at all"), "malformed"],
    ["gzip", gzipped.subarray(0, -3), "malformed"],
    ["gzip", gzipSync(Buffer.alloc(50 * 1024 * 1024)), "too_large"],
  ])("encoding %s is refused where it is not one sound gzip within the limit (%#)", async (encoding, body, reason) => {
    const peer = await startPeer((_, response) => {
      response.writeHead(200, { "content-encoding": encoding });
      response.end(body);
    });
    expect(broken(await transportTo().exchange(get(peer.origin)))).toMatchObject({ sent: true, reason });
  });

  test("an encoding that is refused leaves the body as it came", async () => {
    const peer = await startPeer((_, response) => response.writeHead(201, { "content-encoding": "snappy" }).end("{}"));
    const { partial } = broken(await transportTo().exchange(get(peer.origin)));
    expect([partial?.status, partial?.body.toString()]).toEqual([201, "{}"]);
  });

  test("an error is never longer than any other body, also where a long page was asked for", async () => {
    const peer = await startPeer((_, response) => response.writeHead(503).end(Buffer.alloc(2 * 1024 * 1024)));
    expect(broken(await transportTo().exchange(get(peer.origin, { maxBytes: 64 * 1024 * 1024 })))).toMatchObject({
      reason: "too_large",
    });
  });

  test("a body up to the limit comes, a byte more does not: told, untold and unfolded", async () => {
    const bodies = { told: 1024, untold: 1024, unfolded: 1024 };
    for (const how of Object.keys(bodies))
      for (const [length, fits] of [
        [1024, true],
        [1025, false],
      ] as const) {
        const peer = await startPeer((_, response) => {
          const body = Buffer.alloc(length, 0x20);
          if (how === "told") response.setHeader("content-length", length);
          if (how === "unfolded") response.setHeader("content-encoding", "gzip");
          response.write(how === "unfolded" ? gzipSync(body) : body);
          response.end();
        });
        const answer = await transportTo().exchange(get(peer.origin, { maxBytes: 1024 }));
        if (fits) expect(whole(answer).body.length).toBe(1024);
        else expect(broken(answer)).toMatchObject({ sent: true, reason: "too_large" });
      }
  });

  test("an answer without end ends at the limit, and its connection with it", async () => {
    let closed = false;
    const peer = await startPeer((_, response) => {
      response.on("close", () => (closed = true));
      const more = (): void => {
        // Not at once: what is written to a connection that has ended calls back before anybody hears of its end (Node 26).
        if (!closed) response.write(Buffer.alloc(64 * 1024), () => setImmediate(more));
      };
      more();
    });
    expect(broken(await transportTo().exchange(get(peer.origin)))).toMatchObject({ reason: "too_large" });
    await expect.poll(() => closed).toBe(true);
  });

  test("headers without end", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n");
        const more = (): void => {
          if (!socket.destroyed)
            socket.write(`x-${"a".repeat(1000)}: ${"b".repeat(1000)}\r\n`, () => setImmediate(more));
        };
        more();
      });
    });
    expect(broken(await transportTo().exchange(get(peer.origin)))).toMatchObject({ sent: true, reason: "too_large" });
  });

  test.each([
    ["SSH-2.0-OpenSSH_9.6\r\n", "malformed"],
    ["HTTP/1.1 abc\r\n\r\n", "malformed"],
    ["HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "closed"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed"],
    ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "closed"],
    ["", "closed"],
  ])("%j is no answer: %s", async (bytes, reason) => {
    const peer = await startRawPeer((socket) => socket.once("data", () => socket.end(bytes)));
    for (const method of ["GET", "POST"])
      expect(broken(await transportTo().exchange(get(peer.origin, { method })))).toMatchObject({ sent: true, reason });
  });
});

describe("time", () => {
  test("a byte now and then does not keep it alive", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        const drip = setInterval(() => socket.write("x"), 20);
        socket.on("close", () => clearInterval(drip));
      });
    });
    const startedAt = Date.now();
    const answer = broken(await transportTo({ timeoutMs: 300 }).exchange(get(peer.origin)));
    expect(answer).toMatchObject({ sent: true, reason: "timeout", detail: "no full response within 0.3 s" });
    expect(answer.partial?.status).toBe(200);
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(295);
  });

  test("nor does a head that never ends", async () => {
    const peer = await startRawPeer((socket) => {
      const drip = setInterval(() => socket.write("HTTP/1.1 200 OK\r\nx-a: b\r\n".slice(0, 1)), 20);
      socket.on("close", () => clearInterval(drip));
    });
    const answer = broken(await transportTo({ timeoutMs: 200 }).exchange(get(peer.origin)));
    expect(answer.sent).toBe(true);
    expect(["timeout", "malformed"]).toContain(answer.reason);
  });

  // As a laptop that slept, or a process that was stopped: what arrived meanwhile stands in the socket.
  test.each([100, 500_000])("an answer of %i bytes that arrived while nothing ran is read", async (size) => {
    const peer = await startPeerInThread(size);
    try {
      for (const method of ["GET", "POST"]) {
        const coming = transportTo({ timeoutMs: 200 }).exchange(
          get(peer.origin, { method, path: "/v1/a", maxBytes: 64 * 1024 * 1024 }),
        );
        await peer.asked();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
        expect(whole(await coming).body.length).toBe(size);
      }
    } finally {
      await peer.close();
    }
  });

  test("tiny chunks that never pause get no more time, though they come to an end", async () => {
    const peer = await startRawPeer((socket) => {
      socket.setNoDelay(true);
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        const until = Date.now() + 3000;
        const more = (): void => {
          if (socket.destroyed) return;
          if (Date.now() > until) return void socket.write("0\r\n\r\n");
          socket.write("1\r\nx\r\n", () => setImmediate(more));
        };
        more();
      });
    });
    for (const method of ["GET", "POST"])
      expect(broken(await transportTo({ timeoutMs: 200 }).exchange(get(peer.origin, { method })))).toMatchObject({
        sent: true,
        reason: "timeout",
      });
  });

  test("a limit beyond what a timer holds is no limit of nothing", async () => {
    const peer = await startPeer((_, response) => void setTimeout(() => answerJson(response, 200, {}), 50));
    whole(await transportTo({ timeoutMs: 2 ** 40 }).exchange(get(peer.origin)));
  });
});
