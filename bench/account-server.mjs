// The part of the service that recoveries and lists of keys ask, with nothing behind it: each creation succeeds, keys never change.
//
//   node bench/account-server.mjs <number of keys>      prints its port, ends with its standard input
import { createServer } from "node:http";

const started = Date.UTC(2026, 0, 1);

function keyRow(number) {
  const at = (month, more = 0) => new Date(Date.UTC(2026, month, 1) + number * 1000 + more).toISOString();
  return {
    id: `ak_${String(number).padStart(8, "0")}`,
    name: `nightly-${number}`,
    status: number % 10 ? "active" : "revoked",
    type: "user_bound",
    scopes: ["push-ingest:*"],
    createdBy: `usr_${number % 100}`,
    createdAt: at(0),
    expiresAt: at(12),
    lastUsedAt: at(10),
  };
}

const bodies = new Map();

/** The first so many keys, as the service sends them. */
function keysBody(count) {
  if (!bodies.has(count))
    bodies.set(count, Buffer.from(JSON.stringify(Array.from({ length: count }, (_, n) => keyRow(n)))));
  return bodies.get(count);
}

let made = 0;

function creation(key, { service_account_id, scopes }) {
  made += 1;
  const id = `oac_us_${key ?? made}`;
  return {
    id,
    object: "oauth_client",
    status: "active",
    service_account_id,
    scopes,
    client_id: `cid_${id}`,
    client_secret: `bench-${made}`,
    created_at: new Date(started).toISOString(),
  };
}

async function textOf(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

/** Addresses begin with the number of keys of their account: /100000/v1/… */
const server = createServer(async (request, response) => {
  const send = (status, body) =>
    response
      .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      .end(body);
  const text = await textOf(request);
  const [, count, ...rest] = request.url.split("/");
  if (request.method === "GET" && rest.join("/").includes("access-keys")) return send(200, keysBody(Number(count)));
  if (request.method === "POST")
    return send(201, JSON.stringify(creation(request.headers["idempotency-key"], JSON.parse(text))));
  return send(404, JSON.stringify({ error: { code: "not_found", message: "not found" } }));
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => server.close().closeAllConnections()).resume();
