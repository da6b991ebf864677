"use strict";
// For the parser of responses as text in base64, 80 kB of every start that sends something: its bytes lie beside the program.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

Object.defineProperty(module, "exports", { get: () => readFileSync(join(__dirname, "llhttp-simd.wasm")) });
