// A request that leaves before it is asked for: when it does, who is given its response, and what ends it.
import { once } from "node:events";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Ahead } from "../../../../src/api/http/ahead.ts";
import { BodyBuffer, type Exchange, type ExchangeRequest } from "../../../../src/api/http/exchange.ts";
import type { TransportOptions } from "../../../../src/api/http/transport.ts";
import { closePeers, startPeer, startRawPeer, transportTo } from "../peer.ts";
import { cert, key } from "./localhost-certificate.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await closePeers();
});

const pathOf = (page: number | string): string => `/v1/entities?page=${page}`;
const headers = { accept: "application/json" };

/** A walk: each body says which page it is, and the next one has the number after it. */
function walkOf(baseUrl: string, options: Partial<TransportOptions> & { readonly signal?: AbortSignal } = {}) {
  const ahead = new Ahead<Exchange>();
  const transport = transportTo({ locate: (url) => url, ...options });
  const buffers = [new BodyBuffer(), new BodyBuffer()] as const;
  const called: number[] = [];
  const next: ExchangeRequest["next"] = {
    ahead,
    of(body) {
      const page = Number(body.toString());
      called.push(page);
      return { path: pathOf(page + 1), buffer: buffers[(page + 1) % 2]! };
    },
    read: (response) => response,
  };
  const request = (page: number, more: Partial<ExchangeRequest> = {}): ExchangeRequest => ({
    method: "GET",
    baseUrl,
    path: pathOf(page),
    headers,
    buffer: buffers[page % 2]!,
    next,
    ...more,
  });
  const ask = async (page: number, more?: Partial<ExchangeRequest>): Promise<Exchange> =>
    transport.exchange(request(page, more));
  /** The same without asking, if the response is as usual. */
  const wait = async (page: number): Promise<Exchange> => (await ahead.usual()) ?? ask(page);
  return { ask, wait, ahead, called, buffers, next, close: () => transport.close() };
}

/** How a walk comes to its pages. */
const ways = ["ask", "wait"] as const;

function textOf(exchange: Exchange): string {
  return exchange.kind === "response" ? exchange.body.toString() : `${exchange.reason}: ${exchange.detail}`;
}

const json = { "content-type": "application/json" };
const answer = (page: string | number): string =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n${page}`;
const numberIn = (data: Buffer): string => /page=(\d)/.exec(data.toString())?.[1] ?? "";

const pause = (ms = 40): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Each body is the number of the page that was asked for. */
async function startPages() {
  const peer = await startPeer(({ url }, response) => void response.writeHead(200, json).end(/\d+$/.exec(url)?.[0]));
  return { ...peer, pages: () => peer.received.map(({ url }) => Number(/\d+$/.exec(url)?.[0])) };
}

/** The same but for the second page, which is responded to so. */
async function startSecond(respond: (socket: Socket) => void) {
  const asked: string[] = [];
  const peer = await startRawPeer((socket) => {
    socket.on("data", (data) => {
      const page = numberIn(data);
      asked.push(page);
      if (page === "2") respond(socket);
      else socket.write(answer(page));
    });
  });
  return { ...peer, asked };
}

describe("the request that follows", () => {
  test.each(ways)("leaves by itself, is sent once, and whoever does %s for it is given its response", async (way) => {
    const peer = await startPages();
    const { [way]: get, close } = walkOf(peer.origin);
    for (let page = 1; page <= 5; page++) expect(textOf(await get(page))).toBe(String(page));
    await pause();
    expect(peer.pages()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(peer.connections()).toBe(1);
    close();
  });

  test("is the only one: its response has none behind it before someone asks for it", async () => {
    const peer = await startPages();
    const { ask, called, close } = walkOf(peer.origin);
    expect(textOf(await ask(1))).toBe("1");
    await pause();
    expect([peer.pages(), called]).toEqual([[1, 2], [1]]);
    expect(textOf(await ask(2))).toBe("2");
    expect(textOf(await ask(3))).toBe("3");
    await pause();
    expect([peer.pages(), called]).toEqual([
      [1, 2, 3, 4],
      [1, 3],
    ]);
    close();
  });

  const others: Record<string, (more: { readonly buffers: readonly BodyBuffer[] }) => Partial<ExchangeRequest>> = {
    path: () => ({ path: pathOf(7) }),
    buffer: ({ buffers }) => ({ buffer: buffers[1]! }),
    headers: () => ({ headers: { ...headers } }),
    signal: () => ({ signal: new AbortController().signal }),
    "most bytes": () => ({ maxBytes: 100 }),
    method: () => ({ method: "POST", body: "{}" }),
  };
  test.each(Object.keys(others))("is ended if another one is asked for: another %s", async (what) => {
    const asked: string[] = [];
    const ended: string[] = [];
    const peer = await startRawPeer((socket) => {
      const here: string[] = [];
      socket.on("data", (data) => {
        const page = numberIn(data);
        here.push(page);
        asked.push(page);
        // The one that leaves by itself is not answered.
        if (here.length === 1) socket.write(answer(page));
      });
      socket.on("close", () => ended.push(here.join(", ")));
    });
    const walk = walkOf(peer.origin);
    expect(textOf(await walk.ask(1))).toBe("1");
    await pause();
    expect([asked, ended]).toEqual([["1", "2"], []]);
    const more = others[what]!(walk);
    const page = what === "path" ? "7" : "2";
    expect(textOf(await walk.ask(2, more))).toBe(page);
    await pause();
    expect(asked.slice(0, 3)).toEqual(["1", "2", page]);
    expect(ended).toContain("1, 2");
    walk.close();
  });

  test("is ended if the address leads elsewhere now", async () => {
    const [peer, other] = [await startPages(), await startPages()];
    let origin = peer.origin;
    const { ask, close } = walkOf("https://logical.example", { locate: () => origin });
    expect(textOf(await ask(1))).toBe("1");
    await pause();
    origin = other.origin;
    expect(textOf(await ask(2))).toBe("2");
    await pause();
    expect([peer.pages(), other.pages()]).toEqual([
      [1, 2],
      [2, 3],
    ]);
    close();
  });

  test("is not sent twice over if it is known again: the page before it was asked for again", async () => {
    const peer = await startPages();
    const { ask, close } = walkOf(peer.origin);
    for (const page of [1, 1, 2, 3]) expect(textOf(await ask(page))).toBe(String(page));
    await pause();
    expect(peer.pages()).toEqual([1, 2, 1, 2, 3, 4]);
    close();
  });
});

describe("nothing leaves by itself", () => {
  const answers: Record<
    string,
    { readonly status?: number; readonly headers?: Record<string, string>; body?: Buffer }
  > = {
    "another success": { status: 201 },
    "a redirect": { status: 302 },
    "a refusal": { status: 404 },
    "an error": { status: 500 },
    "a body that is encoded": { headers: { "content-encoding": "gzip" }, body: gzipSync("1") },
    "a page of text": { headers: { "content-type": "text/html" } },
  };
  test.each(Object.keys(answers))("behind %s", async (what) => {
    const { status = 200, headers: own = {}, body = Buffer.from("1") } = answers[what]!;
    const peer = await startPeer((_, response) => void response.writeHead(status, { ...json, ...own }).end(body));
    const { ask, called, close } = walkOf(peer.origin);
    expect(textOf(await ask(1))).toBe("1");
    await pause();
    expect([peer.received.length, called]).toEqual([1, []]);
    close();
  });

  test("beside a debug log: a request would be shown in it before the response that it follows", async () => {
    const peer = await startPages();
    const { ask, called, close } = walkOf(peer.origin, { debug: () => {} });
    expect(textOf(await ask(1))).toBe("1");
    await pause();
    expect([peer.pages(), called]).toEqual([[1], []]);
    close();
  });

  test("when undici reads, from an unusual response on: its client waits for nothing before a request", async () => {
    const { asked, ...peer } = await startSecond((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
      socket.write(`1;extension=x\r\n2\r\n0\r\n\r\n`);
    });
    const { ask, called, close } = walkOf(peer.origin);
    for (let page = 1; page <= 4; page++) expect(textOf(await ask(page))).toBe(String(page));
    await pause();
    expect([asked, called, peer.connections()]).toEqual([["1", "2", "3", "4"], [1], 1]);
    close();
  });

  const unknown: Record<string, () => ReturnType<NonNullable<ExchangeRequest["next"]>["of"]>> = {
    "is not known": () => undefined,
    "cannot be said": () => {
      throw new Error("half of a character");
    },
    "is nothing that HTTP can carry": () => ({ path: "/v1/entities?page=\r\nHost: evil", buffer: new BodyBuffer() }),
  };
  test.each(Object.keys(unknown))("if what follows %s", async (what) => {
    const peer = await startPages();
    const { ask, close } = walkOf(peer.origin);
    expect(textOf(await ask(1, { next: { ahead: new Ahead(), of: unknown[what]! } }))).toBe("1");
    await pause();
    expect(peer.pages()).toEqual([1]);
    close();
  });
});

describe.each(ways)("what the service does meanwhile, to those who %s", (way) => {
  const doublings: Record<string, (socket: Socket, page: string) => void> = {
    "at once": (socket, page) => void socket.write(answer(page) + answer(page)),
    "a turn later": (socket, page) => void (socket.write(answer(page)), setImmediate(() => socket.write(answer(page)))),
    "when it was read": (socket, page) => {
      socket.write(answer(page));
      setImmediate(() => setImmediate(() => socket.write(answer(page))));
    },
    "in parts": (socket, page) =>
      void (socket.write(answer(page) + answer(page).slice(0, 20)),
      setImmediate(() => socket.write(answer(page).slice(20)))),
  };
  test.each(Object.keys(doublings))("a response that comes twice, %s, is not taken for the next one", async (how) => {
    const peer = await startRawPeer((socket) => {
      socket.on("data", (data) => doublings[how]!(socket, numberIn(data)));
    });
    const { [way]: get, close } = walkOf(peer.origin);
    for (let page = 1; page <= 6; page++) expect(textOf(await get(page))).toBe(String(page));
    close();
  });

  const closings: Record<string, (socket: Socket, page: string) => void> = {
    "with the last byte": (socket, page) => void socket.end(answer(page)),
    "a turn later": (socket, page) => void (socket.write(answer(page)), setImmediate(() => socket.end())),
    "when the next request comes": (socket, page) =>
      void (socket.write(answer(page)), socket.once("data", () => socket.destroy())),
    "with a reset": (socket, page) =>
      void (socket.write(answer(page)), socket.once("data", () => socket.resetAndDestroy())),
    "and says so": (socket, page) => void socket.end(answer(page).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")),
  };
  test.each(Object.keys(closings))(
    "it closes the connection %s: every page comes, asked for twice at most",
    async (how) => {
      const asked: string[] = [];
      const peer = await startRawPeer((socket) => {
        socket.on("data", (data) => void asked.push(numberIn(data)));
        socket.once("data", (data) => closings[how]!(socket, numberIn(data)));
      });
      const { [way]: get, close } = walkOf(peer.origin);
      for (let page = 1; page <= 6; page++) expect(textOf(await get(page))).toBe(String(page));
      for (const page of "123456") expect(asked.filter((each) => each === page).length).toBeLessThanOrEqual(2);
      close();
    },
  );

  test("it takes its time for each page: each has all of the time", async () => {
    const peer = await startRawPeer((socket) => {
      socket.on("data", (data) => void setTimeout(() => socket.write(answer(numberIn(data))), 400));
    });
    const { [way]: get, close } = walkOf(peer.origin, { timeoutMs: 1500 });
    for (let page = 1; page <= 5; page++) expect(textOf(await get(page))).toBe(String(page));
    close();
  });

  test("it has responded to all: one timer was enough, and is not left", async () => {
    const set = vi.spyOn(globalThis, "setTimeout");
    const clear = vi.spyOn(globalThis, "clearTimeout");
    const peer = await startRawPeer((socket) => {
      // Behind the last one nothing leaves: it is another success.
      const answerOf = (page: string): string => (page === "4" ? answer(page).replace("200", "203") : answer(page));
      socket.on("data", (data) => void socket.write(answerOf(numberIn(data))));
    });
    const { [way]: get, close } = walkOf(peer.origin, { timeoutMs: 98_765 });
    for (let page = 1; page <= 4; page++) expect(textOf(await get(page))).toBe(String(page));
    close();
    const timers = set.mock.calls.flatMap(([, ms], at) => (ms === 98_765 ? [set.mock.results[at]!.value] : []));
    expect(timers).toHaveLength(1);
    for (const timer of timers) expect(clear.mock.calls.filter(([cleared]) => cleared === timer)).toHaveLength(1);
  });

  test("it is gone: the page that came is handed on, and the next one is broken", async () => {
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        socket.write(answer(1));
        socket.once("data", () => void peer.close());
      });
    });
    const { [way]: get, close } = walkOf(peer.origin);
    expect(textOf(await get(1))).toBe("1");
    expect(textOf(await get(2))).toMatch(/^refused: /);
    close();
  });

  test("it does not respond: the next one is out of time", async () => {
    const peer = await startRawPeer((socket) => socket.once("data", () => socket.write(answer(1))));
    const { [way]: get, close } = walkOf(peer.origin, { timeoutMs: 150 });
    expect(textOf(await get(1))).toBe("1");
    expect(textOf(await get(2))).toBe("timeout: no full response within 0.15 s");
    close();
  });
});

describe("without being asked for", () => {
  test("there is nothing if nothing has left", async () => {
    const peer = await startPages();
    const { ask, ahead, close } = walkOf(peer.origin, { debug: () => {} });
    expect(await ahead.usual()).toBeUndefined();
    await ask(1);
    expect(await ahead.usual()).toBeUndefined();
    close();
  });

  const unusual: Record<string, { readonly status?: number; readonly head?: string; readonly body?: Buffer }> = {
    "another success": { status: 201 },
    "a redirect": { status: 302 },
    "a refusal": { status: 401 },
    "an error": { status: 503 },
    "a body that is encoded": { head: "Content-Encoding: gzip\r\n", body: gzipSync("2") },
    "a page of text": { head: "Content-Type: text/html\r\n" },
  };
  test.each(Object.keys(unusual))("%s is there for those who ask: it is not sent again", async (what) => {
    const { status = 200, head = "", body = Buffer.from("2") } = unusual[what]!;
    const type = what === "a page of text" ? "" : "Content-Type: application/json\r\n";
    const { asked, ...peer } = await startSecond((socket) => {
      socket.write(`HTTP/1.1 ${status} Said\r\n${type}${head}Content-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
    });
    const { ask, ahead, close } = walkOf(peer.origin);
    await ask(1);
    expect(await ahead.usual()).toBeUndefined();
    expect(ahead.isUnderway).toBe(true);
    const exchange = await ask(2);
    expect([textOf(exchange), exchange.kind === "response" && exchange.status]).toEqual(["2", status]);
    expect(textOf(await ask(3))).toBe("3");
    expect(asked.slice(0, 3)).toEqual(["1", "2", "3"]);
    close();
  });

  test("nothing that the caller cannot read", async () => {
    const peer = await startPages();
    const { ask, ahead, next, close } = walkOf(peer.origin);
    await ask(1, { next: { ...next, read: () => undefined } });
    expect(await ahead.usual()).toBeUndefined();
    expect(textOf(await ask(2))).toBe("2");
    await pause();
    expect(peer.pages().slice(0, 2)).toEqual([1, 2]);
    close();
  });

  test("no header repeats the credential", async () => {
    const peer = await startPeer(({ url, headers: { authorization } }, response) => {
      response.writeHead(200, { ...json, "request-id": `of ${authorization}` }).end(/\d+$/.exec(url ?? "")?.[0]);
    });
    const { ask, ahead, next, close } = walkOf(peer.origin);
    await ask(1, { next, headers: { ...headers, authorization: "Bearer a-long-secret-token" } });
    const response = (await ahead.usual()) as Extract<Exchange, { kind: "response" }>;
    expect(response.headers["request-id"]).toBe("of Bearer [secret]");
    close();
  });
});

test("a page is not copied: it stays where the connection received it", async () => {
  const peer = await startRawPeer((socket) => {
    socket.on("data", (data) => void socket.write(answer(numberIn(data))));
  });
  const { ask, wait, buffers, close } = walkOf(peer.origin);
  await ask(1);
  for (const page of [2, 3, 4, 5]) {
    const exchange = await wait(page);
    const { body } = exchange as Extract<Exchange, { kind: "response" }>;
    expect(body.toString()).toBe(String(page));
    // Its head is before it.
    expect([body.byteOffset, buffers[page % 2]!.holds(body)]).toEqual([answer(page).length - 1, true]);
  }
  close();
});

describe("over TLS", () => {
  async function startTls() {
    const pages: number[] = [];
    let connections = 0;
    const server = createServer({ cert, key }, ({ url }, response) => {
      pages.push(Number(/\d+$/.exec(url ?? "")?.[0]));
      response.writeHead(200, json).end(String(pages.at(-1)));
    });
    server.on("secureConnection", () => connections++);
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    return { pages, port, origin: `https://localhost:${port}`, connections: () => connections };
  }

  test.each(ways)("the same, over one connection: %s", async (way) => {
    const peer = await startTls();
    const { [way]: get, close } = walkOf(peer.origin, { ca: cert });
    for (let page = 1; page <= 5; page++) expect(textOf(await get(page))).toBe(String(page));
    await pause();
    expect([peer.pages, peer.connections()]).toEqual([[1, 2, 3, 4, 5, 6], 1]);
    close();
  });

  test("through a proxy nothing leaves by itself: undici's client waits for nothing before a request", async () => {
    const peer = await startTls();
    const proxy = await startRawPeer((near) => {
      near.once("data", () => {
        near.write("HTTP/1.1 200 OK\r\n\r\n");
        const far = connect(peer.port, "127.0.0.1");
        far.on("error", () => near.destroy());
        far.pipe(near).pipe(far);
      });
    });
    const { ask, called, close } = walkOf(peer.origin, { ca: cert, proxy: { httpsProxy: proxy.origin } });
    for (let page = 1; page <= 3; page++) expect(textOf(await ask(page))).toBe(String(page));
    await pause();
    expect([peer.pages, called, proxy.connections()]).toEqual([[1, 2, 3], [], 1]);
    close();
  });
});

test("an abort ends what is under way, with its connection, and nothing more is sent", async () => {
  const abort = new AbortController();
  let ended = false;
  const peer = await startRawPeer((socket) => {
    socket.once("data", () => socket.write(answer(1)));
    socket.once("close", () => (ended = true));
  });
  const { ask, close } = walkOf(peer.origin, { signal: abort.signal });
  expect(textOf(await ask(1))).toBe("1");
  await pause();
  abort.abort();
  await pause();
  expect(ended).toBe(true);
  expect(textOf(await ask(2))).toBe("interrupted: interrupted");
  expect(peer.connections()).toBe(1);
  close();
});

test("a response does not keep the one before it", async () => {
  const peer = await startPages();
  const { ask, close } = walkOf(peer.origin);
  const given: WeakRef<Exchange>[] = [];
  for (let page = 1; page <= 60; page++) given.push(new WeakRef(await ask(page)));
  await pause();
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  expect(given.filter((exchange) => exchange.deref()).length).toBeLessThan(5);
  close();
});
