import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { defineConfig, type Plugin } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";
import { readyHelp } from "./ready-help.mts";
import { atomically, commander, conf, substitute, undici } from "./substitutes.mts";

const require = createRequire(import.meta.url);

/** The parser for processors without SIMD: 72 kB that hardly any machine reads, in a file of its own. */
const plainParser = "./llhttp-wasm.cjs";

const undiciWithoutParser = {
  ...undici,
  modules: { ...undici.modules, "lib/llhttp/llhttp-wasm.js": { id: plainParser, external: true } },
} as const;

function plainParserBeside(): Plugin {
  return {
    name: "plain-parser-beside",
    generateBundle() {
      const source = readFileSync(require.resolve("undici/lib/llhttp/llhttp-wasm.js"));
      this.emitFile({ type: "asset", fileName: plainParser.slice(2), source });
    },
  };
}

/**
 * Modules that are read together: a file less is half a millisecond less. What is not named here falls where it is used.
 * No chunk may need another that needs it: the build fails.
 */
const together: readonly (readonly [name: string, modules: RegExp])[] = [
  [
    "start",
    /[\\/]src[\\/](errors|output[\\/](visible-text|json-text|json-tree)|commands[\\/]options[\\/]values|profiles[\\/](json-place|names)|api[\\/]contract-headers)\.ts$|rolldown[\\/]runtime/,
  ],
  ["acting", /[\\/]src[\\/]profiles[\\/](address|environment|resolution|profile|active-profile|shell-command)\.ts$/],
  ["disk", /[\\/]src[\\/]disk[\\/]/],
  ["stored", /[\\/]src[\\/]profiles[\\/](store|profile-file|credentials)\.ts$/],
  [
    "reading",
    /[\\/]src[\\/](commands[\\/](verb|running[\\/](list-walk|read)|options[\\/]lists)|api[\\/](connect|pages|entities-and-cohorts|auth[\\/]authorization|http[\\/](attempt|caller|exchange|redaction|request-rules|retry)|json[\\/](json-body|json-scanner|page-scanner))|output[\\/](json|ndjson|field-watch|row-page))\.ts$/,
  ],
  [
    "undici",
    /[\\/]src[\\/]api[\\/]http[\\/](transport|connections|network-error|reception)\.ts$|[\\/]node_modules[\\/]undici[\\/]lib[\\/](core[\\/](?!socks5)|dispatcher[\\/](client|client-h1|dispatcher|dispatcher-base)|util|handler|llhttp)\b/,
  ],
];

/** Refuses a file of the bundle that would be read while it is being read: what it exports is not there yet. */
function noCircles(): Plugin {
  return {
    name: "no-circles",
    generateBundle(_options, bundle) {
      const path: string[] = [];
      const done = new Set<string>();
      const visit = (file: string): void => {
        if (path.includes(file)) throw new Error(`files that need each other: ${[...path, file].join(" → ")}`);
        const chunk = bundle[file];
        if (done.has(file) || chunk?.type !== "chunk") return;
        path.push(file);
        for (const needed of chunk.imports) visit(needed);
        path.pop();
        done.add(file);
      };
      for (const file of Object.keys(bundle)) visit(file);
    },
  };
}

/**
 * One bundle, split by `import()`: CommonJS, because `require("node:http")` leaves Node's own fetch unloaded where
 * `import` of it does not, and because a CommonJS entry skips the ES module loader at every start.
 */
export default defineConfig({
  input: { main: "src/main.ts" },
  platform: "node",
  external: ["@napi-rs/keyring", "fs-native-extensions", "pg"],
  plugins: [
    substitute(atomically, commander, conf, undiciWithoutParser),
    plainParserBeside(),
    noCircles(),
    bundledLicenses(),
    readyHelp(),
  ],
  output: {
    dir: "dist",
    format: "cjs",
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name]-[hash].cjs",
    cleanDir: true,
    minify: true,
    exports: "named",
    codeSplitting: {
      groups: together.map(([name, test], index) => ({ name, test, priority: together.length - index })),
    },
  },
});
