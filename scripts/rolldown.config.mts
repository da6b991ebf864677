import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { defineConfig, type Plugin } from "rolldown";
import { inParts, ofParts } from "./parts.mts";
import { readyHelp } from "./ready-help.mts";
import { atomically, commander, conf, substitute, undici, undiciConnect } from "./substitutes.mts";

const require = createRequire(import.meta.url);

/** The parser for processors without SIMD: 72 kB that hardly any machine reads, in a file of its own. */
const plainParser = "./llhttp-wasm.cjs";

const undiciWithoutParser = {
  ...undici,
  modules: {
    ...undici.modules,
    "lib/llhttp/llhttp-wasm.js": { id: plainParser, external: true },
    "lib/llhttp/llhttp_simd-wasm.js": join(import.meta.dirname, "substitutes", "simd-parser.cjs"),
  },
} as const;

function parsersBeside(): Plugin {
  return {
    name: "parsers-beside",
    generateBundle() {
      const source = readFileSync(require.resolve("undici/lib/llhttp/llhttp-wasm.js"));
      this.emitFile({ type: "asset", fileName: plainParser.slice(2), source });
      const simd = require("undici/lib/llhttp/llhttp_simd-wasm.js") as Buffer;
      this.emitFile({ type: "asset", fileName: "llhttp-simd.wasm", source: simd });
    },
  };
}

/**
 * One bundle, split by `import()`: CommonJS, because `require("node:http")` leaves Node's own fetch unloaded and
 * `import` of it does not, and because a CommonJS entry skips the ES module loader at every start.
 */
export default defineConfig({
  input: { main: "src/main.ts", "summary-thread": "src/journal/file/summary-thread.ts" },
  platform: "node",
  // Of pg only its client is bundled; what it can do without (a build for Cloudflare) stays outside.
  external: ["@napi-rs/keyring", "fs-native-extensions", "pg-cloudflare"],
  plugins: [
    substitute(atomically, commander, conf, undiciWithoutParser, undiciConnect),
    parsersBeside(),
    ...ofParts(),
    readyHelp(),
  ],
  output: {
    dir: "dist",
    ...inParts,
  },
});
