// Makes one HTTP exchange over undici (§5.1) with size limits and a deadline, and records whether the request was sent.
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
  readonly locate: (baseUrl: string) => string | Promise<string>;
  /** From the start of the exchange to the last byte of the response. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  /** When a lease ends, another process may continue the work, so a change must not be sent. */
  readonly leases?: {
    /** Makes the leases outlast one request. @throws Failure if a lease is lost or the journal cannot be reached */
    extend(): Promise<void>;
    areHeld(): boolean;
  };
}

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
          const recording = isChange(request) ? new Recording(maxBodyBytes + maxFraming) : undefined;
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

const maxTimerMs = 2 ** 31 - 1;

interface Deadline {
  readonly over: Promise<NetworkError>;
  /** Breaks the reception at the deadline or on abort. @returns false if that has already happened */
  watch(reception: Reception): boolean;
  clear(): void;
}

function startDeadline(timeoutMs: number, signal: AbortSignal): Deadline {
  let resolveOver!: (why: NetworkError) => void;
  const over = new Promise<NetworkError>((resolve) => (resolveOver = resolve));
  let reason: NetworkError | undefined;
  let watched: Reception | undefined;
  const end = (why: NetworkError): void => {
    resolveOver((reason = why));
    watched?.break(why);
  };
  const onAbort = (): void => end({ reason: "interrupted", detail: "interrupted" });
  const onTime = async (): Promise<void> => {
    // After the machine was suspended, the timer can fire before data that arrived earlier is read.
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

/** Bytes that a recording may have beyond `maxBodyBytes`, for the head and chunk framing. */
const maxFraming = 1024 * 1024;

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
    // A change uses a connection of its own, which must not stay open.
    reset: isChange(request) || undefined,
  };
}

interface ReceptionParts {
  readonly connection: Connection;
  readonly recording: Recording | undefined;
  readonly leases: TransportOptions["leases"];
}

/** Turns of the event loop without data after which the socket is empty. */
const quietTurns = 2;
const maxReadMs = 1000;

class Reception implements Dispatcher.DispatchHandler {
  readonly exchange: Promise<Exchange>;
  /** True once undici may have written the request. */
  sent = false;
  /** True for a read whose reused connection was closed before a response began. The transport repeats the read. */
  wasStale = false;
  #resolve!: (exchange: Exchange) => void;
  #hasEnded = false;
  #head: Head | undefined;
  readonly #body = new ByteBuffer();
  #most = maxBodyBytes;
  #events = 0;
  #bytesBefore = 0;
  readonly #request: ExchangeRequest;
  readonly #parts: ReceptionParts;

  constructor(request: ExchangeRequest, parts: ReceptionParts) {
    this.#request = request;
    this.#parts = parts;
    this.exchange = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** undici calls this when the connection is open and the request is not written yet. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { leases, connection } = this.#parts;
    if (isChange(this.#request) && leases?.areHeld() === false)
      this.break({ reason: "timeout", detail: "this process stood still for too long, and lost its lease" });
    // A call after a reconnect would send the request twice.
    if (this.#hasEnded || this.sent) return controller.abort(new Error("not sent"));
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
    if (this.#hasEnded) return;
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
    if (!this.#hasEnded) this.wasStale = this.sent && why.reason === "closed" && isRepeatable;
    if (!this.sent || !recording) return this.break(why);
    void recording.waitForRest().then(() => this.break(why));
  }

  async readArrived(): Promise<void> {
    const until = performance.now() + maxReadMs;
    for (let quiet = 0; this.sent && !this.#hasEnded && quiet < quietTurns && performance.now() < until; ) {
      const before = this.#events;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      quiet = this.#events === before ? quiet + 1 : 0;
    }
  }

  break(why: NetworkError): void {
    const partial = this.#head && { ...this.#head, body: this.#body.bytes() };
    const received = this.#parts.recording?.bytes();
    this.#end({ kind: "broken", sent: this.sent, ...why, partial, received });
  }

  #end(exchange: Exchange): void {
    this.#hasEnded = true;
    this.#resolve(exchange);
  }
}

function tooLarge(how: string, most: number): NetworkError {
  return { reason: "too_large", detail: `the response ${how} than ${most / 1024 ** 2} MiB` };
}

/** A proxy may encode the body although the transport asks for `identity`. Refuses unknown and multiple encodings. */
async function decoded(exchange: Exchange, { maxBytes = maxBodyBytes }: ExchangeRequest): Promise<Exchange> {
  if (exchange.kind === "broken") return exchange;
  const { status, headers, body } = exchange;
  const encoding = (headers["content-encoding"] ?? "").trim().toLowerCase();
  if (encoding === "" || encoding === "identity" || body.length === 0) return exchange;
  // A small compressed body may expand to gigabytes.
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
