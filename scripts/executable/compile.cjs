// Run by the Node of an executable: keeps the parts of the program compiled, with the functions that a read of the API uses.
//
//   node compile.cjs <folder of the parts, each as a function of what Node gives a module> <name of a part>…
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { Script } = require("node:vm");

const [folder, ...names] = process.argv.splice(2);
const scripts = new Map();
const parts = new Map();

function compiled(name) {
  let script = scripts.get(name);
  if (script === undefined) {
    script = new Script(readFileSync(join(folder, name), "latin1"), { filename: `./${name}` });
    scripts.set(name, script);
  }
  return script;
}

function need(name) {
  if (!name.startsWith("./")) return require(name);
  let part = parts.get(name);
  if (part === undefined) {
    part = { exports: {} };
    parts.set(name, part);
    compiled(name.slice(2)).runInThisContext()(part.exports, need, part);
  }
  return part.exports;
}

process.on("exit", () => {
  for (const name of names) writeFileSync(join(folder, `${name}.compiled`), compiled(name).createCachedData());
  process.exitCode = 0;
});
process.argv.push("entities", "list", "--json", "--retry-for", "0");
need("./integ.cjs");
