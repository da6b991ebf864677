// Replaces whole modules that packages load at every start and this program never uses: each is 1 to 15 ms of 20. The
// packages' own text stays as it is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { Plugin } from "rolldown";

const require = createRequire(import.meta.url);

/** What the modules below one folder, or one of them alone, get in place of another module. */
export interface Substitutes {
  readonly folder: string;
  /** The path of that one, below the folder. */
  readonly only?: string;
  /** The version of the package that the substitutes were read against. */
  readonly version?: string;
  /** By a module's name, or its path below the folder: the file to take, or a file that stays outside the bundle. */
  readonly modules: Readonly<Record<string, string | { readonly id: string; readonly external: true }>>;
}

const ours = (name: string): string => join(import.meta.dirname, "substitutes", name);

export const commander: Substitutes = {
  folder: dirname(require.resolve("commander")),
  version: "14.0.3",
  modules: { "node:child_process": ours("no-child-process.cjs") },
};

export const undici: Substitutes = {
  folder: dirname(require.resolve("undici/package.json")),
  version: "7.30.2",
  modules: {
    "node:assert": ours("plain-assert.cjs"),
    "node:http": ours("http-defaults.cjs"),
    "lib/core/constants": ours("no-known-headers.cjs"),
    "lib/core/tree": ours("no-header-tree.cjs"),
    "lib/dispatcher/client-h2.js": ours("no-http2.cjs"),
    "lib/web/fetch/body.js": ours("no-form-data.cjs"),
  },
};

export const undiciConnect: Substitutes = {
  folder: undici.folder,
  only: "lib/core/connect.js",
  version: "7.30.2",
  modules: { "lib/core/util": ours("connect-alone.cjs"), "lib/core/errors": ours("connect-errors.cjs") },
};

export const conf: Substitutes = {
  folder: resolve(require.resolve("conf"), "../../.."),
  version: "15.1.0",
  modules: { "ajv/dist/2020.js": ours("no-schema-validator.cjs"), "ajv-formats": ours("no-schema-validator.cjs") },
};

export const atomically: Substitutes = {
  folder: resolve(createRequire(require.resolve("conf")).resolve("atomically"), "../.."),
  version: "2.1.1",
  modules: { "when-exit": ours("no-exit-hook.cjs") },
};

/** Fails the build if a package has another version than its substitutes were written for, or if one was not used. */
export function substitute(...all: readonly Substitutes[]): Plugin {
  const unused = new Set<string>();
  return {
    name: "substitute",
    buildStart() {
      for (const one of all) {
        checkVersion(one);
        for (const module of Object.keys(one.modules)) unused.add(join(one.folder, module));
      }
    },
    resolveId(request, importer) {
      if (importer === undefined) return null;
      for (const { folder, only, modules } of all) {
        if (!importer.startsWith(folder + sep)) continue;
        if (only !== undefined && importer !== join(folder, only)) continue;
        const asked = request.startsWith(".") ? relative(folder, resolve(dirname(importer), request)) : request;
        const module = asked.split(sep).join("/");
        const found = modules[module];
        if (found === undefined) continue;
        unused.delete(join(folder, module));
        return found;
      }
      return null;
    },
    buildEnd(error) {
      if (!error && unused.size > 0)
        throw new Error(`nothing asks for ${[...unused].join(", ")}: no substitute needed`);
    },
  };
}

function checkVersion({ folder, version }: Substitutes): void {
  if (version === undefined) return;
  const found = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name: string; version: string };
  if (found.version === version) return;
  throw new Error(
    `${found.name} is ${found.version}, its substitutes were written for ${version}: ` +
      "read what the replaced modules do now, then change the version in scripts/substitutes.mts",
  );
}
