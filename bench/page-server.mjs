// The server that every contender of the benchmark reads from: pages built beforehand, fixed rows, no compression.
// Started by run.mjs as a process of its own; prints its port, answers until it is asked to stop.
// §2.1 (envelope), §2.2 (rows), §4.3.
//
// Addresses: /<rows>/<milliseconds>/<kind of row>/v1/entities, so that one server has lists of every length and latency.
import { createServer } from "node:http";

/** As long as page numbers can be, so that every page of a list is equally long. */
const tokenDigits = 8;

/** The token of the page after `page` others: opaque to every reader, computed beforehand for curl. */
export function tokenOf(page) {
  return `bench-page-${String(page).padStart(tokenDigits, "0")}`;
}

const notAscii = ["Zoë Ångström", "José Muñoz", "Łukasz Żółć", "山田 太郎", "Дмитрий Орлов", "Ανδρέας Παππάς"];

/** What a row has of its own: as most rows are, half of the names beyond ASCII, or ten times as long. */
const kinds = {
  usual: (index) => ({ name: `Person Number ${index}`, more: "" }),
  names: (index) => ({
    name: index % 2 === 0 ? `Person ${index}` : `${notAscii[(index % 12) >> 1]} ${index}`,
    more: "",
  }),
  long: (index) => ({ name: `Person Number ${index}`, more: `,"attributes":{${attributes(index)}}` }),
};

/** Twelve members of 150 bytes. */
function attributes(index) {
  const text = `The member number ${index} of the organization, as a person has described it in a few words. `.padEnd(
    124,
    ".",
  );
  return Array.from({ length: 12 }, (_, number) => `"attribute_${number + 10}":"${text}"`).join(",");
}

/** One row, as long as a real one. */
function row(index, kind) {
  const id = `ent_${String(index).padStart(22, "0")}`;
  const at = new Date(Date.UTC(2026, 6, 1) + index * 1000).toISOString();
  const { name, more } = kinds[kind](index);
  return `{"id":"${id}","object":"entity","type":"person","status":"active","display_name":"${name}","email":"person.${index}@example.com","created_at":"${at}","updated_at":"${at}"${more}}`;
}

/** Heads of pages by kind and number of rows: everything but the rest of the envelope. */
const heads = new Map();

function headOf(rows, kind) {
  const key = `${kind} ${rows}`;
  let head = heads.get(key);
  if (head === undefined) {
    const data = Array.from({ length: rows }, (_, index) => row(index, kind)).join(",");
    head = Buffer.from(`{"object":"list","data":[${data}]`);
    heads.set(key, head);
  }
  return head;
}

/** Pages by address, whole. */
const pages = new Map();

function pageOf(list, limit, page) {
  const key = `${list.kind} ${list.rows} ${limit} ${page}`;
  let bytes = pages.get(key);
  if (bytes === undefined) {
    const left = list.rows - page * limit;
    const more = left > limit;
    const token = more ? `"${tokenOf(page + 1)}"` : "null";
    bytes = [headOf(Math.min(limit, left), list.kind), Buffer.from(`,"next_page_token":${token},"has_more":${more}}`)];
    pages.set(key, bytes);
  }
  return bytes;
}

function answer(request, response) {
  const [path, queryText = ""] = request.url.split("?");
  const [, rows, delayMs, kind] = /^\/(\d+)\/(\d+)\/(\w+)\/v1\/entities$/.exec(path) ?? [];
  if (rows === undefined) return other(path, response);
  const query = new URLSearchParams(queryText);
  const token = query.get("page_token");
  const page = token === null ? 0 : Number(token.slice(-tokenDigits));
  const [head, rest] = pageOf({ rows: Number(rows), kind }, Number(query.get("limit") ?? 25), page);
  const send = () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": head.length + rest.length });
    response.write(head);
    response.end(rest);
  };
  if (delayMs === "0") send();
  else setTimeout(send, Number(delayMs));
}

/** What the benchmark itself asks: the processor time used so far, in microseconds. */
function other(path, response) {
  if (path !== "/processor-time") return response.writeHead(404).end();
  const { user, system } = process.cpuUsage();
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ microseconds: user + system }));
}

if (process.argv[2] === "serve") {
  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
  // The benchmark has ended.
  process.stdin.resume().on("end", () => {
    server.close();
    server.closeAllConnections();
  });
}
