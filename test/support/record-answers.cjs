// This module is loaded into every process that may run a sandbox, and writes each response next to this file. It requires
// only modules of Node, because recorded-answers.ts copies it into a separate folder.
const { subscribe } = require("node:diagnostics_channel");
const { openSync, writeSync } = require("node:fs");
const { join } = require("node:path");

/** Faults that make the body incomplete or wrong, so that it cannot be checked. */
const uncheckable = ["drop", "cut", "body"];

let file;

function append(record) {
  file ??= openSync(join(__dirname, `${process.pid}-${process.hrtime.bigint()}.ndjson`), "a", 0o600);
  const bytes = Buffer.from(`${JSON.stringify(record)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

function watch({ request, response, faults }) {
  const exchange = { method: request.method, path: request.url.split("?")[0], faults: Object.keys(faults) };
  if (uncheckable.some((name) => exchange.faults.includes(name))) {
    append(exchange);
    return;
  }
  const { writeHead, write, end } = response;
  const pieces = [];
  let head = {};
  const collect = (piece) => {
    if (piece !== undefined) pieces.push(Buffer.from(piece));
  };
  response.writeHead = (status, headers) => {
    head = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
    return writeHead.call(response, status, headers);
  };
  response.write = (piece) => {
    collect(piece);
    return write.call(response, piece);
  };
  response.end = (piece) => {
    collect(piece);
    append({ ...exchange, status: response.statusCode, headers: head, text: Buffer.concat(pieces).toString() });
    return end.call(response, piece);
  };
}

const once = Symbol.for("integ.test.record-answers");
if (!globalThis[once]) {
  globalThis[once] = true;
  subscribe("integ:sandbox:answer", watch);
}
