import { join, resolve } from "node:path";
import { defineConfig, type Plugin } from "rolldown";
import { inParts, ofParts } from "../parts.mts";
import { atomically, commander, conf, type Substitutes, substitute, undici, undiciConnect } from "../substitutes.mts";

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

/** A part that is not in the executable could not be found on a machine that has nothing else. */
function whole(): Plugin {
  return {
    name: "whole",
    generateBundle(_options, bundle) {
      const parts = Object.values(bundle).filter((part) => part.type === "chunk");
      const needed = parts.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
      const outside = needed.filter((name) => !name.startsWith("node:") && bundle[name]?.type !== "chunk");
      if (outside.length > 0) this.error(`not in the executable: ${outside.join(", ")}`);
      for (const { code, fileName } of parts) {
        const where = /\b__(?:file|dir)name\b|\bimport\.meta\b/.exec(code);
        if (where) this.error(`${fileName} looks beside itself: …${code.slice(where.index - 60, where.index + 40)}…`);
      }
    },
  };
}

/** The parts of the program, as a package has them: what a command does not need is not read, compiled or looked for. */
export default defineConfig({
  input: { integ: "scripts/executable/main.ts" },
  platform: "node",
  plugins: [substitute(atomically, commander, conf, undici, undiciConnect, alone), whole(), ...ofParts()],
  output: {
    dir: "build/executable",
    ...inParts,
  },
});
