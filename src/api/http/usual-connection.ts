// A connection of undici's, over which requests are sent and usual responses read without undici's client and parser: a start that
// sends one request takes almost as long for these as Node takes to start, and a list three times as much processor and memory.
// A response that is in any way unusual is undici's, from its first byte, and so is the connection from then on; `UsualResponse`
// decides.
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { buildConnector as BuildConnector, Dispatcher } from "undici";
import { NoReader } from "./exchange.ts";
import { type ResponseListener, UsualResponse } from "./usual-response.ts";

type Connect = BuildConnector.connector;

/** What is asked of a connection, as undici has it; no HEAD and no CONNECT, whose responses have no body. */
export interface Dispatch extends Pick<Dispatcher.DispatchOptions, "method" | "path" | "headers"> {
  readonly body?: string | Buffer | undefined;
  /** Nothing is sent over the connection afterwards. */
  readonly reset?: boolean | undefined;
}

/** A connection that was idle for longer may be closed by the service at any moment. */
const keptMs = 4000;
/** What the service says of that may be so much too long: a request is on its way meanwhile. */
const earlierMs = 2000;

/** Methods whose request says of a body that it is empty (RFC 9110 §8.6). */
const withBody: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** What undici's own parser calls its errors. */
class ParserError extends Error {
  override readonly name = "HTTPParserError";
}

export interface UsualConnectionOptions {
  readonly origin: string;
  /** So much is read with one call of the system. */
  readonly spaceBytes: number;
  /** Makes a socket that reads with `onread`. Whatever it fails with is what the exchange fails with. */
  readonly connect: (onread: UsualConnection["onread"]) => Connect;
  /** undici, on a stream whose request was sent; on sockets of its own when that is closed. */
  readonly undici: (stream: Duplex) => Promise<Dispatcher>;
}

/** A request, and what came of its response. */
interface Underway {
  readonly request: Dispatch;
  readonly listener: ResponseListener;
  readonly response: UsualResponse;
  isSent: boolean;
  /** The connection that it was sent over had carried another one before. */
  isReused?: boolean;
}

/** What of a dispatcher the transport uses: one request at a time. */
export class UsualConnection {
  readonly onread = {
    buffer: (): Buffer => (this.#space = this.#current?.listener.space?.() ?? (this.#ownSpace ??= this.#makeSpace())),
    callback: (length: number): boolean => this.#receive(length),
  };
  /** Where the socket puts what it reads next. */
  #space: Buffer = Buffer.alloc(0);
  #ownSpace: Buffer | undefined;
  readonly #options: UsualConnectionOptions;
  readonly #connect: Connect;
  readonly #url: URL;
  #socket: Socket | undefined;
  #current: Underway | undefined;
  /** The lines of the headers that were sent last: those of a walk are the same object each time. */
  #sent: { readonly headers: Dispatch["headers"]; readonly lines: string } | undefined;
  #idle: { readonly timer: NodeJS.Timeout; readonly ms: number } | undefined;
  #successor: Promise<Dispatcher> | undefined;
  #bridge: Bridge | undefined;

  constructor(options: UsualConnectionOptions) {
    this.#options = options;
    this.#connect = options.connect(this.onread);
    this.#url = new URL(options.origin);
  }

  /** False from the moment that undici reads: its client sends without waiting. */
  get waits(): boolean {
    return this.#successor === undefined;
  }

  dispatch(request: Dispatch, listener: ResponseListener): void {
    if (this.#successor) return void this.#dispatchThere(request, listener);
    this.#current = { request, listener, response: new UsualResponse(listener), isSent: false };
    // In the first turn the last response is done with; in the second it is seen that the service closed the connection
    // after it, or sent what no one asked for.
    if (this.#socket) setImmediate(() => setImmediate(() => this.#leave(listener)));
    else {
      this.#open(listener);
      listener.onLeft?.();
    }
  }

  #leave(listener: ResponseListener): void {
    this.#begin(listener, { isReused: true });
    listener.onLeft?.();
  }

  #makeSpace(): Buffer {
    return Buffer.allocUnsafeSlow(this.#options.spaceBytes);
  }

  destroy(): void {
    this.#current = undefined;
    clearTimeout(this.#idle?.timer);
    this.#socket?.destroy();
    this.#successor?.then((undici) => undici.destroy()).catch(() => {});
  }

  async #dispatchThere(request: Dispatch, listener: ResponseListener): Promise<void> {
    try {
      (await this.#successor)?.dispatch(request, listener);
    } catch (error) {
      listener.onError(asError(error));
    }
    listener.onLeft?.();
  }

  #open(listener: ResponseListener): void {
    const { hostname, host, protocol, port } = this.#url;
    this.#connect({ hostname: hostname.replace(/^\[(.*)\]$/, "$1"), host, protocol, port }, (error, socket) => {
      if (this.#current?.listener !== listener) return void socket?.destroy();
      if (error) {
        this.#current = undefined;
        return listener.onError(error);
      }
      let failure: Error | undefined;
      socket.on("error", (reason: Error) => (failure = reason));
      socket.once("close", () => this.#closed(socket, failure));
      // It says nothing more, whether or not it has read the whole request.
      socket.once("end", () => {
        this.#closed(socket, undefined);
        if (!this.#bridge) socket.destroy();
      });
      this.#socket = socket;
      this.#begin(listener);
    });
  }

  #begin(listener: ResponseListener, { isReused = false } = {}): void {
    if (this.#current?.listener !== listener) return;
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed || socket.readableEnded) {
      this.#socket = undefined;
      return this.#open(listener);
    }
    // Sent again after a connection that was closed: the listener knows of it already.
    if (!this.#current.isReused) {
      let mayBegin = true;
      listener.onConnect(() => (mayBegin = false));
      if (!mayBegin) {
        this.#current = undefined;
        return void socket.destroy();
      }
    }
    this.#current.isSent = true;
    this.#current.isReused = isReused;
    socket.ref();
    this.#send(socket, this.#current.request);
  }

  #send(socket: Socket, { method, path, headers, body, reset }: Dispatch): void {
    if (this.#sent?.headers !== headers || this.#sent === undefined) {
      let lines = `host: ${this.#url.host}\r\nconnection: ${reset ? "close" : "keep-alive"}\r\n`;
      for (const [name, value] of Object.entries(headers ?? {})) lines += `${name}: ${value}\r\n`;
      this.#sent = { headers, lines };
    }
    const head = `${method} ${path} HTTP/1.1\r\n${this.#sent.lines}`;
    if (!body?.length && !withBody.has(method)) return void socket.write(`${head}\r\n`, "latin1");
    const bytes = Buffer.from(body ?? "");
    socket.cork();
    socket.write(`${head}content-length: ${bytes.length}\r\n\r\n`, "latin1");
    socket.write(bytes);
    socket.uncork();
  }

  #receive(length: number): boolean {
    const bytes = this.#space.subarray(0, length);
    if (this.#bridge) {
      this.#bridge.add(Buffer.from(bytes));
      return true;
    }
    const current = this.#current;
    // No one asked for it, or no one wants it any more.
    if (!current?.isSent) {
      this.#drop();
      return true;
    }
    const progress = current.response.read(bytes);
    if (this.#current !== current || progress === "more") return true;
    if (progress === "unusual") this.#handOver(current, this.#socket!);
    else this.#end(current, progress);
    return true;
  }

  #end({ listener, response }: Underway, progress: "whole" | "surplus" | "malformed"): void {
    this.#current = undefined;
    const ms = Math.min(keptMs, (response.keptMs ?? Infinity) - earlierMs);
    if (progress === "whole" && ms > 0) this.#keep(ms);
    else this.#drop();
    if (progress === "malformed") listener.onError(new ParserError("the chunks are not HTTP"));
    else listener.onComplete();
  }

  #keep(ms: number): void {
    this.#socket?.unref();
    if (this.#idle?.ms === ms) return void this.#idle.timer.refresh();
    clearTimeout(this.#idle?.timer);
    const timer = setTimeout(() => {
      if (this.#current === undefined && !this.#bridge) this.#drop();
    }, ms);
    this.#idle = { timer: timer.unref(), ms };
  }

  #drop(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #closed(socket: Socket, failure: Error | undefined): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    if (this.#bridge) return this.#bridge.end(failure);
    const current = this.#current;
    // One that was not sent yet gets another connection.
    if (!current?.isSent) return;
    // The service closed an idle connection while the request was on its way: it goes once more over another one. No change is
    // sent over a connection that carried anything before; if one were, it would not go twice.
    if (current.isReused && current.request.method === "GET" && current.response.isUntouched) {
      current.isSent = false;
      return this.#open(current.listener);
    }
    if (current.response.cut() === "unusual") {
      this.#handOver(current, socket);
      return this.#bridge!.end(failure);
    }
    this.#current = undefined;
    current.listener.onError(failure ?? new Error("the connection closed"));
  }

  /** undici reads the response that came, and serves the connection from then on. */
  #handOver({ request, listener, response }: Underway, socket: Socket): void {
    const { replay, isHeadTold } = response;
    this.#current = undefined;
    const bridge = (this.#bridge = new Bridge(socket, replay));
    this.#successor = this.#options.undici(bridge.stream);
    listener.onLoad?.(this.#successor);
    const rest: ResponseListener = {
      onConnect: () => {},
      onHeaders: (status, raw) => isHeadTold || listener.onHeaders(status, raw),
      onData: (chunk) => listener.onData(chunk),
      onComplete: () => listener.onComplete(),
      onError: (error) => listener.onError(error),
    };
    const read = this.#successor.then(
      // What it would send was sent, and a response to a GET is read as any other.
      (undici) => void undici.dispatch({ method: "GET", path: request.path }, rest),
      (cause: unknown) => {
        bridge.giveRaw(rest, { isHeadTold, error: new NoReader("undici failed", { cause }) });
        // Behind a change nothing is lost that still comes, up to the end of the connection or of the time.
        if (!request.reset) bridge.end(undefined);
      },
    );
    read.catch((error: unknown) => listener.onError(asError(error)));
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error("undici failed", { cause: error });
}

/** The stream that undici reads from and writes to in place of the socket. */
class Bridge {
  readonly stream: Duplex;
  /** What came before undici was there to read it; then nothing. */
  #waiting: Buffer[] | undefined;
  #ended: { readonly failure: Error | undefined } | undefined;
  /** Who is given the bytes in place of undici. */
  #raw: { readonly add: (bytes: Buffer) => void; readonly end: () => void } | undefined;

  /** @param first what came of the response: undici is given it when it has written the request, which was sent already */
  constructor(socket: Socket, first: Buffer) {
    this.#waiting = [first];
    this.stream = new Duplex({
      read() {},
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#waiting === undefined) return void socket.write(chunk, done);
        done();
        for (const bytes of this.#waiting) this.stream.push(bytes);
        this.#waiting = undefined;
        // undici expects nothing while it writes, and what came before the end is read first.
        if (this.#ended) setImmediate(() => this.#close());
      },
      destroy(error, done) {
        socket.destroy();
        done(error);
      },
    });
    // Until undici is loaded no one else listens.
    this.stream.on("error", () => {});
  }

  /** @param bytes what came next; they are kept */
  add(bytes: Buffer): void {
    if (this.#raw) this.#raw.add(bytes);
    else if (this.#waiting) this.#waiting.push(bytes);
    else this.stream.push(bytes);
  }

  /** The service says nothing more. */
  end(failure: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = { failure };
    if (this.#raw) this.#raw.end();
    else if (this.#waiting === undefined) this.#close();
  }

  /**
   * undici cannot be loaded: the program was replaced meanwhile, or can open no file. What came may hold a secret anyway, so it is
   * handed on as it is, as the body of a response that breaks.
   */
  giveRaw(
    listener: ResponseListener,
    { isHeadTold, error }: { readonly isHeadTold: boolean; readonly error: Error },
  ): void {
    let text = "";
    let isTold = isHeadTold;
    this.#raw = {
      add(bytes) {
        text = isTold ? "" : text + bytes.toString("latin1");
        const status = isTold ? undefined : /HTTP\/1\.[01] ([2-5]\d\d)/.exec(text)?.[1];
        if (isTold) listener.onData(bytes);
        if (status === undefined) return;
        isTold = true;
        listener.onHeaders(Number(status), []);
        listener.onData(Buffer.from(text, "latin1"));
      },
      end: () => listener.onError(error),
    };
    for (const bytes of this.#waiting ?? []) this.#raw.add(bytes);
    this.#waiting = undefined;
    if (this.#ended) this.#raw.end();
  }

  #close(): void {
    if (this.#ended?.failure) this.stream.destroy(this.#ended.failure);
    else this.stream.push(null);
  }
}
