// Owns: one HTTP exchange over a connection that may carry it (§5.1): the one place that knows undici. It knows exactly
// whether a request was handed to a connection, and holds every limit on what comes back.
// Must not know: what is asked or answered, credentials, retries, the environment (proxy and time are handed in).
import type { Socket } from "node:net";
import type { Dispatcher } from "undici";
import buildConnector from "undici/lib/core/connect.js";
import Client from "undici/lib/dispatcher/client.js";
import { Failure } from "../errors.ts";
import { NoConnection } from "./break-of.ts";
import { decodeBody } from "./content-encoding.ts";
import {
  type DebugEvent,
  defaultLimits,
  type Exchange,
  type ExchangeRequest,
  harmless,
  type Limits,
  shownUrl,
  type Transport,
} from "./exchange.ts";
import { Reception } from "./reception.ts";
import { checkWireRequest, isLoopbackAddress, parseTarget, type Target } from "./wire-request.ts";

export type { DebugEvent, Exchange, ExchangeRequest, Limits, Transport } from "./exchange.ts";

/** Proxy settings as the environment spells them. They apply to https alone: plain http never leaves this machine. */
export interface ProxySettings {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

export interface TransportOptions {
  /** Logical base URL → real one. Called for each exchange; whatever it starts, it starts once. */
  readonly locate: (baseUrl: string) => Promise<string>;
  /** For one exchange, from the connection to the last byte of the body. */
  readonly timeoutMs: number;
  /** Aborted: nothing new is sent, and what is under way ends as interrupted. */
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly userAgent: string;
  readonly proxy?: ProxySettings;
  readonly debug?: (event: DebugEvent) => void;
  readonly limits?: Partial<Limits>;
}

/** The longest delay that a timer of Node can hold. */
const maxTimerMs = 2 ** 31 - 1;

/** Creates the transport. Nothing is opened before the first exchange. */
export function createTransport(options: TransportOptions): Transport {
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const pool = createPool(options, limits);
  let count = 0;

  async function exchange(request: ExchangeRequest): Promise<Exchange> {
    checkWireRequest(request);
    const signal = request.signal ?? options.signal;
    const located = await unlessAborted(options.locate(request.baseUrl), signal);
    if (located === undefined) return interrupted;
    const target = parseTarget(located);
    const log = watch(options, { id: ++count, request, target });
    return log(
      await decoded(
        await carry(pool, { request, target, signal, options, limits }),
        request.maxBytes ?? limits.bodyBytes,
      ),
    );
  }
  return { exchange, limits, close: pool.close };
}

const interrupted: Exchange = { kind: "broken", sent: false, reason: "interrupted", detail: "interrupted" };

/** Waits, but not beyond the abort. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) {
    work.catch(() => {});
    return undefined;
  }
  let stop!: () => void;
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

interface Errand {
  readonly request: ExchangeRequest;
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly options: TransportOptions;
  readonly limits: Limits;
}

/** Sends one request over one connection, within its time. */
async function carry(pool: Pool, errand: Errand): Promise<Exchange> {
  const { request, target, signal, options, limits } = errand;
  const fresh = request.fresh ?? (request.method !== "GET" && request.method !== "HEAD");
  const connection = await pool.take(target, fresh);
  if (signal.aborted) {
    pool.give(target, { connection, reusable: false });
    return interrupted;
  }
  return new Promise((resolve) => {
    const settle = (exchange: Exchange): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      pool.give(target, { connection, reusable: exchange.kind === "response" && !fresh });
      resolve(exchange);
    };
    const maxBytes = request.method === "HEAD" ? Infinity : (request.maxBytes ?? limits.bodyBytes);
    const reception = new Reception({ maxBytes, settle });
    const onAbort = (): void => reception.break({ reason: "interrupted", detail: "interrupted" });
    const timer = setTimeout(
      () =>
        reception.break({
          reason: "timeout",
          detail: `no ${reception.sent ? "whole answer" : "connection"} within ${options.timeoutMs / 1000} s`,
        }),
      Math.min(options.timeoutMs, maxTimerMs),
    );
    signal.addEventListener("abort", onAbort, { once: true });
    connection.dispatcher.dispatch(
      {
        origin: target.origin,
        method: request.method as Dispatcher.HttpMethod,
        path: target.prefix + request.path,
        headers: { "user-agent": options.userAgent, "accept-encoding": "identity", ...request.headers },
        body: request.body,
        ...(fresh ? { reset: true } : {}),
      },
      reception,
    );
  });
}

async function decoded(exchange: Exchange, maxBytes: number): Promise<Exchange> {
  if (exchange.kind === "broken" || exchange.headers["content-encoding"] === undefined) return exchange;
  const body = await decodeBody(exchange.body, { encoding: exchange.headers["content-encoding"], maxBytes });
  return Buffer.isBuffer(body) ? { ...exchange, body } : { kind: "broken", sent: true, ...body };
}

/** Tells the debug log of a request, and gives the function that tells of its end. */
function watch(
  { debug, now, userAgent }: TransportOptions,
  { id, request, target }: { id: number; request: ExchangeRequest; target: Target },
): (exchange: Exchange) => Exchange {
  if (!debug) return (exchange) => exchange;
  const about = { id, method: request.method, url: shownUrl(target.origin, target.prefix + request.path) };
  const startedAt = now();
  debug({ kind: "request", ...about, headers: harmless({ "user-agent": userAgent, ...request.headers }) });
  return (exchange) => {
    const elapsedMs = now() - startedAt;
    if (exchange.kind === "response") {
      const { status, headers, body } = exchange;
      debug({ kind: "response", ...about, status, headers: harmless(headers), bytes: body.length, elapsedMs });
    } else {
      const { sent, reason, detail } = exchange;
      debug({ kind: "broken", ...about, sent, reason, detail, elapsedMs });
    }
    return exchange;
  };
}

/** A client of one origin that carries one request at a time. */
interface Connection {
  readonly dispatcher: Dispatcher;
  readonly destroy: () => void;
}

interface Pool {
  /** @param fresh on a connection that carried nothing before: no stale socket may make an outcome unknown */
  take(target: Target, fresh: boolean): Promise<Connection>;
  give(target: Target, back: { readonly connection: Connection; readonly reusable: boolean }): void;
  close(): void;
}

/** One idle connection is kept for each origin; whoever finds none opens another. */
function createPool(options: TransportOptions, limits: Limits): Pool {
  const idle = new Map<string, Connection>();
  let closed = false;
  return {
    async take(target, fresh) {
      const kept = fresh ? undefined : idle.get(target.origin);
      if (kept) idle.delete(target.origin);
      return kept ?? open(target, { options, limits });
    },
    give(target, { connection, reusable }) {
      if (reusable && !closed && !idle.has(target.origin)) idle.set(target.origin, connection);
      else connection.destroy();
    },
    close() {
      closed = true;
      for (const connection of idle.values()) connection.destroy();
      idle.clear();
    },
  };
}

type Connector = ReturnType<typeof buildConnector>;
interface Plan {
  readonly options: TransportOptions;
  readonly limits: Limits;
}

async function open(target: Target, plan: Plan): Promise<Connection> {
  const { proxy } = plan.options;
  const sockets = new Set<Socket>();
  const connect = trackSockets(buildConnector(connectOptions), sockets);
  const proxyUrl = target.secure ? proxy?.httpsProxy : undefined;
  const dispatcher = proxyUrl
    ? await openThroughProxy({ ...proxy, httpsProxy: proxyUrl }, { connect, sockets, plan })
    : new Client(target.origin, { ...clientOptions(plan), connect: guard(connect, "direct") });
  return {
    dispatcher,
    destroy() {
      dispatcher.destroy().catch(() => {});
      // A connection that is still being made would outlive its client, and keep the process from ending.
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** `rejectUnauthorized` is said aloud: NODE_TLS_REJECT_UNAUTHORIZED has no say. The time is the exchange's own. */
const connectOptions = { rejectUnauthorized: true, timeout: 0 };

function clientOptions({ limits }: Plan): Client.Options {
  return { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: limits.headerBytes };
}

function trackSockets(connect: Connector, sockets: Set<Socket>): Connector {
  return (options, callback) => {
    const socket = connect(options, callback) as unknown as Socket;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
}

/** Gives every failed connection the same face, and lets plain http reach nothing but this machine, whatever a name resolves to. */
function guard(connect: Connector, stage: "direct" | "proxy"): Connector {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error) return callback(new NoConnection(error, stage), null);
      if (options.protocol === "http:" && !isLoopbackAddress(socket!.remoteAddress)) {
        socket!.destroy();
        return callback(new NoConnection(new Error("plain http goes to this machine alone"), stage), null);
      }
      callback(null, socket!);
    });
}

/** undici's own agent reads NO_PROXY and makes the tunnel; it is loaded where there is a proxy, and nowhere else. */
async function openThroughProxy(
  proxy: ProxySettings,
  { connect, sockets, plan }: { connect: Connector; sockets: Set<Socket>; plan: Plan },
): Promise<Dispatcher> {
  const { default: EnvHttpProxyAgent } = await import("undici/lib/dispatcher/env-http-proxy-agent.js");
  const { default: connectMethod } = await import("undici/lib/api/api-connect.js");
  try {
    return new EnvHttpProxyAgent({
      ...clientOptions(plan),
      connect,
      // Empty, not absent: absent would be looked up in the environment.
      httpProxy: "",
      httpsProxy: proxy.httpsProxy,
      noProxy: proxy.noProxy ?? "",
      requestTls: connectOptions,
      proxyTls: connectOptions,
      clientFactory: (origin: URL, options: { connect: Connector }) =>
        Object.assign(new Client(origin, { connect: trackSockets(options.connect, sockets) }), {
          connect: connectMethod,
        }),
      factory: (origin: URL, options: Client.Options & { connect: Connector }) =>
        new Client(origin, {
          ...options,
          connect: guard(options.connect, options.connect === connect ? "direct" : "proxy"),
        }),
    } as ConstructorParameters<typeof EnvHttpProxyAgent>[0]);
  } catch {
    throw new Failure("usage", "HTTPS_PROXY is no address of a proxy.", {
      hint: "It looks like http://proxy.example.com:3128",
    });
  }
}
