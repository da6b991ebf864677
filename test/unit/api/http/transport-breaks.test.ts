// Cuts exchanges at every byte, and makes connections fail. Results must show if the request may have arrived.
import dns from "node:dns";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import type { ExchangeRequest } from "../../../../src/api/http/exchange.ts";
import { Failure } from "../../../../src/errors.ts";
import { cert, key } from "./localhost-certificate.ts";
import { answerJson, closePeers, deadPort, startPeer, startRawPeer, transportTo } from "../peer.ts";

afterEach(closePeers);

function post(baseUrl: string, more: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return { method: "POST", baseUrl, path: "/v1/oauth_clients", headers: {}, body: '{"a":1}', ...more };
}

function page(baseUrl: string): ExchangeRequest {
  return { method: "GET", baseUrl, path: "/v1/entities", headers: {} };
}

describe.each([
  ["a change", post],
  ["a page", page],
])("a response to %s, truncated at every byte", (_, request) => {
  const head = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nRequest-Id: r1\r\n";
  const framings: Record<string, string> = {
    "with a length": `${head}Content-Length: 13\r\n\r\n{"a":"secret"}`.replace("13", "14"),
    "in chunks": `${head}Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\na\r\n:"secret"}\r\n0\r\n\r\n`,
    "in chunks with a trailer": `${head}Transfer-Encoding: chunked\r\n\r\ne\r\n{"a":"secret"}\r\n0\r\nSum: 1\r\n\r\n`,
    "in chunks, the last of its connection": `${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{"a":"secret"}\r\n0\r\n\r\n`,
  };

  test.each(Object.entries(framings))("%s is never accepted as complete", async (__, text) => {
    const bytes = Buffer.from(text);
    const body = text.indexOf("\r\n\r\n") + 4;
    let length = 0;
    let how: "end" | "reset" = "end";
    const peer = await startRawPeer((socket) => {
      socket.once("data", () => {
        if (length === 0) return how === "end" ? socket.end() : socket.resetAndDestroy();
        socket.write(bytes.subarray(0, length), () => (how === "end" ? socket.end() : socket.destroySoon()));
      });
    });
    const transport = transportTo();
    for (how of ["end", "reset"] as const)
      for (length = 0; length < bytes.length; length++) {
        const exchange = await transport.exchange(request(peer.origin));
        const place = `${how} after ${length} of ${bytes.length} bytes`;
        expect(exchange, place).toMatchObject({ kind: "broken", sent: true, reason: "closed" });
        // integ keeps the received part of the body, because it may contain a secret.
        const partial = exchange.kind === "broken" ? exchange.partial : undefined;
        expect(partial?.status, place).toBe(length < body ? undefined : 201);
      }
    length = bytes.length;
    how = "end";
    expect(await transport.exchange(request(peer.origin))).toMatchObject({ kind: "response", status: 201 });
  });

  test("the received part of the body is returned", async () => {
    const peer = await startRawPeer((socket) =>
      socket.once("data", () => socket.end(`${head}Content-Length: 30\r\n\r\n{"client_secret":"s`)),
    );
    const exchange = await transportTo().exchange(request(peer.origin));
    expect(exchange.kind === "broken" && exchange.partial?.body.toString()).toBe('{"client_secret":"s');
  });
});

test("a request cut at any byte may have arrived, once a connection was made", async () => {
  let length = Infinity;
  let whole = "";
  const peer = await startRawPeer((socket) => {
    let seen = "";
    socket.on("data", (chunk: Buffer) => {
      seen += chunk.toString("latin1");
      if (seen.length >= length) return void socket.resetAndDestroy();
      if (!seen.endsWith('{"a":1}')) return;
      whole = seen;
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
  });
  const transport = transportTo();
  expect(await transport.exchange(post(peer.origin))).toMatchObject({ kind: "response" });
  for (length = 1; length <= whole.length; length++)
    expect(await transport.exchange(post(peer.origin)), `${length} bytes`).toMatchObject({
      kind: "broken",
      sent: true,
      reason: "closed",
    });
});

describe("without a connection, the request was certainly not sent", () => {
  test("if the port is closed", async () => {
    const origin = `http://127.0.0.1:${await deadPort()}`;
    for (let i = 0; i < 2; i++)
      expect(await transportTo().exchange(post(origin))).toMatchObject({
        kind: "broken",
        sent: false,
        reason: "refused",
      });
  });

  test("if the host name is invalid (RFC 6761)", async () => {
    const exchange = await transportTo().exchange(post("https://no-such-host.invalid"));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "dns" });
  });

  test("if the peer does not use TLS", async () => {
    const peer = await startRawPeer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const exchange = await transportTo().exchange(post(`https://127.0.0.1:${peer.port}`));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "tls" });
  });

  test("if the handshake is cut or hangs", async () => {
    const cutting = await startRawPeer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const cut = await transportTo().exchange(post(`https://127.0.0.1:${cutting.port}`));
    expect(cut).toMatchObject({ kind: "broken", sent: false });
    expect(["tls", "refused"]).toContain(cut.kind === "broken" && cut.reason);

    let closed = false;
    const hanging = await startRawPeer((socket) => socket.on("close", () => (closed = true)).resume());
    const exchange = await transportTo({ timeoutMs: 150 }).exchange(post(`https://127.0.0.1:${hanging.port}`));
    expect(exchange).toMatchObject({ sent: false, reason: "timeout", detail: "no connection within 0.15 s" });
    // A connection that outlives its exchange would keep the process running.
    await expect.poll(() => closed).toBe(true);
  });

  test("if the certificate is not trusted, whatever the environment allows", async () => {
    const server = await listenTls({ cert, key });
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    try {
      for (const allowed of [undefined, "0"]) {
        if (allowed === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
        else process.env.NODE_TLS_REJECT_UNAUTHORIZED = allowed;
        const exchange = await transportTo().exchange(post(`https://localhost:${server.port}`));
        expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "tls" });
      }
      expect(server.bytes()).toBe(0);
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
      server.close();
    }
  });
});

describe("leases", () => {
  function simulatedLeases(held: boolean) {
    const calls: string[] = [];
    return {
      calls,
      extend: async () => void calls.push("extend"),
      areHeld: () => (calls.push("areHeld"), held),
    };
  }

  test("are extended before a change and checked when the request is written; reads need none", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    const leases = simulatedLeases(true);
    const transport = transportTo({ leases });
    expect(await transport.exchange(page(peer.origin))).toMatchObject({ kind: "response" });
    expect(leases.calls).toEqual([]);
    expect(await transport.exchange(post(peer.origin))).toMatchObject({ kind: "response" });
    expect(leases.calls).toEqual(["extend", "areHeld"]);
  });

  test("that are lost before the request is written: nothing is sent", async () => {
    let bytes = 0;
    const peer = await startRawPeer((socket) => socket.on("data", (chunk: Buffer) => (bytes += chunk.length)));
    const exchange = await transportTo({ leases: simulatedLeases(false) }).exchange(post(peer.origin));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, detail: expect.stringContaining("lost its lease") });
    await expect.poll(() => peer.connections()).toBe(1);
    expect(bytes).toBe(0);
  });

  test("that another process has: its error, and no connection", async () => {
    const peer = await startRawPeer(() => {});
    const extend = (): Promise<void> => Promise.reject(new Failure("conflict", "another process"));
    const exchange = transportTo({ leases: { extend, areHeld: () => true } }).exchange(post(peer.origin));
    await expect(exchange).rejects.toMatchObject({ kind: "conflict" });
    expect(peer.connections()).toBe(0);
  });
});

/** An address of this machine that other machines can reach. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === "IPv4" && !one.internal)?.address;

test.skipIf(outside === undefined)("plain http reaches only this machine, whatever localhost resolves to", async () => {
  let bytes = 0;
  const server = createServer((socket) => socket.on("data", (chunk: Buffer) => (bytes += chunk.length)));
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as AddressInfo;
  const { lookup } = dns;
  const elsewhere = (_name: string, options: { all?: boolean }, done: (...found: unknown[]) => void): void =>
    options.all ? done(null, [{ address: outside, family: 4 }]) : done(null, outside, 4);
  dns.lookup = elsewhere as unknown as typeof lookup;
  try {
    const exchange = await transportTo().exchange(post(`http://localhost:${port}`));
    expect(exchange).toMatchObject({
      kind: "broken",
      sent: false,
      detail: "no connection: plain http is allowed to this machine only",
    });
    expect(bytes).toBe(0);
  } finally {
    dns.lookup = lookup;
    server.close();
  }
});

describe("interruption", () => {
  test("before the request: nothing is sent, and no name is looked up again", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    const exchange = await transportTo({ signal: AbortSignal.abort() }).exchange(post(peer.origin));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "interrupted" });
    expect(peer.connections()).toBe(0);
  });

  test("during the lookup or the connection: not sent", async () => {
    const controller = new AbortController();
    const hanging = await startRawPeer((socket) => socket.resume());
    const looking = transportTo({ signal: controller.signal, locate: () => new Promise(() => {}) });
    const connecting = transportTo({ signal: controller.signal });
    const both = [looking.exchange(post("x")), connecting.exchange(post(`https://127.0.0.1:${hanging.port}`))];
    await expect.poll(() => hanging.connections()).toBe(1);
    controller.abort();
    for (const exchange of await Promise.all(both))
      expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "interrupted" });
  });

  test("after the request was sent: it may have arrived", async () => {
    const controller = new AbortController();
    const peer = await startPeer(() => controller.abort());
    const exchange = await transportTo({ signal: controller.signal }).exchange(post(peer.origin));
    expect(exchange).toMatchObject({ kind: "broken", sent: true, reason: "interrupted" });
  });

  test("an exchange with its own signal ignores the transport's", async () => {
    const all = new AbortController();
    const peer = await startPeer((_, response) => {
      all.abort();
      setTimeout(() => answerJson(response, 200, {}), 30);
    });
    const own = new AbortController();
    const transport = transportTo({ signal: all.signal });
    expect(await transport.exchange(post(peer.origin, { signal: own.signal }))).toMatchObject({ kind: "response" });
  });

  test("leaves no listener on the signal", async () => {
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    const { signal } = new AbortController();
    let listeners = 0;
    const counted = new Proxy(signal, {
      get(target, name) {
        if (name === "addEventListener")
          return (...args: Parameters<AbortSignal["addEventListener"]>) => (
            listeners++, target.addEventListener(...args)
          );
        if (name === "removeEventListener")
          return (...args: Parameters<AbortSignal["removeEventListener"]>) => (
            listeners--, target.removeEventListener(...args)
          );
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const transport = transportTo({ signal: counted });
    for (let i = 0; i < 5; i++) await transport.exchange(post(peer.origin));
    expect(listeners).toBe(0);
  });
});

describe("a proxy", () => {
  /** @param answer the proxy's response to CONNECT; with `null` the proxy opens the tunnel */
  async function startProxy(answer: string | null) {
    const calls: string[] = [];
    const peer = await startRawPeer((socket) => {
      socket.once("data", (chunk: Buffer) => {
        const text = chunk.toString("latin1");
        calls.push(text);
        if (answer !== null) return void socket.end(answer);
        const [, host, port] = /^CONNECT ([^:]+):(\d+)/.exec(text)!;
        const far: Socket = connect(Number(port), host, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          far.pipe(socket).pipe(far);
        });
        far.on("error", () => socket.destroy());
      });
    });
    return { ...peer, calls };
  }

  test.each([
    ["HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "403"],
    ["HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "407"],
    ["HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "502"],
    ["SSH-2.0\r\n", ""],
    ["", ""],
  ])("that answers %j is tried once, and nothing was sent", async (answer, reason) => {
    const proxy = await startProxy(answer);
    const transport = transportTo({ proxy: { httpsProxy: `http://user:canary@127.0.0.1:${proxy.port}` } });
    const headers = { authorization: "Basic canary-of-ours" };
    const exchange = await transport.exchange(post("https://api.example.com", { headers }));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "proxy" });
    expect(exchange.kind === "broken" && exchange.detail).toContain(reason);
    expect(JSON.stringify(exchange)).not.toContain("canary");
    expect(proxy.calls).toHaveLength(1);
    expect(proxy.calls[0]).toMatch(/^CONNECT api\.example\.com:443 HTTP\/1\.1\r\n/);
    expect(proxy.calls[0]).toContain(`Basic ${Buffer.from("user:canary").toString("base64")}`);
    // Only the service receives integ's own credential.
    expect(proxy.calls[0]).not.toContain("canary-of-ours");
  });

  test("that is unreachable or hangs", async () => {
    const gone = transportTo({ proxy: { httpsProxy: `http://127.0.0.1:${await deadPort()}` } });
    expect(await gone.exchange(post("https://api.example.com"))).toMatchObject({ sent: false, reason: "proxy" });
    let closed = false;
    const hanging = await startRawPeer((socket) => socket.on("close", () => (closed = true)).resume());
    const waiting = transportTo({ timeoutMs: 150, proxy: { httpsProxy: `http://127.0.0.1:${hanging.port}` } });
    expect(await waiting.exchange(post("https://api.example.com"))).toMatchObject({ sent: false, reason: "timeout" });
    await expect.poll(() => closed).toBe(true);
  });

  test("does not make an untrusted certificate a trusted one", async () => {
    const server = await listenTls({ cert, key });
    const proxy = await startProxy(null);
    const transport = transportTo({ proxy: { httpsProxy: `http://127.0.0.1:${proxy.port}` } });
    const exchange = await transport.exchange(post(`https://localhost:${server.port}`));
    expect(exchange).toMatchObject({ kind: "broken", sent: false, reason: "tls" });
    expect(proxy.calls).toHaveLength(1);
    expect(server.bytes()).toBe(0);
    server.close();
  });

  test("is not used for hosts of NO_PROXY, nor for this machine over plain http", async () => {
    const proxy = await startProxy("");
    const address = `http://127.0.0.1:${proxy.port}`;
    const dead = await deadPort();
    const transport = transportTo({
      proxy: { httpsProxy: address, noProxy: "localhost,.example.com" },
    });
    expect(await transport.exchange(post(`https://localhost:${dead}`))).toMatchObject({
      sent: false,
      reason: "refused",
    });
    const peer = await startPeer((_, response) => answerJson(response, 200, {}));
    expect(await transport.exchange(post(peer.origin))).toMatchObject({ kind: "response" });
    expect(proxy.calls).toEqual([]);
  });

  test("in the environment is ignored", async () => {
    const proxy = await startProxy("");
    const before = process.env.HTTPS_PROXY;
    process.env.HTTPS_PROXY = `http://127.0.0.1:${proxy.port}`;
    try {
      const other = await startProxy("HTTP/1.1 403 Forbidden\r\n\r\n");
      const noProxy = "localhost";
      const dead = await deadPort();
      for (const settings of [undefined, { noProxy }, { httpsProxy: `http://127.0.0.1:${other.port}`, noProxy }])
        await transportTo({ proxy: settings }).exchange(post(`https://localhost:${dead}`));
      expect(proxy.connections()).toBe(0);
    } finally {
      if (before === undefined) delete process.env.HTTPS_PROXY;
      else process.env.HTTPS_PROXY = before;
    }
  });

  test.each(["socks5://127.0.0.1:1080", "SOCKS5h://proxy.example.com", "socks4://127.0.0.1", "ftp://127.0.0.1"])(
    "%s is refused with the reason before anything is sent",
    async (httpsProxy) => {
      const peer = await startRawPeer(() => {});
      const transport = transportTo({ proxy: { httpsProxy } });
      const error = await transport.exchange(post(`https://localhost:${peer.port}`)).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ kind: "usage" });
      expect((error as Failure).message).toMatch(/^socks/i.test(httpsProxy) ? /SOCKS/ : /not the address of a proxy/);
      expect(peer.connections()).toBe(0);
    },
  );

  test("with an invalid address is a reported error", async () => {
    const transport = transportTo({ proxy: { httpsProxy: "not an address, canary" } });
    const error = await transport.exchange(post("https://api.example.com")).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Failure);
    expect((error as Failure).kind).toBe("usage");
    expect((error as Failure).message).not.toContain("canary");
  });
});

async function listenTls(options: TlsOptions): Promise<{ port: number; bytes: () => number; close: () => void }> {
  let bytes = 0;
  const tls = createTlsServer(options, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
  });
  tls.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve));
  const address = tls.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return { port: address.port, bytes: () => bytes, close: () => tls.close() };
}
