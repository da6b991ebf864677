// Rules for the imports and the code of src/. `npm run docs` writes the import table of src/README.md from this file.
import { existsSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { importCycles, filesBelow, type Import as Found, importsOf, targetOf } from "../scripts/source-graph.mjs";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "src");

interface FolderRules {
  /** What the folder may import at run time: whole folders, and files of src/ itself. */
  readonly folders: readonly string[];
  readonly types?: readonly string[];
  /** Single files of other folders that the folder may import at run time. */
  readonly rules?: readonly string[];
  readonly packages: readonly string[];
  /** For an entry of `folders` or `packages`, the only files and subfolders that may import it. */
  readonly only?: Readonly<Record<string, readonly string[]>>;
}

const allFolders = "disk commands operations api journal secrets profiles output completion policy sandbox".split(" ");

/** Files without I/O and without heavy dependencies, which several folders may import. */
const pureRules = [
  "disk/disk-health.ts",
  "disk/error-words.ts",
  "api/access-keys.ts",
  "api/contract.ts",
  "api/json/iso-time.ts",
  "api/json/json-text.ts",
  "api/call/attempt.ts",
  "api/call/request.ts",
  "api/call/retry.ts",
  "api/http/exchange.ts",
  "api/oauth-client-creation.ts",
  "api/orphan-key.ts",
  "api/pages.ts",
  "api/raw.ts",
  "journal/entry.ts",
  "journal/exported.ts",
  "journal/postgres/address.ts",
  "journal/record.ts",
  "journal/rotations.ts",
  "output/formats/format.ts",
  "output/relative-time.ts",
  "output/row-page.ts",
  "output/visible-text.ts",
  "secrets/destination.ts",
  "secrets/secret-format.ts",
  "profiles/agent-mode.ts",
  "profiles/names.ts",
  "profiles/profile.ts",
  "profiles/address.ts",
  "profiles/resolution.ts",
];

const table: Readonly<Record<string, FolderRules>> = {
  "main.ts": { folders: ["edge"], packages: [] },
  edge: { folders: [...allFolders, "program.ts", "context.ts", "errors.ts", "next-step.ts"], packages: ["commander"] },
  "program.ts": {
    folders: ["commands", "context.ts", "errors.ts", "next-step.ts"],
    packages: ["commander", "@commander-js/extra-typings"],
  },
  "errors.ts": { folders: ["next-step.ts"], packages: [] },
  "json.ts": { folders: [], packages: [] },
  "next-step.ts": { folders: [], packages: [] },
  "parallel.ts": { folders: [], packages: [] },
  "context.ts": { folders: [], types: allFolders, packages: [] },
  commands: {
    folders: ["context.ts", "errors.ts", "json.ts", "next-step.ts", "parallel.ts", "operations", "policy"],
    types: allFolders,
    rules: pureRules,
    packages: ["@commander-js/extra-typings", "commander", "zod"],
  },
  operations: {
    folders: ["errors.ts", "json.ts", "next-step.ts", "parallel.ts"],
    types: ["api", "journal", "secrets"],
    rules: pureRules,
    packages: [],
  },
  api: {
    folders: ["errors.ts", "json.ts", "next-step.ts"],
    packages: ["undici", "oauth4webapi", "zod"],
    only: { undici: ["api/http/connections.ts", "api/http/transport.ts"] },
  },
  disk: { folders: ["errors.ts", "json.ts", "next-step.ts"], packages: ["fs-native-extensions"] },
  journal: {
    folders: ["errors.ts", "json.ts", "next-step.ts", "disk"],
    packages: ["zod", "pg", "pg-connection-string", "pgpass"],
    only: {
      disk: ["journal/file/", "journal/postgres/"],
      pg: ["journal/postgres/"],
      "pg-connection-string": ["journal/postgres/"],
      pgpass: ["journal/postgres/"],
    },
  },
  secrets: {
    folders: ["errors.ts", "json.ts", "next-step.ts", "profiles", "disk"],
    types: ["api", "journal"],
    rules: pureRules,
    packages: ["zod", "@noble/ciphers", "@noble/curves", "@noble/hashes", "age-encryption"],
    only: {
      ...Object.fromEntries(["ciphers", "curves", "hashes"].map((n) => [`@noble/${n}`, ["secrets/sealed-box.ts"]])),
      "age-encryption": ["secrets/escrow.ts"],
    },
  },
  profiles: {
    folders: ["errors.ts", "json.ts", "next-step.ts", "disk"],
    types: ["api"],
    rules: ["api/http/redaction.ts"],
    packages: ["zod", "conf", "@napi-rs/keyring"],
  },
  output: {
    folders: ["errors.ts", "json.ts", "next-step.ts", "disk"],
    rules: ["api/json/json-text.ts"],
    packages: ["chalk", "ora", "@clack/prompts", "string-width", "yaml"],
  },
  completion: { folders: ["next-step.ts"], packages: [] },
  policy: {
    folders: ["errors.ts", "json.ts", "next-step.ts"],
    types: ["api", "journal", "secrets"],
    rules: pureRules,
    packages: ["yaml", "zod"],
  },
  sandbox: { folders: ["disk"], packages: ["zod", "zod-openapi"] },
};

const entryPoints: Readonly<Record<string, readonly string[]>> = {
  "commands/sandbox": ["sandbox"],
  "commands/completion": ["completion"],
  "commands/commands": ["completion"],
};

/** Options that these files may spell: those of other programs, and those that every program has. */
const foreignFlags: Readonly<Record<string, readonly string[]>> = {
  "completion/tree.ts": ["--help", "--version"],
  "secrets/github-store.ts": ["--hostname"],
  "secrets/kubernetes-store.ts": [
    "--dry-run",
    "--field-manager",
    "--filename",
    "--ignore-not-found",
    "--minify",
    "--namespace",
    "--output",
    "--server-side",
    "--type",
    "--validate",
  ],
  "secrets/stdout.ts": ["--norc"],
};

type Import = Pick<Found, "from" | "to" | "typeOnly">;

function folderOf(file: string): string {
  return file.includes("/") ? file.split("/")[0]! : file;
}

function violationOf({ from, to, typeOnly }: Import): string | undefined {
  const allowed = table[folderOf(from)];
  if (!allowed) return `${from} is in a folder that the table does not list`;
  if (!to.startsWith(".")) return packageViolation(allowed, { from, to, typeOnly });
  const target = targetOf({ from, to }, source)!;
  if (target === "../package.json") return folderOf(from) === "main.ts" ? undefined : `${from} reads package.json`;
  if (target.startsWith("..")) return `${from} imports ${target}, outside src/`;
  if (folderOf(target) === folderOf(from)) return commandViolation({ from, to: target, typeOnly });
  if (allowed.folders.includes(folderOf(target)))
    return typeOnly ? undefined : onlySome(allowed, { from, name: folderOf(target) });
  if (typeOnly && allowed.types?.includes(folderOf(target))) return undefined;
  if (allowed.rules?.includes(target)) return undefined;
  const entryPoint = Object.entries(entryPoints).find(([folder]) => from.startsWith(`${folder}/`));
  if (entryPoint?.[1].includes(folderOf(target))) return undefined;
  return `${from} may not import ${target}`;
}

function packageViolation(allowed: FolderRules, { from, to, typeOnly }: Import): string | undefined {
  if (to.startsWith("node:") || builtinModules.includes(to)) return undefined;
  const name = to.startsWith("@") ? to.split("/").slice(0, 2).join("/") : to.split("/")[0]!;
  const complaint = typeOnly ? undefined : onlySome(allowed, { from, name });
  if (complaint) return complaint;
  return allowed.packages.includes(name) ? undefined : `${from} may not import the package ${name}`;
}

function onlySome(
  allowed: FolderRules,
  { from, name }: { readonly from: string; readonly name: string },
): string | undefined {
  const only = allowed.only?.[name];
  if (!only || only.some((place) => (place.endsWith("/") ? from.startsWith(place) : from === place))) return undefined;
  return `${from} imports ${name}, which only ${only.join(", ")} may`;
}

function commandViolation({ from, to }: Import): string | undefined {
  if (folderOf(from) !== "commands") return undefined;
  const isCommand = (file: string): boolean => /export const command\b/.test(readFileSync(join(source, file), "utf8"));
  return isCommand(to) ? `${from} imports the command ${to}` : undefined;
}

const files = filesBelow(source);
const allImports = files.flatMap((file) => importsOf(file, source));

describe("the source tree", () => {
  it("has imports to check", () => {
    expect(allImports.length).toBeGreaterThan(50);
  });

  it("follows the import table", () => {
    expect(allImports.map(violationOf).filter((complaint) => complaint !== undefined)).toEqual([]);
  });

  it.each([
    ["overwrite", /destination\.deliver\(|secrets\.completeDelivery\(/, 2],
    ["destroy", /secrets\.destroyKept\(/, 1],
  ] as const)("calls the irreversible functions of the act %s only in that act", (act, call, count) => {
    const callers = files
      .map((file) => relative(source, file))
      .filter((file) => file.startsWith("operations/") || file.startsWith("commands/"))
      .flatMap((file) =>
        readFileSync(join(source, file), "utf8")
          .split("\n")
          .filter((line) => call.test(line) && !/^\s*(?:completeDelivery: \(|deliver: \()/.test(line))
          .map(() => file),
      );
    expect(callers).toEqual(Array.from({ length: count }, () => `operations/acts/${act}.ts`));
  });

  it("a forbidden import is detected", () => {
    const broken: Import[] = [
      { from: "sandbox/server.ts", to: "../api/contract.ts", typeOnly: false },
      { from: "commands/entities/list.ts", to: "undici", typeOnly: false },
      { from: "commands/entities/list.ts", to: "../journal/list.ts", typeOnly: false },
      { from: "operations/recovery.ts", to: "../api/http/transport.ts", typeOnly: false },
      { from: "journal/journal.ts", to: "../api/raw.ts", typeOnly: true },
      { from: "api/raw.ts", to: "undici", typeOnly: false },
    ];
    expect(broken.map(violationOf).filter((complaint) => complaint === undefined)).toEqual([]);
  });

  it("has no import cycle, types included", () => {
    expect(importCycles(allImports, source)).toEqual([]);
  });

  it("an import cycle is detected", () => {
    const circle: Found[] = [
      { from: "a.ts", to: "./b/c.ts", typeOnly: true, lazy: false },
      { from: "b/c.ts", to: "../a.ts", typeOnly: false, lazy: true },
    ];
    expect(importCycles(circle, source)).toEqual([["a.ts", "b/c.ts"]]);
  });

  it("has its import table in src/README.md", async () => {
    const readme = join(source, "README.md");
    const [start, end] = ["<!-- import table -->\n", "<!-- end of the import table -->\n"];
    const text = readFileSync(readme, "utf8");
    const [before = "", rest = ""] = text.split(start);
    const after = rest.split(end)[1];
    expect(after, `${start} and ${end} mark the table`).toBeDefined();
    await expect(`${before}${start}${importTable()}${end}${after}`).toMatchFileSnapshot(readme);
  });

  it("refers only to documents in the repository", () => {
    const references = files.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/[\w./-]*\b[\w-]+\.md\b|\bdesign:|\bquality\b|\bfindings \d/g)]
        .map(([name]) => name)
        .filter((name) => !existsSync(join(root, name)))
        .map((name) => `${relative(source, file)}: ${name}`),
    );
    expect(references).toEqual([]);
  });

  it("has no file with a general name such as index, utils or types", () => {
    const generalNames = files.filter((file) => /\/(index|utils?|helpers?|types|common|shared|misc)\.ts$/.test(file));
    expect(generalNames).toEqual([]);
  });

  it("names files in lower case, with hyphens between words", () => {
    const odd = files
      .map((file) => relative(source, file))
      .filter((name) => !/^([a-z0-9-]+\/)*[a-z0-9-]+(\.d)?\.ts$/.test(name));
    expect(odd).toEqual([]);
  });

  it("declares named parameters instead of tuple rest parameters", () => {
    const tuples = files
      .filter((file) => /\(\.\.\.\[[^\]]*\](:[^)]*)?\)\s*(:|=>|\{)/.test(stripped(file)))
      .map((file) => relative(source, file));
    expect(tuples).toEqual([]);
  });

  it("names options in commands/ by their keys, which next-step.ts spells", () => {
    const spelled = files
      .map((file) => ({ name: relative(source, file), text: readFileSync(file, "utf8") }))
      .filter(({ name }) => !/^(main|program|next-step)\.ts$|^(edge|commands|sandbox)\//.test(name))
      .flatMap(({ name, text }) =>
        [...text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "").matchAll(/(?<![\w-])--[a-z][a-z-]+/g)]
          .filter(([flag]) => !foreignFlags[name]?.includes(flag))
          .map(([flag]) => `${name}: ${flag}`),
      );
    expect(spelled).toEqual([]);
  });

  it("revokes a client or key in one file only, behind its gate, and reads the wall clock in few files", () => {
    const calling = (call: RegExp): string[] =>
      files.filter((file) => call.test(stripped(file))).map((file) => relative(source, file));
    const revoking = calling(/\b(?:oauthClients|accessKeys)\.revoke\(/);
    expect(revoking).toEqual(["operations/acts/send.ts"]);
    const gate =
      /await service\.authorize\(.*\n *await assertGrounds\(grounds, [\s\S]*?\}\);\n *await recordBefore\(.*\n *const answer = unsent \?\? \(await send</;
    expect(readFileSync(join(source, "operations/acts/revoke.ts"), "utf8")).toMatch(gate);
    // Waits and time limits use the monotonic clock. These files need the wall clock too: for the date of a response, or
    // for a lease.
    const dated = ["journal/postgres/lease.ts", "secrets/github-store.ts", "secrets/store-http.ts"];
    const outside = calling(/\bDate\.now\(/).filter((name) => !/^(edge|sandbox)\//.test(name));
    expect(outside.toSorted()).toEqual(dated);
  });

  it("accesses argv, environment, streams and the exit code only in edge/, and never exits the process", () => {
    const reaching = files
      .filter((file) => !/^(main\.ts|edge\/)/.test(relative(source, file)))
      .filter((file) => /\bprocess\.(argv|env|stdin|stdout|stderr|exitCode|exit\b)/.test(stripped(file)))
      .map((file) => relative(source, file));
    expect(reaching).toEqual([]);
  });
});

function importTable(): string {
  const lines = Object.entries(table).map(([name, { folders, types = [], rules = [], packages, only = {} }]) => {
    const limited = (what: string): string => (only[what] ? `${what} (${only[what].join(", ")})` : what);
    const cells = [
      name.endsWith(".ts") ? name : `${name}/`,
      folders.length > allFolders.length ? "everything" : list(folders.map(limited)),
      list(types === allFolders ? ["every folder"] : [...types]) + (rules.length > 0 ? "; pure rules" : ""),
      list(packages.map(limited)),
    ];
    return `| ${cells.join(" | ")} |\n`;
  });
  const head = "| Folder | may import | types of | packages |\n|---|---|---|---|\n";
  return `${head}${lines.join("")}`;
}

function list(names: readonly string[]): string {
  return names.length > 0 ? names.join(", ") : "–";
}

function stripped(file: string): string {
  // A template literal may be a program that another process runs, such as the keychain's probe.
  return readFileSync(file, "utf8")
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
    .replace(/`[^`]*`/g, "``");
}

describe("the operation of an act", () => {
  it.each([
    ["send", /\b(?:oauthClients|accessKeys)\.(?:create|rotate|revoke)\(/, "operations/acts/send.ts"],
    [
      "revoke",
      /\bsend(?:<\w+>)?\([^)]*\bchange, id, service\b|change: "revoke (?:client|key)" \}/,
      "operations/acts/revoke.ts",
    ],
  ])("%s has one caller", (_act, call, only) => {
    const callers = filesBelow(source)
      .filter((file) => !relative(source, file).startsWith("api/") && !relative(source, file).startsWith("sandbox/"))
      .filter((file) => call.test(readFileSync(file, "utf8")))
      .map((file) => relative(source, file));
    expect(callers).toEqual([only]);
  });
});
