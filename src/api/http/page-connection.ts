// The connection of a list: the same two requests and responses thousands of times, for which undici needs three times as much
// processor and memory, and a single page waits a fifth less where undici's client is not loaded. A response that is in any way
// unusual is undici's, from its first byte, and so is the connection from then on; `UsualResponse` decides.
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { buildConnector as BuildConnector, Dispatcher } from "undici";
import { type ResponseListener, UsualResponse } from "./usual-response.ts";

type Connect = BuildConnector.connector;

/** What is asked of a connection, as undici has it. */
export type Dispatch = Pick<Dispatcher.DispatchOptions, "path" | "headers">;

/** A page is read with one or two calls of the system, bytes. */
const spaceBytes = 256 * 1024;
/** A connection that was idle for longer may be closed by the service at any moment. */
const keptMs = 4000;
/** What the service says of that may be so much too long: a request is on its way meanwhile. */
const earlierMs = 2000;

/** What undici's own parser calls its errors. */
class ParserError extends Error {
  override readonly name = "HTTPParserError";
}

export interface PageConnectionOptions {
  readonly origin: string;
  /** Makes a socket that reads with `onread`. Whatever it fails with is what the exchange fails with. */
  readonly connect: (onread: PageConnection["onread"]) => Connect;
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

/** What of a dispatcher the transport uses: one GET at a time. */
export class PageConnection {
  readonly onread = { buffer: (): Buffer => this.#space, callback: (length: number): boolean => this.#receive(length) };
  readonly #space = Buffer.allocUnsafeSlow(spaceBytes);
  readonly #options: PageConnectionOptions;
  readonly #connect: Connect;
  readonly #url: URL;
  #socket: Socket | undefined;
  #current: Underway | undefined;
  /** The lines of the headers that were sent last: those of a walk are the same object each time. */
  #sent: { readonly headers: Dispatch["headers"]; readonly lines: string } | undefined;
  #idle: { readonly timer: NodeJS.Timeout; readonly ms: number } | undefined;
  #successor: Promise<Dispatcher> | undefined;
  /** The stream that undici reads from and writes to in place of the socket. */
  #bridge: Duplex | undefined;

  constructor(options: PageConnectionOptions) {
    this.#options = options;
    this.#connect = options.connect(this.onread);
    this.#url = new URL(options.origin);
  }

  dispatch(request: Dispatch, listener: ResponseListener): void {
    if (this.#successor) return void this.#dispatchThere(request, listener);
    this.#current = { request, listener, response: new UsualResponse(listener), isSent: false };
    // In the first turn the last response is done with; in the second it is seen that the service closed the connection
    // after it, or sent what no one asked for.
    if (this.#socket) setImmediate(() => setImmediate(() => this.#begin(listener, { isReused: true })));
    else this.#open(listener);
  }

  destroy(): void {
    this.#current = undefined;
    clearTimeout(this.#idle?.timer);
    this.#socket?.destroy();
    this.#successor?.then((undici) => undici.destroy()).catch(() => {});
  }

  async #dispatchThere(request: Dispatch, listener: ResponseListener): Promise<void> {
    try {
      (await this.#successor)?.dispatch({ ...request, method: "GET" }, listener);
    } catch (error) {
      listener.onError(error instanceof Error ? error : new Error("undici failed", { cause: error }));
    }
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
    socket.write(this.#text(this.#current.request), "latin1");
  }

  #text({ path, headers }: Dispatch): string {
    if (this.#sent?.headers !== headers || this.#sent === undefined) {
      let lines = `host: ${this.#url.host}\r\nconnection: keep-alive\r\n`;
      for (const [name, value] of Object.entries(headers ?? {})) lines += `${name}: ${value}\r\n`;
      this.#sent = { headers, lines: `${lines}\r\n` };
    }
    return `GET ${path} HTTP/1.1\r\n${this.#sent.lines}`;
  }

  #receive(length: number): boolean {
    const bytes = this.#space.subarray(0, length);
    if (this.#bridge) {
      this.#bridge.push(Buffer.from(bytes));
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
    if (progress === "unusual") this.#handOver(current);
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
    if (this.#bridge) return void (failure ? this.#bridge.destroy(failure) : this.#bridge.push(null));
    const current = this.#current;
    // One that was not sent yet gets another connection.
    if (!current?.isSent) return;
    // The service closed an idle connection while the request was on its way: it goes once more over another one.
    if (current.isReused && current.response.isUntouched) {
      current.isSent = false;
      return this.#open(current.listener);
    }
    this.#current = undefined;
    current.listener.onError(failure ?? new Error("the connection closed"));
  }

  /** undici reads the response that came, and serves the connection from then on. */
  #handOver({ request, listener, response }: Underway): void {
    const socket = this.#socket!;
    const { replay, isHeadTold } = response;
    let isSent = true;
    const bridge = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        if (!isSent) return void socket.write(chunk, done);
        // The service has it.
        isSent = false;
        done();
        bridge.push(replay);
      },
      destroy(error, done) {
        socket.destroy();
        done(error);
      },
    });
    // Until undici is loaded no one else listens.
    bridge.on("error", () => {});
    this.#current = undefined;
    this.#bridge = bridge;
    this.#successor = this.#options.undici(bridge);
    void this.#dispatchThere(request, {
      onConnect: () => {},
      onHeaders: (status, raw) => isHeadTold || listener.onHeaders(status, raw),
      onData: (chunk) => listener.onData(chunk),
      onComplete: () => listener.onComplete(),
      onError: (error) => listener.onError(error),
    });
  }
}
