// The benchmark's service in its own process: `node bench/service.mjs` prints its port and exits when stdin closes.
// Responses are built in advance and not compressed.
//
//   /lists/<rows>/<milliseconds>/v1/entities   a list of that length, with that delay before each page (§2, §4.3)
//   /account/…                                 an account in which every creation succeeds (§4.2, §4.4)
import { createServer } from "node:http";

const day = 86_400_000;
const yesterday = new Date(Date.now() - day).toISOString();

/** A page token has a fixed number of digits, so that all pages have the same size. */
const tokenDigits = 8;

/** The curl baseline knows all tokens in advance. @param page counts from 0 */
export function tokenOf(page) {
  return `bench-page-${String(page).padStart(tokenDigits, "0")}`;
}

function row(index) {
  const id = `ent_${String(index).padStart(22, "0")}`;
  const at = new Date(Date.UTC(2026, 6, 1) + index * 1000).toISOString();
  return `{"id":"${id}","object":"entity","type":"person","status":"active","display_name":"Person Number ${index}","email":"person.${index}@example.com","created_at":"${at}","updated_at":"${at}"}`;
}

const rowsOfPages = new Map();

/** All pages of a list with this many rows have the same rows. */
function rowsOfPage(count) {
  if (!rowsOfPages.has(count)) {
    const data = Array.from({ length: count }, (_, index) => row(index)).join(",");
    rowsOfPages.set(count, Buffer.from(`{"object":"list","data":[${data}]`));
  }
  return rowsOfPages.get(count);
}

function answerList({ rows, delayMs, query }, response) {
  const limit = Number(query.get("limit") ?? 25);
  const page = Number(query.get("page_token")?.slice(-tokenDigits) ?? 0);
  const left = rows - page * limit;
  const next = left > limit ? `"${tokenOf(page + 1)}"` : "null";
  const head = rowsOfPage(Math.min(limit, left));
  const tail = `,"next_page_token":${next},"has_more":${left > limit}}`;
  const send = () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": head.length + tail.length });
    response.write(head);
    response.end(tail);
  };
  if (delayMs === 0) send();
  else setTimeout(send, delayMs);
}

let created = 0;

/** The client `oac_<number>_<count>` belongs to the service account `sa_<number>`. */
function client(id, more = {}) {
  return {
    id,
    object: "oauth_client",
    status: "active",
    service_account_id: `sa_${id.split("_")[1]}`,
    scopes: ["entity:read"],
    client_id: `cid_${id.slice(4)}`,
    created_at: yesterday,
    ...more,
  };
}

function answerAccount({ method, path, body }) {
  const id = /^\/v1\/oauth_clients\/(oac_\w+)$/.exec(path)?.[1];
  if (id !== undefined) return client(id, method === "DELETE" ? { status: "revoked" } : {});
  if (method === "GET" && path.endsWith("/access-keys")) return [];
  if (method !== "POST" || path !== "/v1/oauth_clients") return undefined;
  const { service_account_id, scopes } = JSON.parse(body);
  created += 1;
  const newId = `oac_${service_account_id.slice(3)}_${created}`;
  return client(newId, { scopes, created_at: new Date().toISOString(), client_secret: `bench-secret-${created}` });
}

async function answer(request, response) {
  const [path, query = ""] = request.url.split("?");
  const [, rows, delayMs] = /^\/lists\/(\d+)\/(\d+)\/v1\/entities$/.exec(path) ?? [];
  if (rows !== undefined)
    return answerList({ rows: Number(rows), delayMs: Number(delayMs), query: new URLSearchParams(query) }, response);
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const { method } = request;
  const resource = answerAccount({ method, path: path.replace(/^\/account/, ""), body });
  const text = JSON.stringify(resource ?? { error: { code: "not_found", message: "not found" } });
  const status = resource === undefined ? 404 : method === "POST" ? 201 : 200;
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
    .end(text);
}

if (process.argv[1] === import.meta.filename) {
  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
  process.stdin.resume().on("end", () => server.close().closeAllConnections());
}
