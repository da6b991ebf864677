import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { connect, type Service } from "../../../src/api/connect.ts";
import { createTransport, type TransportOptions } from "../../../src/api/http/transport.ts";
import type { Transport } from "../../../src/api/http/exchange.ts";

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Peer {
  readonly origin: string;
  readonly received: Received[];
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

const open: Peer[] = [];

export async function closePeers(): Promise<void> {
  for (const peer of open.splice(0)) await peer.close();
}

export async function startPeer(answer: (request: Received, response: ServerResponse) => void): Promise<Peer> {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const seen = { method, url, headers, body: Buffer.concat(chunks).toString("utf8") };
      received.push(seen);
      answer(seen, response);
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const peer = {
    origin: `http://127.0.0.1:${port}`,
    received,
    connections: () => connections,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  open.push(peer);
  return peer;
}

/** @param onConnection gets the bare socket; `received` stays empty */
export async function startRawPeer(onConnection: (socket: Socket) => void): Promise<Peer & { readonly port: number }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const peer = {
    origin: `http://127.0.0.1:${port}`,
    port,
    received: [],
    connections: () => connections,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  open.push(peer);
  return peer;
}

export async function deadPort(): Promise<number> {
  const peer = await startRawPeer(() => {});
  await peer.close();
  return peer.port;
}

export function transportTo(options: Partial<TransportOptions> = {}): Transport {
  return createTransport({
    locate: async (baseUrl) => baseUrl,
    timeoutMs: 5000,
    signal: new AbortController().signal,
    userAgent: "integ-test/0",
    ...options,
  });
}

export function answerJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_1", ...headers });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

export async function serviceAnswering(
  status: number,
  body: unknown,
): Promise<{ service: Service; urls: () => string[] }> {
  const peer = await startPeer((_, response) =>
    body === undefined ? void response.writeHead(status).end() : answerJson(response, status, body),
  );
  const service = connect({
    transport: transportTo(),
    baseUrl: peer.origin,
    organizationId: "3f2b8c1e-9a4d-4e6f-8b7a-0c1d2e3f4a5b",
    credential: () => Promise.reject(new Error("not asked for")),
    legacyCredential: async () => ({ kind: "access_token", token: "t" }),
    now: () => 0,
  });
  return { service, urls: () => peer.received.map(({ method, url }) => `${method} ${url}`) };
}
