import { join, resolve } from "node:path";
import { defineConfig, type Plugin } from "rolldown";
import { bundledLicenses } from "../bundled-licenses.mts";
import { onlyAscii } from "../only-ascii.mts";
import { sbom } from "../sbom.mts";
import { atomically, commander, conf, type Substitutes, substitute, undici } from "../substitutes.mts";

const root = resolve(import.meta.dirname, "../..");

/** What would load a package from the folders around it. An executable may lie in a folder that others write to. */
const alone: Substitutes = {
  folder: join(root, "src"),
  modules: {
    "disk/kernel-lock.ts": join(import.meta.dirname, "no-kernel-lock.ts"),
    "journal/file/summary-program.ts": join(import.meta.dirname, "no-threads.ts"),
    "profiles/keychain.ts": join(import.meta.dirname, "no-keychain.ts"),
  },
};

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
  // Most modules of the one file are not needed at a start: V8 would compile them anyway.
  optimization: { pifeForModuleWrappers: false },
  plugins: [substitute(atomically, commander, conf, undici, alone), whole(), onlyAscii(), bundledLicenses(), sbom()],
  output: {
    dir: "build/executable",
    format: "cjs",
    // What is taken compiled imports nothing while it runs.
    dynamicImportInCjs: false,
    entryFileNames: "[name].cjs",
    cleanDir: true,
    minify: true,
    codeSplitting: false,
  },
});
