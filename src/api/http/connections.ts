// Opens connections, directly or through a proxy. TLS certificates are always checked; plain http is allowed only to
// this machine and to the proxy.
import { connect as connectTcp, type Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { invalidValue } from "../../errors.ts";
import { NoConnection, isLoopbackAddress, type Target } from "./exchange.ts";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** No `httpProxy`: requests over plain http stay on this machine. */
interface ProxySettings {
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

export interface ConnectionSettings {
  readonly proxy?: ProxySettings;
  /** Trusted authorities in PEM; default: Node's. */
  readonly ca?: string | undefined;
}

type Connector = buildConnector.connector;

/** undici's time limits are off, because the transport has its own limit. */
const clientOptions: Client.Options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 32 * 1024 };

/** Carries one request at a time to one origin. If the peer closed the connection, undici opens another. */
export class Connection {
  readonly origin: string;
  isReused = false;
  readonly #dispatcher: Dispatcher;
  readonly #recording: Recording | undefined;
  readonly #sockets = new Set<Socket>();
  #current: Socket | undefined;

  /** Connects with the first request. @throws Failure `usage` for an invalid proxy address */
  constructor({ origin, secure }: Target, { proxy, ca }: ConnectionSettings, recording: Recording | undefined) {
    this.origin = origin;
    this.#recording = recording;
    const connect = this.#connector(ca);
    if (!secure || !proxy?.httpsProxy) {
      this.#dispatcher = new Client(origin, { ...clientOptions, connect: this.#guard(connect, "direct") });
      return;
    }
    checkProxy(proxy.httpsProxy);
    this.#dispatcher = new EnvHttpProxyAgent({
      ...clientOptions,
      connect,
      // If `httpProxy` is absent, undici reads it from the environment.
      httpProxy: "",
      httpsProxy: proxy.httpsProxy,
      noProxy: proxy.noProxy ?? "",
      requestTls: { rejectUnauthorized: true, ca },
      clientFactory: (address) => new Client(address, { ...clientOptions, connect: this.#connector() }),
      factory: (address, options) => {
        const way = (options as { connect: Connector }).connect;
        const stage = way === connect ? "direct" : "proxy";
        return new Client(address, { ...clientOptions, connect: this.#guard(way, stage) });
      },
    });
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#dispatcher.dispatch(request, handler);
  }

  get bytesRead(): number {
    return this.#current?.bytesRead ?? 0;
  }

  destroy(): void {
    this.#dispatcher.destroy().catch(() => {});
    // undici does not close sockets that are still connecting, which would keep the process running.
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sets `rejectUnauthorized`, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect. */
  #connector(ca?: string): Connector {
    return ({ hostname, port, protocol, servername }, callback) => {
      const isTls = protocol === "https:";
      const place = { host: hostname, port: Number(port) || (isTls ? 443 : 80), highWaterMark: 64 * 1024 };
      const tls = { servername: servername || undefined, ca, rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] };
      const socket = isTls ? process.getBuiltinModule("node:tls").connect({ ...place, ...tls }) : connectTcp(place);
      this.#sockets.add(socket);
      const fail = (error: Error): void => callback(error, null);
      socket
        .setNoDelay(true)
        .on("error", fail)
        .once("close", () => this.#sockets.delete(socket))
        .once(isTls ? "secureConnect" : "connect", () => {
          socket.off("error", fail);
          callback(null, socket);
        });
    };
  }

  /** Checks the address of plain http on the connected socket, because `localhost` may resolve to another machine. */
  #guard(connect: Connector, stage: NoConnection["stage"]): Connector {
    return (options, callback) =>
      connect(options, (error, socket) => {
        if (error) return callback(new NoConnection(error, stage), null);
        if (options.protocol === "http:" && !isLoopbackAddress(socket.remoteAddress)) {
          socket.destroy();
          return callback(new NoConnection(new Error("plain http is allowed to this machine only"), stage), null);
        }
        this.#current = socket;
        // undici uses only the stream methods of a socket, so a stream can replace the socket.
        callback(null, (this.#recording?.record(socket) as Socket | undefined) ?? socket);
      });
  }
}

/** Keeps one idle connection per origin, for reads. */
export class ConnectionPool {
  readonly #settings: ConnectionSettings;
  readonly #idle = new Map<string, Connection>();
  #closed = false;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
  }

  /**
   * @param recording set for a change, which gets a new connection: an idle connection may already be closed, which
   * would leave the outcome unknown
   */
  take(target: Target, recording: Recording | undefined): Connection {
    const idle = recording ? undefined : this.#idle.get(target.origin);
    if (!idle) return new Connection(target, this.#settings, recording);
    this.#idle.delete(target.origin);
    return idle;
  }

  give(connection: Connection): void {
    if (this.#closed || this.#idle.has(connection.origin)) return connection.destroy();
    connection.isReused = true;
    this.#idle.set(connection.origin, connection);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.values()) connection.destroy();
    this.#idle.clear();
  }
}

function checkProxy(address: string): void {
  const protocol = URL.canParse(address) ? new URL(address).protocol : "";
  if (protocol === "http:" || protocol === "https:") return;
  throw invalidValue("HTTPS_PROXY", undefined, {
    why: /^socks/i.test(protocol) ? "integ supports no SOCKS proxies" : "it is not the address of a proxy",
    hint: "Write it like http://proxy.example.com:3128.",
  });
}

/** Copies chunks, because a kept chunk keeps its larger buffer in memory. */
export class ByteBuffer {
  #memory = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Uint8Array): void {
    this.reserve(this.#length + chunk.length);
    this.#memory.set(chunk, this.#length);
    this.#length += chunk.length;
  }

  reserve(total: number): void {
    if (total <= this.#memory.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(total, 2 * this.#memory.length));
    larger.set(this.bytes());
    this.#memory = larger;
  }

  bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }
}

/** Silence after which integ stops reading a response that undici refused. */
const silenceMs = 1000;
/** Matches complete interim responses (1xx except 101) without a final response. */
const interim = /^(?:HTTP\/1\.[01] 1(?!01)\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+$/;
const longestInterim = 4096;

/**
 * Keeps the bytes of a change's response. undici closes a connection at data that it refuses, such as an unexpected
 * `100 Continue`, but the one-time secret may follow.
 */
export class Recording {
  readonly #bytes = new ByteBuffer();
  readonly #most: number;
  #isOver = false;
  #ended: Promise<unknown> | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  bytes(): Buffer {
    return this.#bytes.bytes();
  }

  /** @returns a stream for undici; destroying the stream leaves the socket open */
  record(socket: Socket): Duplex {
    const stream = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
      writev: (chunks, done) => void socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    });
    socket.on("data", (chunk: Buffer) => {
      if (this.#bytes.length + chunk.length > this.#most) return void socket.destroy();
      this.#bytes.append(chunk);
      if (!stream.destroyed) stream.push(chunk);
    });
    socket.once("end", () => stream.push(null));
    socket.once("error", (error) => stream.destroy(error));
    socket.once("close", () => stream.destroy());
    this.#ended = new Promise((resolve) => {
      const end = (): void => resolve((this.#isOver = true));
      socket.once("end", end).once("close", end);
    });
    return stream;
  }

  /** Waits until the connection ends or is silent. While only interim responses have arrived, silence is not enough. */
  async waitForRest(): Promise<void> {
    for (let before = -1; !this.#isOver && (before < this.#bytes.length || this.#isInterim()); ) {
      before = this.#bytes.length;
      await Promise.race([this.#ended, sleep(silenceMs, undefined, { ref: false })]);
    }
  }

  #isInterim(): boolean {
    return this.#bytes.length <= longestInterim && interim.test(this.bytes().toString("latin1"));
  }
}
