// Preloaded (`node --require`) into every process that may hold a sandbox: writes each answer of the sandbox, as it goes to
// the socket, beside this file. Plain CommonJS, because Node reads it before anything else; it needs nothing that Node has
// not loaded already. The globalSetup of recorded-answers.ts puts it into a folder of its own and checks what was written.
const { subscribe } = require("node:diagnostics_channel");
const { openSync, writeSync } = require("node:fs");
const { join } = require("node:path");

/** Faults that leave no whole or no true body: what goes out is no answer that could be checked. */
const unheard = ["drop", "cut", "body"];

let file;

function keep(record) {
  file ??= openSync(join(__dirname, `${process.pid}-${process.hrtime.bigint()}.ndjson`), "a", 0o600);
  const bytes = Buffer.from(`${JSON.stringify(record)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

function watch({ request, response, faults }) {
  const asked = { method: request.method, path: request.url.split("?")[0], faults: Object.keys(faults) };
  if (unheard.some((name) => asked.faults.includes(name))) {
    keep(asked);
    return;
  }
  const { writeHead, write, end } = response;
  const pieces = [];
  let head = {};
  const take = (piece) => {
    if (piece !== undefined) pieces.push(Buffer.from(piece));
  };
  response.writeHead = (status, headers) => {
    head = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
    return writeHead.call(response, status, headers);
  };
  response.write = (piece) => {
    take(piece);
    return write.call(response, piece);
  };
  response.end = (piece) => {
    take(piece);
    keep({ ...asked, status: response.statusCode, headers: head, text: Buffer.concat(pieces).toString() });
    return end.call(response, piece);
  };
}

const once = Symbol.for("integ.test.record-answers");
if (!globalThis[once]) {
  globalThis[once] = true;
  subscribe("integ:sandbox:answer", watch);
}
