// The program in parts: which modules come in one file of a bundle, and what all bundles have in common.
import { existsSync } from "node:fs";
import type { OutputOptions, Plugin } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";
import { onlyAscii } from "./only-ascii.mts";
import { plainExports } from "./plain-exports.mts";
import { sbom } from "./sbom.mts";

interface Group {
  readonly name: string;
  /** Files below src/ without their ending, or folders with a slash. */
  readonly files: readonly string[];
  readonly packages?: string;
}

/**
 * Modules that are read together: a file less is half a millisecond less. What is not named here falls where it is used.
 * No chunk may need another that needs it, and no name may be of a file that does not exist: the build fails.
 */
const together: readonly Group[] = [
  {
    name: "start",
    files: [
      "errors",
      "next-step",
      "edge/folders",
      // Standard output needs these two; the rest of disk/ brings cryptography with it.
      "disk/error-words",
      "disk/write",
      "output/visible-text",
      "output/json-text",
      "output/fields",
      "commands/options/global",
      "profiles/json-place",
      "profiles/names",
      "api/http/request-rules",
      // Who acts: completion opens the journal with it, and without the rest of the edge.
      "journal/actor",
      // What a Tab sees of a journal needs the states of entries, and nothing that checks a record.
      "journal/entry",
    ],
    packages: "rolldown/runtime\\.js",
  },
  { name: "names", files: ["commands/options/known-names", "journal/file/glance"] },
  // Tab alone can do without the tree of commands: what it needs of it was made ready.
  { name: "run", files: ["edge/run", "program"] },
  {
    name: "acting",
    files: ["address", "resolution", "profile", "active-profile"].map((name) => `profiles/${name}`),
  },
  { name: "disk", files: ["disk/"] },
  // A change reads the service's response with it, and no file of profiles.
  {
    name: "zod",
    files: [],
    packages: "node_modules/zod/v4/(mini|core/(api|checks|core|doc|errors|parse|regexes|schemas|util|versions))\\b",
  },
  { name: "stored", files: ["profiles/store", "profiles/profile-file", "profiles/credentials"] },
  {
    name: "reading",
    files: [
      "commands/verb",
      "commands/running/list-walk",
      "commands/running/read",
      "commands/running/optimization",
      "commands/options/lists",
      "api/connect",
      "api/pages",
      "api/entities-and-cohorts",
      "api/auth/authorization",
      ...["attempt", "caller", "exchange", "redaction", "retry"].map((name) => `api/http/${name}`),
      ...["json-body", "json-scanner", "page-scanner", "row-scanner", "row-scanner-code"].map(
        (name) => `api/json/${name}`,
      ),
      "output/formats/json",
      "output/row-page",
    ],
  },
  // What a list of entries needs too comes apart from what a change alone needs.
  {
    name: "entries",
    files: [
      ...["entry-destination", "record", "read-entry", "lookup"].map((name) => `journal/${name}`),
      ...["scan", "index/rows"].map((name) => `journal/file/${name}`),
    ],
  },
  { name: "changed", files: ["changes/workbench", "commands/running/change", "secrets/destination"] },
  {
    name: "changing",
    files: [
      ...["sending", "delivery-recovery", "secret-delivery", "revocation"].map((name) => `changes/${name}`),
      "api/oauth-client-creation",
      "commands/options/secrets",
      "secrets/secret-format",
    ],
  },
  {
    name: "delivering",
    files: ["registry", "delivered-secret", "file"].map((name) => `secrets/${name}`),
  },
  // A page of a list needs a connection, and nothing more of undici.
  {
    name: "connecting",
    files: ["transport", "connections", "usual-connection", "usual-response"].map((name) => `api/http/${name}`),
    packages: "node_modules/undici/lib/core/connect\\b|scripts/substitutes/(plain-assert|connect-)",
  },
  {
    name: "undici",
    files: [],
    packages:
      "node_modules/undici/lib/(core/(?!socks5|connect)|dispatcher/(client|client-h1|dispatcher|dispatcher-base)|util/|handler|llhttp)\\b",
  },
];

function modulesOf({ files, packages }: Group): RegExp {
  const ours = files.map((name) => (name.endsWith("/") ? `/src/${name}` : `/src/${name}\\.ts$`));
  return new RegExp([...ours, ...(packages ? [packages] : [])].join("|").replaceAll("/", "[\\\\/]"));
}

/** Refuses a group that names a file which was moved: it would cost time at every start, and no one would notice. */
function groupsExist(): Plugin {
  return {
    name: "groups-exist",
    buildStart() {
      const names = together.flatMap(({ files }) => files);
      const missing = names.filter((name) => !existsSync(`src/${name.endsWith("/") ? name : `${name}.ts`}`));
      if (missing.length > 0) throw new Error(`scripts/parts.mts groups what is not in src/: ${missing.join(", ")}`);
    },
  };
}

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

/** What is done to the parts and what comes beside them, wherever they are put. */
export const ofParts = (): Plugin[] => [
  plainExports(),
  onlyAscii(),
  groupsExist(),
  noCircles(),
  bundledLicenses(),
  sbom(),
];

export const inParts = {
  format: "cjs",
  // Neither Node 20 nor an executable can import from a part that it takes compiled.
  dynamicImportInCjs: false,
  entryFileNames: "[name].cjs",
  chunkFileNames: "[name]-[hash].cjs",
  cleanDir: true,
  minify: true,
  exports: "named",
  codeSplitting: {
    groups: together.map((group, index) => ({
      name: group.name,
      test: modulesOf(group),
      priority: together.length - index,
    })),
  },
} as const satisfies OutputOptions;
