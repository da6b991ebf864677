// Owns: one HTTP exchange over a connection that may carry it (§5.1): the one place that knows undici. It knows exactly
// whether a request was handed to a connection, and holds every limit on what comes back.
// Must not know: what is asked or answered, credentials, retries, the environment (proxy and time are handed in).
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import type { buildConnector as BuildConnector, Dispatcher } from "undici";
import buildConnector from "undici/lib/core/connect.js";
import Client from "undici/lib/dispatcher/client.js";
import { Failure } from "../errors.ts";
import { NoConnection } from "./break-of.ts";
import { type Connection, createPool, type Pool } from "./connection-pool.ts";
import { decodeBody } from "./content-encoding.ts";
import {
  type DebugEvent,
  defaultLimits,
  type Exchange,
  type ExchangeRequest,
  type Limits,
  type Transport,
} from "./exchange.ts";
import { withoutEchoes } from "./exchange-echo.ts";
import { createExchangeLog } from "./exchange-log.ts";
import { Reception } from "./reception.ts";
import { checkWireRequest, isLoopbackAddress, parseTarget, type Target } from "./wire-request.ts";

export type { DebugEvent, Limits, Transport } from "./exchange.ts";

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
  keepParserAsItIs();
  const pool = createPool((target) => open(target, { options, limits }));
  const log = createExchangeLog(options);

  async function exchange(request: ExchangeRequest): Promise<Exchange> {
    checkWireRequest(request);
    const signal = request.signal ?? options.signal;
    const located = await unlessAborted(options.locate(request.baseUrl), signal);
    if (located === undefined) return interrupted;
    const target = parseTarget(located);
    const told = log(request, target);
    const maxBytes = request.maxBytes ?? limits.bodyBytes;
    const exchange = await decoded(await carry(pool, { request, target, signal, options, maxBytes }), maxBytes);
    return told(withoutEchoes(request, exchange));
  }
  return { exchange, limits, close: () => pool.close() };
}

/**
 * undici's parser is WebAssembly, and V8 compiles it a second time, optimised, after the first answer: 80 ms of processor
 * that a process which is done has to wait for, to save microseconds a page. It is told that it is never worth it.
 */
function keepParserAsItIs(): void {
  setFlagsFromString("--wasm-tiering-budget=1000000000");
}

const interrupted: Exchange = { kind: "broken", sent: false, reason: "interrupted", detail: "interrupted" };

/** Waits, but not beyond the abort. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let stop: () => void = () => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

interface Errand {
  readonly request: ExchangeRequest;
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly options: TransportOptions;
  readonly maxBytes: number;
}

/** Sends one request over one connection, within its time. */
async function carry(pool: Pool, { request, target, signal, options, maxBytes }: Errand): Promise<Exchange> {
  const fresh = request.fresh ?? (request.method !== "GET" && request.method !== "HEAD");
  const connection = await pool.take(target, fresh);
  if (signal.aborted) {
    pool.give(target, { connection, reusable: false });
    return interrupted;
  }
  return new Promise((resolve) => {
    const reception = new Reception({
      maxBytes: request.method === "HEAD" ? Infinity : maxBytes,
      room: request.room,
      settle(exchange) {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        pool.give(target, { connection, reusable: exchange.kind === "response" && !fresh });
        resolve(exchange);
      },
    });
    const onAbort = (): void => reception.break({ reason: "interrupted", detail: "interrupted" });
    const onTime = (): void => {
      const missing = reception.sent ? "whole answer" : "connection";
      reception.break({ reason: "timeout", detail: `no ${missing} within ${options.timeoutMs / 1000} s` });
    };
    const timer = setTimeout(onTime, Math.min(options.timeoutMs, maxTimerMs));
    signal.addEventListener("abort", onAbort, { once: true });
    connection.send(
      {
        method: request.method,
        path: target.prefix + request.path,
        headers: { "user-agent": options.userAgent, "accept-encoding": "identity", ...request.headers },
        body: request.body,
        last: fresh,
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

type Connect = BuildConnector.connector;

interface Plan {
  readonly options: TransportOptions;
  readonly limits: Limits;
}

async function open(target: Target, plan: Plan): Promise<Connection> {
  const { proxy } = plan.options;
  const sockets = new Set<Socket>();
  const connect = trackSockets(buildConnector(connectOptions), sockets);
  const httpsProxy = target.secure ? proxy?.httpsProxy : undefined;
  const dispatcher = httpsProxy
    ? await openThroughProxy({ httpsProxy, noProxy: proxy?.noProxy ?? "" }, { connect, sockets, plan })
    : new Client(target.origin, { ...clientOptions(plan), connect: guard(connect, "direct") });
  return {
    send({ method, path, headers, body, last }, reception) {
      const request = { origin: target.origin, method, path, headers, body, reset: last ? true : undefined };
      dispatcher.dispatch(request, reception);
    },
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

function trackSockets(connect: Connect, sockets: Set<Socket>): Connect {
  return (options, callback) => {
    // The socket is given back at once, before it is connected; the types do not say so.
    const socket: unknown = connect(options, callback);
    if (isSocket(socket)) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    }
    return socket;
  };
}

function isSocket(value: unknown): value is Socket {
  return typeof value === "object" && value !== null && "destroy" in value && "once" in value;
}

/** Gives every failed connection the same face, and lets plain http reach nothing but this machine, whatever a name resolves to. */
function guard(connect: Connect, stage: "direct" | "proxy"): Connect {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error) return callback(new NoConnection(error, stage), null);
      if (options.protocol === "http:" && !isLoopbackAddress(socket.remoteAddress)) {
        socket.destroy();
        return callback(new NoConnection(new Error("plain http goes to this machine alone"), stage), null);
      }
      callback(null, socket);
    });
}

interface ProxyWork extends Record<"connect", Connect> {
  readonly sockets: Set<Socket>;
  readonly plan: Plan;
}

/** undici's own agent reads NO_PROXY and makes the tunnel; it is loaded where there is a proxy, and nowhere else. */
async function openThroughProxy(
  { httpsProxy, noProxy }: Required<Pick<ProxySettings, "httpsProxy" | "noProxy">>,
  { connect, sockets, plan }: ProxyWork,
): Promise<Dispatcher> {
  const { default: EnvHttpProxyAgent } = await import("undici/lib/dispatcher/env-http-proxy-agent.js");
  const { default: connectMethod } = await import("undici/lib/api/api-connect.js");
  const clientFactory = (origin: URL, options: { connect: Connect }): Dispatcher =>
    Object.assign(new Client(origin, { connect: trackSockets(options.connect, sockets) }), { connect: connectMethod });
  const factory = (origin: URL, options: Client.Options & { connect: Connect }): Dispatcher =>
    new Client(origin, {
      ...options,
      connect: guard(options.connect, options.connect === connect ? "direct" : "proxy"),
    });
  try {
    return new EnvHttpProxyAgent({
      ...clientOptions(plan),
      connect,
      // Empty, not absent: absent would be looked up in the environment.
      httpProxy: "",
      httpsProxy,
      noProxy,
      requestTls: connectOptions,
      proxyTls: connectOptions,
      // The agent hands both the connector that it made itself.
      ...({ clientFactory, factory } as object),
    });
  } catch {
    throw new Failure("usage", "HTTPS_PROXY is no address of a proxy.", {
      hint: "It looks like http://proxy.example.com:3128",
    });
  }
}
