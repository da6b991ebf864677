// How a connection is made, directly or through a proxy: TLS that cannot be turned off, plain http to this machine alone.
// The one place that imports undici: its version is pinned, and its modules are loaded one by one, its client when a request
// needs it.
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { buildConnector as BuildConnector, Dispatcher } from "undici";
import buildConnector from "undici/lib/core/connect.js";
import type Client from "undici/lib/dispatcher/client.js";
import { invalidValue } from "../../errors.ts";
import { NoConnection } from "./exchange.ts";
import type { UsualConnection } from "./usual-connection.ts";
import { isLoopbackAddress, type Target } from "./request-rules.ts";

/** Proxy settings as the environment spells them. There is none for plain http: it never leaves this machine. */
export interface ProxySettings {
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** How every connection of a pool is made. */
export interface ConnectionSettings {
  readonly proxy?: ProxySettings;
  /** Certificates (PEM) of the only authorities that are trusted. */
  readonly ca?: string | undefined;
}

type Connect = BuildConnector.connector;

/** A way to one origin that carries one request at a time, and connects again if the last connection was closed. */
export interface Connection {
  readonly dispatcher: Pick<Dispatcher, "dispatch"> | UsualConnection;
  /** No request leaves before what the last response should not have would be there. */
  readonly waits: boolean;
  destroy(): void;
}

/**
 * What a connection is taken for.
 * - `fresh`: one request, over a connection that carried nothing before: no stale socket may make an outcome unknown.
 * - `pages`: the pages of a list alone.
 * - `head`: a request whose response has a length and no body.
 */
export type Use = "any" | "fresh" | "pages" | "head";

/** What is read otherwise is another connection. */
function keyOf({ origin }: Target, use: Use): string {
  return `${use} of ${origin}`;
}

/** Which connection carries which request: one at a time, one idle one kept for each origin. */
export class ConnectionPool {
  readonly #settings: ConnectionSettings;
  readonly #idle = new Map<string, Connection>();
  #closed = false;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
  }

  /**
   * @throws Failure `usage` if the proxy's address is invalid
   */
  take(target: Target, use: Use): Connection | Promise<Connection> {
    const key = keyOf(target, use);
    const kept = use === "fresh" ? undefined : this.#idle.get(key);
    if (kept) this.#idle.delete(key);
    const { proxy } = this.#settings;
    if (kept) return kept;
    return use === "head" || throughProxy(target, proxy)
      ? open(target, this.#settings)
      : openUsual(target, { ...this.#settings, spaceBytes: spaceOf[use] });
  }

  give(target: Target, { connection, use, reusable }: { connection: Connection; use: Use; reusable: boolean }): void {
    const key = keyOf(target, use);
    if (reusable && use !== "fresh" && !this.#closed && !this.#idle.has(key)) this.#idle.set(key, connection);
    else connection.destroy();
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.values()) connection.destroy();
    this.#idle.clear();
  }
}

/** So much is read with one call of the system, bytes; a page of a list has memory of its own. */
const spaceOf = { any: 64 * 1024, fresh: 16 * 1024, pages: 64 * 1024 } as const;

/** undici's client, with the first request that needs it. */
async function loadClient(): Promise<typeof Client> {
  return (await import("undici/lib/dispatcher/client.js")).default;
}

/** Makes ready to send to a target by undici alone; the connection itself is made with the first request. */
async function open(target: Target, { proxy, ca }: ConnectionSettings): Promise<Connection> {
  const sockets = new Set<Socket>();
  const httpsProxy = throughProxy(target, proxy);
  const connect = trackSockets(buildConnector({ ...connectOptions, ca }), sockets);
  const dispatcher = httpsProxy
    ? await openThroughProxy({ httpsProxy, noProxy: proxy?.noProxy ?? "" }, { connect, sockets, ca })
    : new (await loadClient())(target.origin, { ...clientOptions, connect: guard(keepingParser(connect), "direct") });
  return {
    dispatcher,
    waits: false,
    destroy() {
      dispatcher.destroy().catch(() => {});
      // A connection that is still being made would outlive its client, and keep the process from ending.
      for (const socket of sockets) socket.destroy();
    },
  };
}

function throughProxy({ secure }: Target, proxy: ProxySettings | undefined): string | undefined {
  return secure ? proxy?.httpsProxy : undefined;
}

/** The same for a usual response: undici's client is loaded only for one that is unusual. */
async function openUsual(
  { origin }: Target,
  { ca, spaceBytes }: ConnectionSettings & { readonly spaceBytes: number },
): Promise<Connection> {
  const { UsualConnection } = await import("./usual-connection.ts");
  const sockets = new Set<Socket>();
  const connectorOf = (onread?: UsualConnection["onread"]): Connect =>
    guard(trackSockets(buildConnector({ ...connectOptions, ca, onread }), sockets), "direct");
  const dispatcher = new UsualConnection({
    origin,
    spaceBytes,
    connect: connectorOf,
    async undici(stream) {
      let first: Duplex | undefined = stream;
      const later = connectorOf();
      const connect: Connect = (options, callback) => {
        if (first === undefined) return later(options, callback);
        // undici uses nothing of a socket that a stream has not, and expects it later.
        const given = first as Socket;
        first = undefined;
        queueMicrotask(() => callback(null, given));
      };
      const OwnClient = await loadClient();
      if (stream.destroyed) throw stream.errored ?? new Error("the connection closed");
      return new OwnClient(origin, { ...clientOptions, connect: keepingParser(connect) });
    },
  });
  return {
    dispatcher,
    get waits() {
      return dispatcher.waits;
    },
    destroy() {
      dispatcher.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** `rejectUnauthorized` is set explicitly: NODE_TLS_REJECT_UNAUTHORIZED has no say. The time is the exchange's own. */
const connectOptions = { rejectUnauthorized: true, timeout: 0 };

/** `maxHeaderSize`: the most that a response's head may have, bytes. The times are the exchange's own. */
const clientOptions: Client.Options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 32 * 1024 };

function trackSockets(connect: Connect, sockets: Set<Socket>): Connect {
  return (options, callback) => {
    // The socket is given back immediately, before it is connected; the types do not say so.
    const socket: unknown = connect(options, callback);
    if (isSocket(socket)) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    }
    return socket;
  };
}

/**
 * undici's parser is WebAssembly, which it makes with its first connection. V8 of Node 20 compiles it a second time, optimised,
 * after the first response: 80 ms of processor that a process which has finished has to wait for, to save microseconds per page.
 * With this budget it never does. The flag is put back: while it differs, V8 uses no compiled code that was kept.
 */
function keepingParser(connect: Connect): Connect {
  if (!process.versions.v8.startsWith("11.3.")) return connect;
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  const setBudget = (bytes: number): void => setFlagsFromString(`--wasm-tiering-budget=${bytes}`);
  return (options, callback) =>
    connect(options, (...outcome) => {
      setBudget(1_000_000_000);
      try {
        callback(...outcome);
      } finally {
        setBudget(1_800_000);
      }
    });
}

function isSocket(value: unknown): value is Socket {
  return typeof value === "object" && value !== null && "destroy" in value && "once" in value;
}

/**
 * Turns every failed connection into the same error, and lets plain http reach nothing but this machine, whatever a name
 * resolves to.
 */
function guard(connect: Connect, stage: "direct" | "proxy"): Connect {
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (error) return callback(new NoConnection(error, stage), null);
      if (options.protocol === "http:" && !isLoopbackAddress(socket.remoteAddress)) {
        socket.destroy();
        return callback(new NoConnection(new Error("plain http is allowed to this machine only"), stage), null);
      }
      callback(null, socket);
    });
}

interface ProxyWork {
  readonly connect: Connect;
  readonly sockets: Set<Socket>;
  readonly ca: string | undefined;
}

/** undici's own agent reads NO_PROXY and makes the tunnel; it is loaded if there is a proxy, and nowhere else. */
async function openThroughProxy(
  { httpsProxy, noProxy }: Required<Pick<ProxySettings, "httpsProxy" | "noProxy">>,
  { connect, sockets, ca }: ProxyWork,
): Promise<Dispatcher> {
  const OwnClient = await loadClient();
  const { default: EnvHttpProxyAgent } = await import("undici/lib/dispatcher/env-http-proxy-agent.js");
  const { default: connectMethod } = await import("undici/lib/api/api-connect.js");
  const clientFactory = (origin: URL, options: { connect: Connect }): Dispatcher =>
    Object.assign(new OwnClient(origin, { connect: keepingParser(trackSockets(options.connect, sockets)) }), {
      connect: connectMethod,
    });
  const factory = (origin: URL, options: Client.Options & { connect: Connect }): Dispatcher =>
    new OwnClient(origin, {
      ...options,
      connect: guard(keepingParser(options.connect), options.connect === connect ? "direct" : "proxy"),
    });
  try {
    return new EnvHttpProxyAgent({
      ...clientOptions,
      connect,
      // Empty, not absent: absent would be looked up in the environment.
      httpProxy: "",
      httpsProxy,
      noProxy,
      requestTls: { ...connectOptions, ca },
      proxyTls: connectOptions,
      // The agent hands both the connector that it made itself.
      ...({ clientFactory, factory } as object),
    });
  } catch {
    throw invalidValue("HTTPS_PROXY", undefined, {
      why: "it is not the address of a proxy",
      hint: "Write it like http://proxy.example.com:3128.",
    });
  }
}
