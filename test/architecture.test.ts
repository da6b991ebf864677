// The import table of src/README.md, executed: which room may import which, and which packages stand where.
import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "src");

interface Room {
  /** Rooms and files that it may import at run time. */
  readonly rooms: readonly string[];
  /** Rooms of which it may import types, and the pure rules named in `rules`. */
  readonly types?: readonly string[];
  readonly rules?: readonly string[];
  readonly packages: readonly string[];
  /** Packages that only some files of the room may import. */
  readonly only?: Readonly<Record<string, readonly string[]>>;
}

const every = [
  "disk",
  "commands",
  "changes",
  "api",
  "journal",
  "secrets",
  "profiles",
  "output",
  "completion",
  "sandbox",
];

/** Pure rules of other rooms that anybody may use: no I/O, nothing heavy. */
const pureRules = [
  "api/http/attempt.ts",
  "api/contract-comparison.ts",
  "api/contract-version.ts",
  "api/http/failure-of.ts",
  "api/pages.ts",
  "api/creation-decision.ts",
  "api/creation-request.ts",
  "api/access-keys.ts",
  "api/raw.ts",
  "api/http/retry-after.ts",
  "api/http/retry-read.ts",
  "api/http/retry.ts",
  "journal/entry.ts",
  "output/row-page.ts",
  "output/visible-text.ts",
  "output/json-text.ts",
  "secrets/command-mark.ts",
  "secrets/secret-format.ts",
  "profiles/profile.ts",
  "profiles/address.ts",
  "profiles/resolution.ts",
];

const table: Readonly<Record<string, Room>> = {
  "main.ts": { rooms: ["edge"], packages: [] },
  edge: { rooms: [...every, "program.ts", "context.ts", "errors.ts"], packages: ["commander"] },
  "program.ts": {
    rooms: ["commands", "context.ts", "errors.ts"],
    packages: ["commander", "@commander-js/extra-typings"],
  },
  "errors.ts": { rooms: [], packages: [] },
  "context.ts": { rooms: [], types: every, packages: [] },
  commands: {
    rooms: ["context.ts", "errors.ts", "changes"],
    types: every,
    rules: pureRules,
    packages: ["@commander-js/extra-typings", "commander", "zod"],
  },
  changes: { rooms: ["errors.ts"], types: ["api", "journal", "secrets"], rules: pureRules, packages: [] },
  api: {
    rooms: ["errors.ts"],
    packages: ["undici", "oauth4webapi", "zod"],
    only: { undici: ["api/http/open-connection.ts", "api/http/connection-pool.ts", "api/http/undici-modules.d.ts"] },
  },
  disk: { rooms: ["errors.ts"], packages: ["fs-native-extensions"] },
  journal: { rooms: ["errors.ts", "disk"], packages: ["zod"] },
  secrets: { rooms: ["errors.ts", "profiles", "disk"], packages: ["zod"] },
  profiles: { rooms: ["errors.ts", "disk"], packages: ["zod", "conf", "@napi-rs/keyring"] },
  output: { rooms: ["errors.ts", "disk"], packages: ["chalk", "ora", "@clack/prompts", "string-width"] },
  completion: { rooms: [], packages: [] },
  sandbox: { rooms: ["disk"], packages: ["zod", "zod-openapi"] },
};

/** Where a room may be entered from beyond the table: the sandbox and completion by their own commands. */
const doors: Readonly<Record<string, readonly string[]>> = {
  "commands/sandbox": ["sandbox"],
  "commands/completion": ["completion"],
  "commands/commands": ["completion"],
};

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

/** Static and dynamic imports and re-exports of a file, comments left out. */
function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const from = relative(source, file);
  const found: Import[] = [];
  const add = (to: string, typeOnly: boolean): void => void found.push({ from, to, typeOnly });
  for (const match of text.matchAll(/\b(?:import|export)\s+(type\s+)?([^;"']*?)\s*from\s*["']([^"']+)["']/g)) {
    const names = match[2]!;
    const onlyTypes =
      match[1] !== undefined || /^\{(\s*type\s+[\w$]+(\s+as\s+[\w$]+)?\s*,?)+\}$/.test(names.replaceAll("\n", " "));
    add(match[3]!, onlyTypes);
  }
  for (const match of text.matchAll(/(typeof\s+)?\bimport\(\s*["']([^"']+)["']\s*\)/g))
    add(match[2]!, match[1] !== undefined);
  for (const match of text.matchAll(/\bimport\s+["']([^"']+)["']/g)) add(match[1]!, false);
  for (const match of text.matchAll(/\b(?:require|createRequire\([^)]*\))\(\s*["']([^"']+)["']\s*\)/g))
    add(match[1]!, false);
  return found;
}

function roomOf(file: string): string {
  return file.includes("/") ? file.split("/")[0]! : file;
}

/** @returns what is wrong with an import, or nothing */
function complaintAbout({ from, to, typeOnly }: Import): string | undefined {
  const room = table[roomOf(from)];
  if (!room) return `${from} stands in a room that the table does not know`;
  if (!to.startsWith(".")) return packageComplaint(room, { from, to, typeOnly });
  const target = relative(source, resolve(source, dirname(from), to));
  if (target === "../package.json") return roomOf(from) === "main.ts" ? undefined : `${from} reads package.json`;
  if (target.startsWith("..")) return `${from} imports ${target}, outside src/`;
  if (roomOf(target) === roomOf(from)) return sameRoom({ from, to: target, typeOnly });
  if (room.rooms.includes(roomOf(target))) return undefined;
  if (typeOnly && room.types?.includes(roomOf(target))) return undefined;
  if (room.rules?.includes(target)) return undefined;
  const door = Object.entries(doors).find(([folder]) => from.startsWith(`${folder}/`));
  if (door?.[1].includes(roomOf(target))) return undefined;
  return `${from} may not import ${target}`;
}

function packageComplaint(room: Room, { from, to, typeOnly }: Import): string | undefined {
  if (to.startsWith("node:") || builtinModules.includes(to)) return undefined;
  const name = to.startsWith("@") ? to.split("/").slice(0, 2).join("/") : to.split("/")[0]!;
  const only = room.only?.[name];
  if (only && !typeOnly && !only.includes(from)) return `${from} imports ${name}, which only ${only.join(", ")} may`;
  return room.packages.includes(name) ? undefined : `${from} may not import the package ${name}`;
}

/** A command never imports another command: what two share stands in the noun's own files or beside the nouns. */
function sameRoom({ from, to }: Import): string | undefined {
  if (roomOf(from) !== "commands") return undefined;
  const isCommand = (file: string): boolean => /export const command\b/.test(readFileSync(join(source, file), "utf8"));
  return isCommand(to) ? `${from} imports the command ${to}` : undefined;
}

const allImports = filesBelow(source).flatMap(importsOf);

describe("the house", () => {
  it("has imports to check", () => {
    expect(allImports.length).toBeGreaterThan(50);
  });

  it("keeps every wall of the import table", () => {
    expect(allImports.map(complaintAbout).filter((complaint) => complaint !== undefined)).toEqual([]);
  });

  it("would notice a wall that is broken", () => {
    const broken: Import[] = [
      { from: "sandbox/server.ts", to: "../api/contract.ts", typeOnly: false },
      { from: "commands/entities/list.ts", to: "undici", typeOnly: false },
      { from: "commands/entities/list.ts", to: "../journal/list.ts", typeOnly: false },
      { from: "changes/recovery.ts", to: "../api/http/transport.ts", typeOnly: false },
      { from: "journal/journal.ts", to: "../api/v1.ts", typeOnly: true },
      { from: "api/v1.ts", to: "undici", typeOnly: false },
    ];
    expect(broken.map(complaintAbout).filter((complaint) => complaint === undefined)).toEqual([]);
  });

  it("has no file that a reader has to scroll through: 400 lines at the most", () => {
    const long = filesBelow(source)
      .map((file) => ({ file: relative(source, file), lines: readFileSync(file, "utf8").split("\n").length - 1 }))
      .filter(({ lines }) => lines > 400);
    expect(long).toEqual([]);
  });

  it("has no room without a name of its own", () => {
    const nameless = filesBelow(source).filter((file) =>
      /\/(index|utils?|helpers?|types|common|shared|misc)\.ts$/.test(file),
    );
    expect(nameless).toEqual([]);
  });

  it("leaves argv, environment, streams and the exit code to the edge, and never exits the process", () => {
    const reaching = filesBelow(source)
      .filter((file) => !/^(main\.ts|edge\/)/.test(relative(source, file)))
      .filter((file) => /\bprocess\.(argv|env|stdin|stdout|stderr|exitCode|exit\b)/.test(stripped(file)))
      .map((file) => relative(source, file));
    expect(reaching).toEqual([]);
  });
});

function stripped(file: string): string {
  // Comments, and the text of another program (the keychain's probe runs in a process of its own).
  return readFileSync(file, "utf8")
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
    .replace(/`[^`]*`/g, "``");
}
