import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { defineConfig, type OutputBundle, type Plugin } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";
import { readyHelp } from "./ready-help.mts";

const require = createRequire(import.meta.url);

/** A place in a package's own text, and what stands there in the bundle. */
export interface Cut {
  readonly file: RegExp;
  readonly from: string;
  readonly to: string;
}

/**
 * What packages load at once and this program never uses, or not at every start. Each is 1 to 15 ms of 20. The versions
 * are pinned; where a text is not there any more, the build fails.
 */
const cuts: readonly Cut[] = [
  {
    // Only for subcommands that are programs of their own; there are none.
    file: /[\\/]commander[\\/]lib[\\/]command\.js$/,
    from: "const childProcess = require('node:child_process');",
    to: "const childProcess = { spawn: (...words) => require('node:child_process').spawn(...words) };",
  },
  {
    // Only HTTP/1.1 is offered in the TLS handshake (allowH2 is false).
    file: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client\.js$/,
    from: "const connectH2 = require('./client-h2.js')",
    to: "const connectH2 = () => { throw new Error('HTTP/2 was not offered') }",
  },
  {
    // Node's default, used where a client is given no bound of its own.
    file: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client\.js$/,
    from: "const http = require('node:http')",
    to: "const http = { maxHeaderSize: 16384 }",
  },
  {
    // Told apart among bodies that are streams; bodies here are strings and buffers.
    file: /[\\/]undici[\\/]lib[\\/]core[\\/]util\.js$/,
    from: "const { IncomingMessage } = require('node:http')",
    to: "class IncomingMessage {}",
  },
  {
    // Only for bodies that are FormData.
    file: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client-h1\.js$/,
    from: "extractBody = require('../web/fetch/body.js').extractBody",
    to: "throw new Error('no body is FormData')",
  },
  {
    file: /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client-h1\.js$/,
    from: "process.env.JEST_WORKER_ID ? require('../llhttp/llhttp-wasm.js') : undefined",
    to: "undefined",
  },
];

/** The parser for processors without SIMD: 72 kB that hardly any machine reads, in a file of its own. */
const plainParser = "./llhttp-wasm.cjs";

/**
 * Leaves out what is never used.
 * @param alone for one file that has nothing beside it: what else to cut, and the plain parser stays inside
 */
export function lean(alone?: { readonly cuts: readonly Cut[] }): Plugin {
  const all = [...cuts, ...(alone?.cuts ?? [])];
  const missed = new Set(all);
  return {
    name: "lean",
    resolveId: (source) =>
      source === "../llhttp/llhttp-wasm.js" && !alone ? { id: plainParser, external: true } : null,
    transform(code, id) {
      const here = all.filter(({ file }) => file.test(id));
      for (const cut of here) if (code.split(cut.from).length === 2) missed.delete(cut);
      return here.length === 0 ? null : here.reduce((text, { from, to }) => text.replace(from, () => to), code);
    },
    buildEnd(error) {
      if (!error && missed.size > 0)
        throw new Error(`not found once: ${[...missed].map(({ from }) => from).join("; ")}`);
    },
    generateBundle(_options, bundle) {
      if (alone) return;
      refuseCircles(bundle);
      const source = readFileSync(require.resolve("undici/lib/llhttp/llhttp-wasm.js"));
      this.emitFile({ type: "asset", fileName: plainParser.slice(2), source });
    },
  };
}

/**
 * Modules that are read together: a file less is half a millisecond less. What is not named here falls where it is used.
 * No chunk may need another that needs it: `lean` fails the build.
 */
const together: readonly (readonly [name: string, modules: RegExp])[] = [
  [
    "start",
    /[\\/]src[\\/](errors|output[\\/](visible-text|json-text|json-tree)|commands[\\/]options[\\/]duration|profiles[\\/](json-place|names)|api[\\/]contract-version)\.ts$|rolldown[\\/]runtime/,
  ],
  ["acting", /[\\/]src[\\/]profiles[\\/](address|environment|resolution|profile|active-profile|shell-command)\.ts$/],
  ["stored", /[\\/]src[\\/]profiles[\\/](store|credentials|owner-lock)\.ts$/],
  [
    "reading",
    /[\\/]src[\\/](commands[\\/](list-walk|read|unique-rows|verb|options[\\/]lists)|api[\\/]((http|auth|json)[\\/])?(retry|retry-after|retry-read|failure-of|connect|authorization|caller|problem|attempt|json-body|json-object|json-scanner|page-scanner|seen-tokens|pages|entities|cohorts|list-request|path|v1)|output[\\/](json|ndjson|field-watch|row-page))\.ts$/,
  ],
  [
    "undici",
    /[\\/]src[\\/]api[\\/]http[\\/](transport|open-connection|break-of|connection-pool|exchange|exchange-log|reception|wire-request|content-encoding)\.ts$|[\\/]node_modules[\\/]undici[\\/]lib[\\/](core[\\/](?!socks5)|dispatcher[\\/](client|client-h1|dispatcher|dispatcher-base)|util|handler|llhttp)\b/,
  ],
];

/** @throws where a file of the bundle would be read while it is being read: what it gives is not there yet */
function refuseCircles(bundle: OutputBundle): void {
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
}

/**
 * One bundle, split by `import()`: CommonJS, because `require("node:http")` leaves Node's own fetch unloaded where
 * `import` of it does not, and because a CommonJS entry skips the ES module loader at every start.
 */
export default defineConfig({
  input: { main: "src/main.ts" },
  platform: "node",
  external: [/^node:/, "@napi-rs/keyring", "fs-native-extensions", "pg"],
  plugins: [lean(), bundledLicenses(), readyHelp()],
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
