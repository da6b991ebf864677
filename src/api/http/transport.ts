// One HTTP exchange over a connection that may carry it (§5.1). It knows exactly whether a request was handed to a
// connection, and holds every limit on what comes back.
import { setFlagsFromString } from "node:v8";
import { ConnectionPool, type ProxySettings } from "./connections.ts";
import { type DebugEvent, type Exchange, type ExchangeRequest, maxBodyBytes, type Transport } from "./exchange.ts";
import { decodeBody, Reception } from "./reception.ts";
import { createExchangeLog, withoutEchoes } from "./redaction.ts";
import { checkWireRequest, parseTarget } from "./request-rules.ts";

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
  /** Certificates (PEM) of the only authorities that are trusted; the system's and Node's where absent. */
  readonly ca?: string | undefined;
  /** What a change is sent under: others may continue the same work once it has ended. */
  readonly leases?: {
    /** Makes them outlast one request. @throws Failure if another has one: nothing is sent */
    extend(): Promise<void>;
    /** Asked in the moment in which the request is handed to its connection. */
    areHeld(): boolean;
  };
  readonly debug?: (event: DebugEvent) => void;
}

/** The longest delay that a timer of Node can hold. */
const maxTimerMs = 2 ** 31 - 1;

/** Creates the transport. Nothing is opened before the first exchange. */
export function createTransport(options: TransportOptions): Transport {
  keepParserAsItIs();
  const pool = new ConnectionPool(options);
  const log = createExchangeLog(options);
  return {
    close: () => pool.close(),
    async exchange(request) {
      checkWireRequest(request);
      const signal = request.signal ?? options.signal;
      const located = await unlessAborted(options.locate(request.baseUrl), signal);
      if (located === undefined) return interrupted;
      const target = parseTarget(located);
      // A change has a connection of its own, closed afterwards (`reset`).
      const fresh = isChange(request);
      if (fresh) await options.leases?.extend();
      const logEnd = log(request, target);
      const connection = await pool.take(target, fresh);
      const { method, body, maxBytes = maxBodyBytes } = request;
      const settled = (end: Exchange): void =>
        pool.give(target, { connection, reusable: end.kind === "response" && !fresh });
      const { reception, exchange } = receptionOf(request, { signal, fresh, maxBytes, options, settled });
      if (!signal.aborted) {
        const headers = { "accept-encoding": "identity", ...request.headers, "user-agent": options.userAgent };
        const path = target.prefix + request.path;
        const reset = fresh || undefined;
        connection.expect(() => reception.hasHead);
        connection.dispatcher.dispatch({ origin: target.origin, method, path, headers, body, reset }, reception);
      }
      return logEnd(withoutEchoes(request, await decoded(await exchange, maxBytes)));
    },
  };
}

/**
 * undici's parser is WebAssembly, and V8 compiles it a second time, optimised, after the first answer: 80 ms of processor
 * that a process which has finished has to wait for, to save microseconds a page. With this budget it never does.
 */
function keepParserAsItIs(): void {
  setFlagsFromString("--wasm-tiering-budget=1000000000");
}

function isChange({ method }: ExchangeRequest): boolean {
  return method !== "GET" && method !== "HEAD";
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

interface ReceptionOptions {
  readonly signal: AbortSignal;
  /** The request changes something. */
  readonly fresh: boolean;
  readonly maxBytes: number;
  readonly options: TransportOptions;
  readonly settled: (end: Exchange) => void;
}

/** What one request is answered with, within its time; one that is aborted ends immediately. */
function receptionOf(
  { method, buffer }: ExchangeRequest,
  { signal, fresh, maxBytes, options, settled }: ReceptionOptions,
): { readonly reception: Reception; readonly exchange: Promise<Exchange> } {
  let resolve!: (exchange: Exchange) => void;
  const exchange = new Promise<Exchange>((settle) => (resolve = settle));
  const reception = new Reception({
    maxBytes: method === "HEAD" ? Infinity : maxBytes,
    buffer,
    maySend: () => !fresh || (options.leases?.areHeld() ?? true),
    settle(end) {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      settled(end);
      resolve(end);
    },
  });
  const onAbort = (): void => reception.break({ reason: "interrupted", detail: "interrupted" });
  const onTime = async (): Promise<void> => {
    // A process that was suspended is past its time before it has read what arrived meanwhile.
    await reception.readArrived();
    const missing = reception.sent ? "full response" : "connection";
    reception.break({ reason: "timeout", detail: `no ${missing} within ${options.timeoutMs / 1000} s` });
  };
  const timer = setTimeout(() => void onTime(), Math.min(options.timeoutMs, maxTimerMs));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return { reception, exchange };
}

async function decoded(exchange: Exchange, maxBytes: number): Promise<Exchange> {
  if (exchange.kind === "broken" || exchange.headers["content-encoding"] === undefined) return exchange;
  const body = await decodeBody(exchange.body, { encoding: exchange.headers["content-encoding"], maxBytes });
  return Buffer.isBuffer(body) ? { ...exchange, body } : { kind: "broken", sent: true, ...body };
}
