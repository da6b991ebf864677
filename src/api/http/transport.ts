// Owns: one HTTP exchange over a connection that may carry it (§5.1). It knows exactly whether a request was handed to a
// connection, and holds every limit on what comes back. How a connection is made: open-connection.ts.
// Must not know: what is asked or answered, credentials, retries, the environment (proxy and time are handed in).
import { setFlagsFromString } from "node:v8";
import { createPool, type Pool } from "./connection-pool.ts";
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
import { openConnection, type ProxySettings } from "./open-connection.ts";
import { Reception } from "./reception.ts";
import { checkWireRequest, parseTarget, type Target } from "./wire-request.ts";

export type { DebugEvent, Limits, Transport } from "./exchange.ts";
export type { ProxySettings } from "./open-connection.ts";

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
  const pool = createPool((target) =>
    openConnection(target, { proxy: options.proxy, headerBytes: limits.headerBytes }),
  );
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
