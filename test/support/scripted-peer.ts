// A server that reads each complete request and responds with the bytes that a test chooses, valid or not.
import { createServer, type AddressInfo, type Socket } from "node:net";

export interface ScriptedPeer {
  readonly origin: string;
  readonly requests: string[];
  close(): Promise<void>;
}

/** @param answer the bytes of the response to a complete request, after which the connection is closed */
export async function startScriptedPeer(answer: (request: string) => Buffer): Promise<ScriptedPeer> {
  const requests: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (!isWhole(text)) return;
      requests.push(text);
      socket.end(answer(text));
      text = "";
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, end))?.[1] ?? 0);
  return text.length >= end + 4 + length;
}
