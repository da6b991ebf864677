// Connections, direct or through a proxy: TLS that cannot be turned off, plain http to this machine alone, and the bytes that come.
import { connect as connectTcp, type Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { invalidValue } from "../../errors.ts";
import { NoConnection, isLoopbackAddress, type Target } from "./exchange.ts";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** Proxy settings as the environment spells them. There is none for plain http: it never leaves this machine. */
export interface ProxySettings {
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** How every connection of a pool is made. */
export interface ConnectionSettings {
  readonly proxy?: ProxySettings;
  /** Certificates (PEM) of the only authorities that are trusted; the system's and Node's if absent. */
  readonly ca?: string | undefined;
}

type Connector = buildConnector.connector;

/** `maxHeaderSize`: limit of a response's head, bytes. The time limits are the exchange's own. */
const clientOptions: Client.Options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 32 * 1024 };

/** A way to one origin that carries one request at a time. undici connects again if the last connection was closed. */
export class Connection {
  readonly origin: string;
  /** True once it has carried a whole response. */
  isReused = false;
  readonly #dispatcher: Dispatcher;
  readonly #recording: Recording | undefined;
  readonly #sockets = new Set<Socket>();
  #current: Socket | undefined;

  /**
   * Makes ready to send; the connection itself is made with the first request.
   * @param recording gets all that comes
   * @throws Failure `usage` for a proxy that integ cannot use
   */
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
      // Empty, not absent: undici would look an absent one up in the environment.
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

  /** How many bytes came over the connection that carries the request. */
  get bytesRead(): number {
    return this.#current?.bytesRead ?? 0;
  }

  destroy(): void {
    this.#dispatcher.destroy().catch(() => {});
    // undici does not end a connection that is still being made: it would keep the process from ending.
    for (const socket of this.#sockets) socket.destroy();
  }

  /** `rejectUnauthorized` is given explicitly: NODE_TLS_REJECT_UNAUTHORIZED has no say. */
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

  /** Makes every failed connection the same error, and lets plain http reach this machine alone, whatever a name resolves to. */
  #guard(connect: Connector, stage: NoConnection["stage"]): Connector {
    return (options, callback) =>
      connect(options, (error, socket) => {
        if (error) return callback(new NoConnection(error, stage), null);
        if (options.protocol === "http:" && !isLoopbackAddress(socket.remoteAddress)) {
          socket.destroy();
          return callback(new NoConnection(new Error("plain http is allowed to this machine only"), stage), null);
        }
        this.#current = socket;
        // undici needs of a socket what any stream has.
        callback(null, (this.#recording?.record(socket) as Socket | undefined) ?? socket);
      });
  }
}

/** One idle connection for each origin, for reads. */
export class ConnectionPool {
  readonly #settings: ConnectionSettings;
  readonly #idle = new Map<string, Connection>();
  #closed = false;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
  }

  /** @param recording of a change: it gets a new connection, since a stale one may make its outcome unknown */
  take(target: Target, recording: Recording | undefined): Connection {
    const kept = recording ? undefined : this.#idle.get(target.origin);
    if (!kept) return new Connection(target, this.#settings, recording);
    this.#idle.delete(target.origin);
    return kept;
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

/** @throws Failure `usage` */
function checkProxy(address: string): void {
  const protocol = URL.canParse(address) ? new URL(address).protocol : "";
  if (protocol === "http:" || protocol === "https:") return;
  throw invalidValue("HTTPS_PROXY", undefined, {
    why: /^socks/i.test(protocol) ? "integ supports no SOCKS proxies" : "it is not the address of a proxy",
    hint: "Write it like http://proxy.example.com:3128.",
  });
}

/** Collects bytes in one piece of memory: a kept chunk would keep the larger buffer that it is a part of. */
export class ByteBuffer {
  #memory = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Takes a copy. */
  append(chunk: Uint8Array): void {
    this.reserve(this.#length + chunk.length);
    this.#memory.set(chunk, this.#length);
    this.#length += chunk.length;
  }

  /** @param total how many bytes are expected altogether */
  reserve(total: number): void {
    if (total <= this.#memory.length) return;
    // Doubled, so that bytes that come one by one are not copied for each of them.
    const larger = Buffer.allocUnsafeSlow(Math.max(total, 2 * this.#memory.length));
    larger.set(this.bytes());
    this.#memory = larger;
  }

  /** What was appended; not a copy. */
  bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }
}

/** After a refused response the peer may be silent for so long, milliseconds. */
const silenceMs = 1000;
/** Nothing but interim responses: the final one is still to come. */
const interim = /^(?:HTTP\/1\.[01] 1(?!01)\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+$/;
const longestInterim = 4096;

/**
 * Keeps every byte that comes in response to a change. undici ends a connection with the first thing that it refuses,
 * such as a `100 Continue` that was not asked for. The one-time secret may come behind it, so the socket is read on.
 */
export class Recording {
  readonly #bytes = new ByteBuffer();
  readonly #most: number;
  #isOver = false;
  #ended: Promise<unknown> | undefined;

  /** @param most how many bytes are kept; more end the connection */
  constructor(most: number) {
    this.#most = most;
  }

  bytes(): Buffer {
    return this.#bytes.bytes();
  }

  /** @returns what undici is given in place of the socket; destroying it leaves the socket open */
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

  /** Waits until the connection has ended, or the peer was silent for a while. */
  async rest(): Promise<void> {
    for (let before = -1; !this.#isOver && (before < this.#bytes.length || this.#isInterim()); ) {
      before = this.#bytes.length;
      await Promise.race([this.#ended, sleep(silenceMs, undefined, { ref: false })]);
    }
  }

  #isInterim(): boolean {
    return this.#bytes.length <= longestInterim && interim.test(this.bytes().toString("latin1"));
  }
}
