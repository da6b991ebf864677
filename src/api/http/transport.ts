// One HTTP exchange over a connection that may carry it (§5.1). It knows exactly whether a request was handed to a
// connection, and holds every limit on what comes back.
import { type Connection, ConnectionPool, type ProxySettings, type Use } from "./connections.ts";
import {
  type DebugEvent,
  type Exchange,
  type ExchangeRequest,
  maxBodyBytes,
  type Response,
  type Transport,
  BodyBuffer,
  Deadlines,
  type Headers,
  connectError,
  exchangeError,
  headersOf,
  type NetworkError,
  NoConnection,
  sizeInWords,
} from "./exchange.ts";
import type { Dispatch } from "./usual-connection.ts";
import { createExchangeLog, withoutEchoes } from "./redaction.ts";
import { checkWireRequest, parseTarget, type Target } from "./request-rules.ts";

export interface TransportOptions {
  /** Logical base URL → real one. Called for each exchange; whatever it starts, it starts once, and then it is a promise. */
  readonly locate: (baseUrl: string) => string | Promise<string>;
  /** For one exchange, from the connection to the last byte of the body. */
  readonly timeoutMs: number;
  /** Aborted: nothing new is sent, and what is under way ends as interrupted. */
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly userAgent: string;
  readonly proxy?: ProxySettings;
  /** Certificates (PEM) of the only authorities that are trusted; the system's and Node's if absent. */
  readonly ca?: string | undefined;
  /** What a change is sent under: other processes may continue the same work once it has ended. */
  readonly leases?: {
    /** Makes them outlast one request. @throws Failure if another has one: nothing is sent */
    extend(): Promise<void>;
    /** Asked in the moment in which the request is handed to its connection. */
    areHeld(): boolean;
  };
  readonly debug?: (event: DebugEvent) => void;
}

/** Creates the transport. Nothing is opened before the first exchange. */
export function createTransport(options: TransportOptions): Transport {
  const pool = new ConnectionPool(options);
  const sender = new Sender(pool, options);
  const log = createExchangeLog(options);
  // A list asks for thousands of pages at one address.
  let last: { readonly located?: string; readonly target: Target } = {
    target: { origin: "", secure: true, prefix: "" },
  };
  return {
    close: () => pool.close(),
    async exchange(request) {
      checkWireRequest(request);
      const place = options.locate(request.baseUrl);
      const located = typeof place === "string" ? place : await unlessAborted(place, request.signal ?? options.signal);
      if (located === undefined) return interrupted;
      if (located !== last.located) last = { located, target: parseTarget(located) };
      const { target } = last;
      // A change has a connection of its own, closed afterwards (`reset`).
      const fresh = isChange(request);
      if (fresh) await options.leases?.extend();
      const logEnd = log(request, target);
      let underway = request.next?.ahead.take(request, target);
      if (underway === undefined) {
        const use = fresh ? "fresh" : request.method === "HEAD" ? "head" : request.buffer ? "pages" : "any";
        const taken = pool.take(target, use);
        const connection = taken instanceof Promise ? await taken : taken;
        const { order, reception, exchange } = sender.prepare(request, request, { target, connection, use });
        if (order) connection.dispatcher.dispatch(order, reception);
        underway = exchange;
      }
      const end = await underway;
      return logEnd(withoutEchoes(request, isEncoded(end) ? await decoded(end, request) : end));
    },
  };
}

/** Which connection carries a request, and to where. */
interface Way {
  readonly target: Target;
  readonly connection: Connection;
  readonly use: Use;
}

interface Prepared {
  readonly reception: Reception;
  readonly exchange: Promise<Exchange>;
  /** What the connection is given; nothing if the exchange was aborted. */
  readonly order?: Dispatch & { readonly origin: string };
}

/** Makes requests ready for their connections; of a walk it sends the next one when a response is whole. */
class Sender {
  readonly #pool: ConnectionPool;
  readonly #options: TransportOptions;
  readonly #deadlines: Deadlines;
  #wire: { readonly own: Headers; readonly headers: Record<string, string> } | undefined;

  constructor(pool: ConnectionPool, options: TransportOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#deadlines = new Deadlines(options.timeoutMs);
  }

  prepare(request: ExchangeRequest, to: Pick<ExchangeRequest, "path" | "buffer">, way: Way): Prepared {
    const { target, connection, use } = way;
    const fresh = use === "fresh";
    const signal = request.signal ?? this.#options.signal;
    const settled = (end: Exchange, resolve: () => void): void => {
      if (this.#sendNext(request, { end, way, onLeft: resolve })) return;
      this.#pool.give(target, { connection, use, reusable: end.kind === "response" });
      resolve();
    };
    const parts = { buffer: to.buffer, signal, fresh, options: this.#options, deadlines: this.#deadlines, settled };
    const { reception, exchange } = receptionOf(request, parts);
    if (signal.aborted) return { reception, exchange };
    const { method, body } = request;
    const headers = this.#headersOf(request);
    const reset = fresh || undefined;
    const order = { origin: target.origin, method, path: target.prefix + to.path, headers, body, reset };
    return { reception, exchange, order };
  }

  /** @returns true if the request that follows is about to leave, over the same connection; then `onLeft` is called when it has */
  #sendNext(
    request: ExchangeRequest,
    { end, way, onLeft }: { readonly end: Exchange; readonly way: Way; readonly onLeft: () => void },
  ): boolean {
    const { ahead } = request.next ?? {};
    // In a debug log a request would be shown before the response that it follows.
    if (ahead === undefined || !way.connection.waits || this.#options.debug) return false;
    const next = ahead.after(request, end);
    if (next === undefined) return false;
    const { order, reception, exchange } = this.prepare(request, next, way);
    const { path, buffer } = next;
    ahead.sent({ path, buffer, request, target: way.target, reception, exchange });
    reception.whenLeft(onLeft);
    if (order) way.connection.dispatcher.dispatch(order, reception);
    else reception.onLeft();
    return true;
  }

  #headersOf({ headers: own }: ExchangeRequest): Record<string, string> {
    const { userAgent } = this.#options;
    if (this.#wire?.own !== own)
      this.#wire = { own, headers: { "accept-encoding": "identity", ...own, "user-agent": userAgent } };
    return this.#wire.headers;
  }
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

interface RequestParts extends Pick<ExchangeRequest, "buffer"> {
  readonly signal: AbortSignal;
  /** The request changes something. */
  readonly fresh: boolean;
  readonly options: TransportOptions;
  readonly deadlines: Deadlines;
  /** Hands the exchange on with `resolve`, not before another request has left that it must not hold up. */
  readonly settled: (end: Exchange, resolve: () => void) => void;
}

/** The response to one request, within its time; one that is aborted ends immediately. */
function receptionOf(
  { method, maxBytes = maxBodyBytes }: ExchangeRequest,
  { buffer, signal, fresh, options, deadlines, settled }: RequestParts,
): Prepared {
  let resolve!: (exchange: Exchange) => void;
  const exchange = new Promise<Exchange>((settle) => (resolve = settle));
  const reception = new Reception({
    maxBytes: method === "HEAD" ? Infinity : maxBytes,
    buffer,
    maySend: () => !fresh || (options.leases?.areHeld() ?? true),
    settle(end) {
      unwatch();
      deadlines.end(deadline, () => settled(end, () => resolve(end)));
    },
  });
  const onAbort = (): void => reception.break({ reason: "interrupted", detail: "interrupted" });
  const onTime = async (): Promise<void> => {
    // A suspended process can be past its deadline before it has read what arrived meanwhile.
    await reception.readArrived();
    const missing = reception.sent ? "full response" : "connection";
    reception.break({ reason: "timeout", detail: `no ${missing} within ${options.timeoutMs / 1000} s` });
  };
  const deadline = deadlines.start(() => void onTime());
  const unwatch = onceAborted(signal, onAbort);
  if (signal.aborted) onAbort();
  return { reception, exchange };
}

/** Who waits for the abort of a signal: one listener for all, since a listener for each exchange costs more than its response. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** @returns a function after which `act` is not called any more */
function onceAborted(signal: AbortSignal, act: () => void): () => void {
  let all = waiting.get(signal);
  if (all === undefined) {
    const acts = new Set<() => void>();
    all = acts;
    waiting.set(signal, acts);
    signal.addEventListener("abort", () => [...acts].forEach((each) => each()), { once: true });
  }
  const acts = all;
  acts.add(act);
  return () => void acts.delete(act);
}

function isEncoded(exchange: Exchange): exchange is Response {
  return exchange.kind === "response" && exchange.headers["content-encoding"] !== undefined;
}

async function decoded(
  exchange: Response,
  { maxBytes = maxBodyBytes }: Pick<ExchangeRequest, "maxBytes">,
): Promise<Exchange> {
  const body = await decodeBody(exchange.body, { encoding: exchange.headers["content-encoding"], maxBytes });
  return Buffer.isBuffer(body) ? { ...exchange, body } : { kind: "broken", sent: true, ...body };
}

export interface ReceptionOptions {
  readonly maxBytes: number;
  /** Where the body is received; one of its own if absent. */
  readonly buffer?: BodyBuffer | undefined;
  readonly settle: (exchange: Exchange) => void;
  /** Asked when the next thing is to write the request: a process may have stood still until then. */
  readonly maySend?: () => boolean;
}

/** Turns of the event loop without a byte, after which nothing more is in the socket: one reads, one makes sure. */
const quietTurns = 2;

/** The listener of one request, as undici calls it. It settles exactly once; what comes afterwards is dropped. */
export class Reception {
  #sent = false;
  #settled = false;
  #head: { status: number; headers: Headers } | undefined;
  readonly #buffer: BodyBuffer;
  #length = 0;
  /** How often something of the response came. */
  #events = 0;
  #loading: Promise<unknown> | undefined;
  #left: (() => void) | undefined;
  readonly #options: ReceptionOptions;

  constructor(options: ReceptionOptions) {
    this.#options = options;
    this.#buffer = options.buffer ?? new BodyBuffer();
    this.#buffer.clear();
  }

  /** True from the moment that the request was handed to a connection. */
  get sent(): boolean {
    return this.#sent;
  }

  /** Called when a connection is established, before anything is written to it. */
  onConnect(abort: (error?: Error) => void): void {
    // A second time would be a second sending, which is not decided here.
    if (this.#settled || this.#sent) return abort();
    if (this.#options.maySend?.() === false) {
      this.break({ reason: "timeout", detail: "this process stood still for too long, and lost its lease" });
      return abort();
    }
    this.#sent = true;
  }

  /** @param act called when the request was sent, or a connection is being made for it */
  whenLeft(act: () => void): void {
    this.#left = act;
  }

  onLeft(): void {
    const act = this.#left;
    // It knows the response before, and that one the one before it.
    this.#left = undefined;
    act?.();
  }

  space(): Buffer | undefined {
    return this.#options.buffer?.space();
  }

  onHeaders(status: number, raw: readonly (Buffer | string)[]): boolean {
    if (status < 200) return true;
    this.#events += 1;
    const headers = headersOf(raw);
    this.#head = { status, headers };
    if (Number(headers["content-length"]) > this.#options.maxBytes) this.break(this.#tooLarge());
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#settled) return true;
    this.#events += 1;
    this.#length += chunk.length;
    if (this.#length > this.#options.maxBytes) this.break(this.#tooLarge());
    else this.#buffer.append(chunk);
    return true;
  }

  onLoad(loading: Promise<unknown>): void {
    this.#events += 1;
    this.#loading = loading.catch(() => {});
  }

  onComplete(): void {
    if (this.#head === undefined) return;
    // Names, and no spread: V8 makes a new shape for each object that one is in, and a list has thousands.
    const { status, headers } = this.#head;
    this.#settle({ kind: "response", status, headers, body: this.#buffer.bytes() });
  }

  onError(error: Error): void {
    this.break(error instanceof NoConnection ? connectError(error) : exchangeError(error));
  }

  /**
   * Lets the event loop read what is in the socket. A peer that sends without a pause is bounded by `maxBytes`.
   * Nothing is waited for before the request was sent: a connection that is made now would send it too late.
   */
  async readArrived(): Promise<void> {
    for (let quiet = 0; this.#sent && !this.#settled && quiet < quietTurns; ) {
      const before = this.#events;
      await this.#loading;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      quiet = this.#events === before ? quiet + 1 : 0;
    }
  }

  /** Ends it before the response is whole. */
  break(broken: NetworkError): void {
    const partial = this.#head && { ...this.#head, body: this.#buffer.bytes() };
    this.#settle({ kind: "broken", sent: this.#sent, ...broken, partial });
  }

  #settle(exchange: Exchange): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.settle(exchange);
  }

  #tooLarge(): NetworkError {
    return { reason: "too_large", detail: `the response is larger than ${sizeInWords(this.#options.maxBytes)}` };
  }
}

/**
 * The body as it was before it was encoded. None is asked for; a gzip that a proxy on the way added is undone all the
 * same, since a response to a change is worth reading. Anything else, and more than one, is refused.
 * @param maxBytes bound on the decoded length: 300 kB may unfold to 1 GB
 */
export async function decodeBody(
  body: Buffer,
  { encoding, maxBytes }: { readonly encoding: string | undefined; readonly maxBytes: number },
): Promise<Buffer | NetworkError> {
  const name = (encoding ?? "").trim().toLowerCase();
  if (name === "" || name === "identity" || body.length === 0) return body;
  if (name !== "gzip" && name !== "x-gzip")
    return { reason: "malformed", detail: "the response has an encoding that was not requested" };
  const { gunzip } = await import("node:zlib");
  return new Promise((resolve) => {
    gunzip(body, { maxOutputLength: maxBytes }, (error, decoded) => {
      if (!error) resolve(decoded);
      else if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
        resolve({ reason: "too_large", detail: `the response expands to more than ${sizeInWords(maxBytes)}` });
      else resolve({ reason: "malformed", detail: "the response is not valid gzip" });
    });
  });
}
