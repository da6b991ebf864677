// Run by the Node of an executable: keeps the program compiled, with the functions that a read of the API uses.
//
//   node compile.cjs <the program as a function> <file to write>
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");
const { Script } = require("node:vm");

const [program, compiled] = process.argv.splice(2, 2);
const script = new Script(readFileSync(program, "latin1"), { filename: "integ.cjs" });
process.on("exit", () => {
  writeFileSync(compiled, script.createCachedData());
  process.exitCode = 0;
});
process.argv.push("entities", "list", "--json", "--retry-for", "0");
script.runInThisContext()({}, require, { exports: {} });
