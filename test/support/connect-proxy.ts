import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Server as TcpServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Certificate } from "./certificates.ts";

/**
 * `tunnel` opens the tunnel, a number is the status of the response, `close` ends the connection without a response, `hang`
 * sends no response, and `cut` ends the tunnel at the first byte of a response.
 */
type Behavior = "tunnel" | "close" | "hang" | "cut" | number;

export interface ConnectProxy {
  readonly port: number;
  readonly asked: {
    readonly target: string;
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  }[];
  /** Method and URL of each request that was not CONNECT. */
  readonly plain: string[];
  behavior: Behavior;
  close(): Promise<void>;
}

/** @param certificate the proxy's certificate, if clients connect to the proxy over TLS */
export async function startConnectProxy(certificate?: Certificate): Promise<ConnectProxy> {
  const server: Server = certificate ? createTlsServer(certificate) : createServer();
  const asked: ConnectProxy["asked"] = [];
  const plain: string[] = [];
  const open = trackOpen(server);
  const proxy = { asked, plain, behavior: "tunnel" as Behavior };
  server.on("request", (request, response) => {
    plain.push(`${request.method} ${request.url}`);
    response.writeHead(400).end();
  });
  server.on("connect", (request, near: Duplex) => {
    near.on("error", () => {});
    asked.push({ target: request.url!, headers: request.headers });
    const { behavior } = proxy;
    if (behavior === "hang") return;
    if (behavior === "close") return void near.destroy();
    if (typeof behavior === "number") {
      const more = behavior === 407 ? 'Proxy-Authenticate: Basic realm="proxy"\r\n' : "";
      return void near.end(`HTTP/1.1 ${behavior} No\r\n${more}Content-Length: 0\r\nConnection: close\r\n\r\n`);
    }
    open.add(tunnel(request.url!, near, behavior === "cut"));
  });
  const port = await listen(server);
  return Object.assign(proxy, { port, close: () => end(server, open) });
}

/** @param isCut true to close both sides when the first response starts */
function tunnel(target: string, near: Duplex, isCut: boolean): Socket {
  const [host = "", port = ""] = target.split(/:(?=\d+$)/);
  const far = connect(Number(port), host, () => {
    near.write("HTTP/1.1 200 Connection established\r\n\r\n");
    near.pipe(far);
    if (!isCut) far.pipe(near);
  });
  if (isCut) cutAtFirstResponse(near, far);
  far.on("error", () => near.destroy()).on("close", () => near.destroy());
  near.on("close", () => far.destroy());
  return far;
}

function cutAtFirstResponse(near: Duplex, far: Socket): void {
  let isRequestSent = false;
  // TLS record type 23 is application data. In TLS 1.2, which the tests' server uses, the first such record is the request.
  near.on("data", (chunk: Buffer) => (isRequestSent ||= chunk[0] === 23));
  far.on("data", (chunk: Buffer) => {
    if (isRequestSent) far.destroy();
    else near.write(chunk);
  });
}

function trackOpen(server: TcpServer): Set<Socket> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
  });
  return open;
}

async function listen(server: TcpServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function end(server: TcpServer, open: ReadonlySet<Socket>): Promise<void> {
  for (const socket of open) socket.destroy();
  return new Promise((resolve) => server.close(() => resolve()));
}
