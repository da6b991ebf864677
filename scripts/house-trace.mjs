// Preloaded by house.mjs into a Node that runs the program from its sources: which files of src/ are loaded, and which
// frames of src/ are above each POST and each sync of a file. Async frames count: V8 prints what awaits the call.
import { writeFileSync } from "node:fs";
import nodeModule, { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const root = process.env.HOUSE_ROOT;
const source = `${pathToFileURL(join(root, "src")).href}/`;
const require = createRequire(join(root, "package.json"));
const found = { loaded: [], posts: [], syncs: [] };

globalThis.loadedFiles = found.loaded;
nodeModule.register("./house-loader.mjs", import.meta.url, { data: { source } });

Error.stackTraceLimit = 200;

/** What asked for the turn of the event loop that runs now. */
let asked = [];

/** The frames of src/ that lead here, the innermost first: of this turn, and of who asked for it. */
function frames() {
  return [...framesOfTurn(), ...asked];
}

function framesOfTurn() {
  const lines = new Error("here").stack.split("\n").filter((line) => line.includes(join(root, "src")));
  return lines.map((line) =>
    line
      .trim()
      .slice("at ".length)
      .replaceAll(`${join(root, "src")}/`, ""),
  );
}

const { setImmediate } = globalThis;
globalThis.setImmediate = (work, ...more) => {
  const from = frames();
  return setImmediate(() => {
    asked = from;
    try {
      work(...more);
    } finally {
      asked = [];
    }
  });
};

const fs = require("node:fs");
for (const name of ["fsyncSync", "fdatasyncSync"]) {
  const sync = fs[name];
  fs[name] = (fd) => {
    found.syncs.push(frames());
    return sync(fd);
  };
}
nodeModule.syncBuiltinESMExports();

// Every change loads it: it is the connection of one.
const { UsualConnection } = await import(`${source}api/http/usual-connection.ts`);
const { dispatch } = UsualConnection.prototype;
UsualConnection.prototype.dispatch = function counted(request, handler) {
  if (request.method === "POST") found.posts.push(frames());
  return dispatch.call(this, request, handler);
};

process.on("exit", () => writeFileSync(process.env.HOUSE_RESULT, JSON.stringify(found)));
const { main } = await import(`${source}main.ts`);
process.exitCode = await main(process);
