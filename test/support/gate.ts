// Between the program and a service: writes down what comes by, and may keep one request from its response, before the
// service has met it or after.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Met {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** The request that is held, counted from 1. */
export interface Held {
  readonly index: number;
  readonly when: "before" | "after";
  readonly onHeld: () => void;
}

export class Gate {
  readonly met: Met[] = [];
  readonly #server = createServer((incoming, outgoing) => void this.#pass(incoming, outgoing));
  readonly #target: URL | undefined;
  #held: Held | undefined;
  #count = 0;

  /** @param target nothing: every request is answered with 500 */
  constructor(target?: string) {
    this.#target = target === undefined ? undefined : new URL(target);
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The same address at the gate for one of the service's. */
  through(address: string): string {
    return this.#target ? address.replace(this.#target.origin, this.origin) : this.origin;
  }

  /** Begins to count anew. */
  arm(held?: Held): void {
    this.met.length = 0;
    this.#count = 0;
    this.#held = held;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    this.#count += 1;
    const held = this.#held?.index === this.#count ? this.#held : undefined;
    try {
      const body = await bytesOf(incoming);
      const { method = "GET", url: path = "/", headers } = incoming;
      this.met.push({ method, path, headers, body: body.toString("utf8") });
      if (held?.when === "before") return hold(held, outgoing);
      if (this.#target === undefined) return void outgoing.writeHead(500).end();
      const answered = await this.#onward({ method, path, headers }, body);
      const answer = await bytesOf(answered);
      if (held) return hold(held, outgoing);
      const { "content-length": _, "transfer-encoding": _te, connection: _c, ...kept } = answered.headers;
      outgoing.writeHead(answered.statusCode ?? 502, kept).end(answer);
    } catch {
      outgoing.destroy(); // the service has dropped the connection, or the program has
    }
  }

  #onward(given: Pick<Met, "method" | "path" | "headers">, body: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = this.#target!;
    const headers = { ...given.headers, connection: "close" };
    return new Promise((resolve, reject) => {
      const onward = request({ ...given, hostname, port, headers }, resolve);
      onward.on("error", reject);
      onward.end(body);
    });
  }
}

function hold({ onHeld }: Held, outgoing: ServerResponse): void {
  onHeld();
  outgoing.destroy();
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
