// What the executable runs first: its version, which needs nothing else, or the program, taken as it was compiled when it was built.
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
  // If this V8 does not take what was compiled, it compiles the text.
  const program = new Script(asset("program").latin1Slice(), { filename: "integ.cjs", cachedData: asset("compiled") });
  program.runInThisContext()({}, require, { exports: {} });
}
