// What the executable runs first: its version, which needs nothing else, or the program, each part taken as it was compiled when
// the executable was built.
"use strict";
const { writeSync } = require("node:fs");
const { getRawAsset } = require("node:sea");

const asset = (name) => Buffer.from(getRawAsset(name));

function answered() {
  const [word, ...more] = process.argv.slice(2);
  if (more.length > 0 || (word !== "--version" && word !== "-V")) return false;
  try {
    writeSync(1, asset("version"));
    return true;
  } catch {
    // The program knows what to do about an output that takes nothing.
    return false;
  }
}

if (!answered()) {
  const { Script } = require("node:vm");
  const parts = new Map();
  /** As `require` of a part, or of a part of Node: there is nothing else. */
  const need = (name) => {
    if (!name.startsWith("./")) return require(name);
    let part = parts.get(name);
    if (part === undefined) {
      part = { exports: {} };
      parts.set(name, part);
      // If this V8 does not take what was compiled, it compiles the text.
      const script = new Script(asset(name).latin1Slice(), { filename: name, cachedData: asset(`${name}.compiled`) });
      script.runInThisContext()(part.exports, need, part);
    }
    return part.exports;
  };
  need("./integ.cjs");
}
