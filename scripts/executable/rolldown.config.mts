import { defineConfig, type Plugin } from "rolldown";
import { bundledLicenses } from "../bundled-licenses.mts";
import { type Cut, lean } from "../rolldown.config.mts";

/**
 * What is looked for beside the file that asks, native packages up to the root. An executable may lie in any folder, also
 * in one that others write to: it reads nothing from there, and does without.
 */
const besides: readonly Cut[] = [
  {
    file: /[\\/]src[\\/]main\.ts$/,
    from: "readyAnswer(process, import.meta.dirname)",
    to: "undefined",
  },
  {
    file: /[\\/]src[\\/]disk[\\/]kernel-lock\.ts$/,
    from: 'createRequire(import.meta.url)("fs-native-extensions")',
    to: "undefined",
  },
  {
    file: /[\\/]src[\\/]profiles[\\/]keychain\.ts$/,
    from: 'createRequire(import.meta.url).resolve("@napi-rs/keyring")',
    to: "undefined",
  },
];

/** A part that is not in the file could not be found on a machine that has nothing else. */
function whole(): Plugin {
  return {
    name: "whole",
    generateBundle(_options, bundle) {
      const parts = Object.values(bundle).filter((part) => part.type === "chunk");
      const needed = parts.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
      const outside = needed.filter((name) => !name.startsWith("node:") && name !== parts[0]?.fileName);
      if (parts.length !== 1 || outside.length > 0)
        this.error(`not one file: ${[...parts.map(({ fileName }) => fileName), ...outside].join(", ")}`);
      const where = /\b__(?:file|dir)name\b|\bimport\.meta\b/.exec(parts[0]!.code);
      if (where) this.error(`looks beside itself: …${parts[0]!.code.slice(where.index - 60, where.index + 40)}…`);
    },
  };
}

/** Everything in one file: the only place that an executable has. */
export default defineConfig({
  input: { integ: "scripts/executable/main.ts" },
  platform: "node",
  external: [/^node:/],
  plugins: [lean({ cuts: besides }), whole(), bundledLicenses()],
  output: {
    dir: "build/executable",
    format: "cjs",
    entryFileNames: "[name].cjs",
    cleanDir: true,
    minify: true,
    codeSplitting: false,
  },
});
