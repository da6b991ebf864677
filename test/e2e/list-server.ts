// A server with one list of entities. The test writes each response, so that it can send pages that no correct service sends.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Socket } from "node:net";

export interface ListRequest {
  readonly path: string;
  readonly token: string | undefined;
  readonly limit: number | undefined;
  readonly index: number;
}

export type Answer = string | ((response: ServerResponse, request: IncomingMessage) => void);

export interface ListServer {
  readonly env: Readonly<Record<string, string>>;
  readonly requests: ListRequest[];
  stop(): Promise<void>;
}

export async function startListServer(answer: (request: ListRequest) => Answer): Promise<ListServer> {
  const requests: ListRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url!, "http://localhost");
    const limit = query.get("limit");
    const one: ListRequest = {
      path: pathname,
      token: query.get("page_token") ?? undefined,
      limit: limit === null ? undefined : Number(limit),
      index: requests.length,
    };
    requests.push(one);
    const given = answer(one);
    if (typeof given !== "string") return given(response, request);
    response.writeHead(200, { "content-type": "application/json" }).end(given);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    env: { INTEG_REGION: "us", INTEG_BASE_URL: `http://127.0.0.1:${port}`, INTEG_API_KEY: "key-of-a-test" },
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** The envelope of §2.1. @param rows JSON texts */
export function envelope(rows: readonly string[], next: string | null): string {
  return `{"object":"list","data":[${rows.join(",")}],"next_page_token":${JSON.stringify(next)},"has_more":${next !== null}}`;
}

export function entity(index: number): string {
  const at = "2026-07-01T00:00:00.000Z";
  return `{"id":"ent_${index}","object":"entity","type":"person","status":"active","display_name":"Name, ${index}","email":"e${index}@example.com","created_at":"${at}","updated_at":"${at}"}`;
}

/** Pages with `sizes` rows. `token-1` leads to the second page. */
export function pagesOf(sizes: readonly number[]): (request: Pick<ListRequest, "token">) => string {
  return ({ token }) => {
    const page = token === undefined ? 0 : Number(token.slice("token-".length));
    const before = sizes.slice(0, page).reduce((sum, size) => sum + size, 0);
    const rows = Array.from({ length: sizes[page]! }, (_, row) => entity(before + row));
    return envelope(rows, page + 1 < sizes.length ? `token-${page + 1}` : null);
  };
}

/** @returns the ids of NDJSON lines @throws Error if a line is not a complete row */
export function idsOf(ndjson: string): string[] {
  if (ndjson !== "" && !ndjson.endsWith("\n")) throw new Error(`cut within a row: ${ndjson.slice(-80)}`);
  return ndjson
    .split("\n")
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { id: string }).id);
}
