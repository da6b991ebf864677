// A secret store's server for tests, which records every request. A planned fault loses a request before or after its effect,
// responds without the effect, or runs a function before the effect.
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface StoreRequest {
  readonly method: string;
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  readonly body: unknown;
}

export interface StoreResponse {
  readonly status: number;
  readonly body?: unknown;
  /** The body of a response that is not JSON. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `lost before` ends the connection before the request has its effect, and `lost after` afterwards, without a response. */
type Fault = "lost before" | "lost after" | StoreResponse | (() => void);

interface Planned {
  readonly at: RegExp;
  readonly fault: Fault;
  left: number;
}

export interface StoreServer {
  readonly origin: string;
  /** `METHOD /path` of each request. */
  readonly log: string[];
  readonly requests: StoreRequest[];
  readonly hits: number;
  closesEach: boolean;
  /** @param at matches `METHOD /path` */
  plan(at: RegExp, fault: Fault, times?: number): void;
  calm(): void;
  close(): Promise<void>;
}

export async function startStoreServer(answer: (request: StoreRequest) => StoreResponse): Promise<StoreServer> {
  const log: string[] = [];
  const requests: StoreRequest[] = [];
  const planned: Planned[] = [];
  let hits = 0;
  const server: Server = createServer((message, response) => {
    const chunks: Buffer[] = [];
    message.on("error", () => {});
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => {
      const request = requestOf(message, Buffer.concat(chunks).toString("utf8"));
      requests.push(request);
      const line = `${request.method} ${message.url}`;
      log.push(line);
      const plan = planned.find(({ at, left }) => left > 0 && at.test(line));
      if (plan) {
        plan.left -= 1;
        hits += 1;
      }
      const fault = plan?.fault;
      if (fault === "lost before") return void message.socket.destroy();
      if (typeof fault === "function") fault();
      const own = typeof fault === "object" ? fault : answer(request);
      if (fault === "lost after") return void message.socket.destroy();
      const body = own.text ?? (own.body === undefined ? "" : JSON.stringify(own.body));
      response.writeHead(own.status, {
        ...(body && { "content-type": "application/json" }),
        ...(store.closesEach && { connection: "close" }),
        "content-length": Buffer.byteLength(body),
        ...own.headers,
      });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const store: StoreServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    requests,
    closesEach: false,
    get hits() {
      return hits;
    },
    plan: (at, fault, times = 1) => void planned.unshift({ at, fault, left: times }),
    calm() {
      planned.length = 0;
      hits = 0;
      log.length = 0;
      requests.length = 0;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return store;
}

function requestOf(message: IncomingMessage, text: string): StoreRequest {
  const { method = "", url = "", headers } = message;
  const [path = "", query = ""] = url.split("?");
  return {
    method,
    segments: path.slice(1).split("/").map(decodeURIComponent),
    query: new URLSearchParams(query),
    headers,
    text,
    body: text === "" ? undefined : JSON.parse(text),
  };
}
