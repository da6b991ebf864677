// One HTTP exchange over undici's client (§5.1): its limits, its one deadline, and whether the request was handed to a connection.
import type { Dispatcher } from "undici";
import { type Connection, ConnectionPool, type ConnectionSettings, ByteBuffer, Recording } from "./connections.ts";
import {
  type Exchange,
  type ExchangeRequest,
  type Head,
  maxBodyBytes,
  type NetworkError,
  networkError,
  type Transport,
  checkWireRequest,
  parseTarget,
  type Target,
} from "./exchange.ts";
import { withoutEchoes } from "./redaction.ts";

export interface TransportOptions extends ConnectionSettings {
  /** Logical base URL → real one. Called for each exchange; it starts whatever it has to start only once. */
  readonly locate: (baseUrl: string) => string | Promise<string>;
  /** For one exchange, from the connection to the last byte of the body. */
  readonly timeoutMs: number;
  /** Aborted: nothing new is sent, and what is under way ends as interrupted. */
  readonly signal: AbortSignal;
  readonly userAgent: string;
  /** The leases that a change is sent under: other processes may continue the same work once they have ended. */
  readonly leases?: {
    /** Makes them outlast one request. @throws Failure if another process has one: nothing is sent */
    extend(): Promise<void>;
    /** Asked in the moment in which the request is handed to its connection. */
    areHeld(): boolean;
  };
}

/** Creates the transport. Nothing is opened before the first exchange. */
export function createTransport(options: TransportOptions): Transport {
  const pool = new ConnectionPool(options);
  return {
    close: () => pool.close(),
    async exchange(request) {
      checkWireRequest(request);
      const deadline = startDeadline(options.timeoutMs, request.signal ?? options.signal);
      try {
        const located = await Promise.race([deadline.over, options.locate(request.baseUrl)]);
        if (typeof located !== "string") return { kind: "broken", sent: false, ...located };
        const target = parseTarget(located);
        if (isChange(request)) await options.leases?.extend();
        for (;;) {
          const recording = isChange(request) ? new Recording(maxBodyBytes + mostFraming) : undefined;
          const connection = pool.take(target, recording);
          const reception = new Reception(request, { connection, recording, leases: options.leases });
          if (deadline.watch(reception)) connection.dispatch(wireRequest(request, target, options), reception);
          const exchange = await reception.exchange;
          if (exchange.kind === "response" && !recording) pool.give(connection);
          else connection.destroy();
          if (!reception.wasStale) return withoutEchoes(request, await decoded(exchange, request));
        }
      } finally {
        deadline.clear();
      }
    },
  };
}

function isChange({ method }: ExchangeRequest): boolean {
  return method !== "GET" && method !== "HEAD";
}

/** The longest delay that a timer of Node can hold. */
const maxTimerMs = 2 ** 31 - 1;

interface Deadline {
  /** Settles when the time is over or the signal is aborted. */
  readonly over: Promise<NetworkError>;
  /** @returns false if it is over already; then the reception has ended */
  watch(reception: Reception): boolean;
  clear(): void;
}

/** Ends an exchange in time, whatever it is doing then. */
function startDeadline(timeoutMs: number, signal: AbortSignal): Deadline {
  let settle!: (why: NetworkError) => void;
  const over = new Promise<NetworkError>((resolve) => (settle = resolve));
  let reason: NetworkError | undefined;
  let watched: Reception | undefined;
  const end = (why: NetworkError): void => {
    settle((reason = why));
    watched?.break(why);
  };
  const onAbort = (): void => end({ reason: "interrupted", detail: "interrupted" });
  const onTime = async (): Promise<void> => {
    // A suspended process can be past its deadline before it has read what arrived meanwhile.
    await watched?.readArrived();
    end({
      reason: "timeout",
      detail: `no ${watched?.sent ? "full response" : "connection"} within ${timeoutMs / 1000} s`,
    });
  };
  const timer = setTimeout(() => void onTime(), Math.min(timeoutMs, maxTimerMs));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return {
    over,
    watch(reception) {
      watched = reception;
      if (reason) reception.break(reason);
      return reason === undefined;
    },
    clear() {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    },
  };
}

/** Bytes of a response beside its body: its head, and what frames its chunks. */
const mostFraming = 1024 * 1024;

function wireRequest(
  request: ExchangeRequest,
  { origin, prefix }: Target,
  { userAgent }: TransportOptions,
): Dispatcher.DispatchOptions {
  return {
    origin,
    method: request.method,
    path: prefix + request.path,
    headers: { "accept-encoding": "identity", ...request.headers, "user-agent": userAgent },
    body: request.body,
    // A change has a connection of its own, which ends with it.
    reset: isChange(request) || undefined,
  };
}

interface ReceptionParts {
  readonly connection: Connection;
  readonly recording: Recording | undefined;
  readonly leases: TransportOptions["leases"];
}

/** Turns of the event loop without data after which the socket is empty: one reads, one makes sure. */
const quietTurns = 2;
/** What had arrived at the deadline is read in less than this, milliseconds; a peer that keeps sending gets no more time. */
const mostReadMs = 1000;

/** Receives the response to one request, as undici calls it. It settles exactly once; what comes afterwards is dropped. */
class Reception implements Dispatcher.DispatchHandler {
  readonly exchange: Promise<Exchange>;
  /** True from the moment in which the request was handed to a connection. */
  sent = false;
  /** True if the server closed a kept-alive connection before it saw this read. */
  wasStale = false;
  #settle!: (exchange: Exchange) => void;
  #isSettled = false;
  #head: Head | undefined;
  readonly #body = new ByteBuffer();
  #most = maxBodyBytes;
  /** How often a part of the response came. */
  #events = 0;
  #bytesBefore = 0;
  readonly #request: ExchangeRequest;
  readonly #parts: ReceptionParts;

  constructor(request: ExchangeRequest, parts: ReceptionParts) {
    this.#request = request;
    this.#parts = parts;
    this.exchange = new Promise((resolve) => (this.#settle = resolve));
  }

  /** Called once a connection stands, before anything is written to it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { leases, connection } = this.#parts;
    if (isChange(this.#request) && leases?.areHeld() === false)
      this.break({ reason: "timeout", detail: "this process stood still for too long, and lost its lease" });
    // A second call would be a second sending.
    if (this.#isSettled || this.sent) return controller.abort(new Error("not sent"));
    this.sent = true;
    this.#bytesBefore = connection.bytesRead;
  }

  onResponseStart(_controller: unknown, status: number, received: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    this.#events += 1;
    const headers: Record<string, string> = Object.create(null);
    for (const [name, value = ""] of Object.entries(received))
      headers[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
    this.#head = { status, headers };
    this.#most = status < 300 ? (this.#request.maxBytes ?? maxBodyBytes) : maxBodyBytes;
    const length = Number(headers["content-length"] ?? 0);
    if (this.#request.method === "HEAD") return;
    if (length > this.#most) this.break(tooLarge("is larger", this.#most));
    else if (length > 0) this.#body.reserve(length);
  }

  onResponseData(_controller: unknown, chunk: Uint8Array): void {
    if (this.#isSettled) return;
    this.#events += 1;
    if (this.#body.length + chunk.length > this.#most) this.break(tooLarge("is larger", this.#most));
    else this.#body.append(chunk);
  }

  onResponseEnd(): void {
    if (this.#head) this.#end({ kind: "response", ...this.#head, body: this.#body.bytes() });
  }

  onResponseError(_controller: unknown, error: Error): void {
    const { connection, recording } = this.#parts;
    const why = networkError(error);
    const isRepeatable = !isChange(this.#request) && connection.isReused && connection.bytesRead === this.#bytesBefore;
    if (!this.#isSettled) this.wasStale = this.sent && why.reason === "closed" && isRepeatable;
    if (!this.sent || !recording) return this.break(why);
    void recording.rest().then(() => this.break(why));
  }

  /** Reads what is in the socket already. Before the request was sent there is nothing to read. */
  async readArrived(): Promise<void> {
    const until = performance.now() + mostReadMs;
    for (let quiet = 0; this.sent && !this.#isSettled && quiet < quietTurns && performance.now() < until; ) {
      const before = this.#events;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      quiet = this.#events === before ? quiet + 1 : 0;
    }
  }

  /** Ends it before the response is whole. */
  break(why: NetworkError): void {
    const partial = this.#head && { ...this.#head, body: this.#body.bytes() };
    const received = this.#parts.recording?.bytes();
    this.#end({ kind: "broken", sent: this.sent, ...why, partial, received });
  }

  #end(exchange: Exchange): void {
    this.#isSettled = true;
    // Settling a second time changes nothing.
    this.#settle(exchange);
  }
}

function tooLarge(how: string, most: number): NetworkError {
  return { reason: "too_large", detail: `the response ${how} than ${most / 1024 ** 2} MiB` };
}

/**
 * The response with its body as it was before it was encoded. No encoding is asked for; one that a proxy on the way added is
 * undone anyway, since a response to a change is worth reading. Any other, and more than one, is refused.
 */
async function decoded(exchange: Exchange, { maxBytes = maxBodyBytes }: ExchangeRequest): Promise<Exchange> {
  if (exchange.kind === "broken") return exchange;
  const { status, headers, body } = exchange;
  const encoding = (headers["content-encoding"] ?? "").trim().toLowerCase();
  if (encoding === "" || encoding === "identity" || body.length === 0) return exchange;
  // 300 kB may unfold to 1 GB.
  const maxOutputLength = status < 300 ? maxBytes : maxBodyBytes;
  const partial = { status, headers, body };
  const broken = (why: NetworkError): Exchange => ({ kind: "broken", sent: true, ...why, partial });
  const { gunzipSync, inflateSync, brotliDecompressSync } = await import("node:zlib");
  const decoders = new Map([
    ["gzip", gunzipSync],
    ["x-gzip", gunzipSync],
    ["deflate", inflateSync],
    ["br", brotliDecompressSync],
  ]);
  const decode = decoders.get(encoding);
  if (!decode) return broken({ reason: "malformed", detail: "the response has an encoding that was not requested" });
  try {
    return { ...exchange, body: decode(body, { maxOutputLength }) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      return broken(tooLarge("expands to more", maxOutputLength));
    return broken({ reason: "malformed", detail: `the response is not valid ${encoding}` });
  }
}
