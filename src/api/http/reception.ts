// Owns: receiving one response: head, body within its bound, and whether the request was handed to a connection.
// Must not know: how a connection is made, what the bytes mean.
import { BodyRoom } from "./body-room.ts";
import { type Broken, breakOfConnect, breakOfExchange, NoConnection } from "./break-of.ts";
import { type Exchange, type Headers, sizeInWords } from "./exchange.ts";

export interface ReceptionOptions {
  readonly maxBytes: number;
  /** Where the body is received; one of its own where absent. */
  readonly room?: BodyRoom | undefined;
  readonly settle: (exchange: Exchange) => void;
}

/** The listener of one request, as undici calls it. It settles exactly once; what comes afterwards is dropped. */
export class Reception {
  #sent = false;
  #settled = false;
  #head: { status: number; headers: Headers } | undefined;
  readonly #room: BodyRoom;
  #length = 0;
  readonly #options: ReceptionOptions;

  constructor(options: ReceptionOptions) {
    this.#options = options;
    this.#room = options.room ?? new BodyRoom();
    this.#room.clear();
  }

  /** True from the moment that the request was handed to a connection. */
  get sent(): boolean {
    return this.#sent;
  }

  /** Called when a connection stands and the next thing is to write to it. */
  onConnect(abort: (error?: Error) => void): void {
    // A second time would be a second sending, which is nobody's to decide here.
    if (this.#settled || this.#sent) return abort();
    this.#sent = true;
  }

  onHeaders(status: number, raw: Buffer[]): boolean {
    if (status < 200) return true;
    const headers = parseHeaders(raw);
    this.#head = { status, headers };
    if (Number(headers["content-length"]) > this.#options.maxBytes) this.break(this.#tooLarge());
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#settled) return true;
    this.#length += chunk.length;
    if (this.#length > this.#options.maxBytes) this.break(this.#tooLarge());
    else this.#room.append(chunk);
    return true;
  }

  onComplete(): void {
    if (this.#head) this.#settle({ kind: "response", ...this.#head, body: this.#room.bytes() });
  }

  onError(error: Error): void {
    this.break(error instanceof NoConnection ? breakOfConnect(error) : breakOfExchange(error));
  }

  /** Ends it before the response is whole. */
  break(broken: Broken): void {
    const partial = this.#head && { ...this.#head, body: this.#room.bytes() };
    this.#settle({ kind: "broken", sent: this.#sent, ...broken, ...(partial ? { partial } : {}) });
  }

  #settle(exchange: Exchange): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.settle(exchange);
  }

  #tooLarge(): Broken {
    return { reason: "too_large", detail: `the answer is larger than ${sizeInWords(this.#options.maxBytes)}` };
  }
}

/** Header names in lower case in an object without prototype; repeated ones joined as RFC 9110 §5.3 has it. */
function parseHeaders(raw: readonly Buffer[]): Headers {
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toString("latin1").toLowerCase();
    const value = raw[i + 1]!.toString("latin1");
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}
