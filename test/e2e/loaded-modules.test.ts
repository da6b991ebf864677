// Help and completion load nothing that they do not need: what a process really loaded, told back to packages.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rolldown, type OutputChunk } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import config from "../../scripts/rolldown.config.mts";
import { filesBelow } from "../../scripts/source-graph.mjs";
import { ended, Home, isOtherBinary, root } from "../support/program.ts";
import { pagesOf, startListServer } from "./list-server.ts";

/** Packages that a person who asks for help or presses Tab does not wait for. */
const heavy = ["zod", "undici", "conf", "ora", "@clack/prompts", "oauth4webapi", "yaml"];

const folder = mkdtempSync(join(tmpdir(), "integ-loaded-"));
const home = new Home();
/** Packages that stand in each file of the bundle. */
const packagesIn = new Map<string, Set<string>>();
/** The files of the bundle, each with those that are loaded with it. */
const chunks = new Map<string, OutputChunk>();

beforeAll(async () => {
  const bundle = await rolldown(config);
  const output = { ...config.output, dir: join(folder, "dist") };
  const written = await bundle.write(output);
  await bundle.close();
  for (const chunk of written.output.filter((one): one is OutputChunk => one.type === "chunk")) {
    chunks.set(chunk.fileName, chunk);
    packagesIn.set(chunk.fileName, new Set(chunk.moduleIds.map(packageOf).filter((name) => name !== undefined)));
  }
  cpSync(join(root, "bin"), join(folder, "bin"), { recursive: true });
  const list =
    "require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify([Object.keys(require.cache), process.moduleLoadList]))";
  writeFileSync(join(folder, "list.cjs"), `process.on('exit', () => ${list});`);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  home.remove();
});

function packageOf(module: string): string | undefined {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(module)?.[1];
}

/** Runs a command line to its end. @returns the files of the bundle that it loaded, and Node's own parts */
async function filesLoadedBy(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ chunks: string[]; internal: string[] }> {
  const file = join(folder, "loaded.json");
  const child = spawn(
    process.execPath,
    ["--require", join(folder, "list.cjs"), join(folder, "bin", "integ.js"), ...words],
    {
      env: { ...home.env, ...env, LOADED: file },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  const { code, stderr } = await ended(child);
  if (code !== 0) throw new Error(`integ ${words.join(" ")} ended with ${code}: ${stderr}`);
  const [files, internal] = JSON.parse(readFileSync(file, "utf8")) as [string[], string[]];
  const chunks = files.filter((one) => one.startsWith(join(folder, "dist"))).map((one) => basename(one));
  expect(chunks).toContain("main.cjs");
  return { chunks, internal };
}

/** @returns the packages that a command line loads; Node's own undici counts as `undici` */
async function loadedBy(words: readonly string[]): Promise<string[]> {
  const { chunks, internal } = await filesLoadedBy(words);
  const packages = chunks.flatMap((chunk) => [...packagesIn.get(chunk)!]);
  if (internal.some((name) => name.includes("deps/undici"))) packages.push("undici");
  return [...new Set(packages)].sort();
}

function isCommand(module: string): boolean {
  const source = join(root, "src", "commands");
  return module.startsWith(source) && /export const command\b/.test(readFileSync(module, "utf8"));
}

/** Heavy packages that a file of the bundle is loaded with. */
function heavyWith(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const own = [...(packagesIn.get(file) ?? [])].filter((name) => heavy.includes(name));
  return [...own, ...(chunks.get(file)?.imports ?? []).flatMap((other) => heavyWith(other, seen))];
}

const heavyLoadedBy = async (words: readonly string[]): Promise<string[]> =>
  (await loadedBy(words)).filter((name) => heavy.includes(name));

describe.skipIf(isOtherBinary("which of the package's files a command loads"))("what is loaded", () => {
  it("would be noticed", async () => {
    expect(await heavyLoadedBy(["profiles", "list"])).toContain("zod");
    expect(await heavyLoadedBy(["entities", "list", "--profile", "sandbox"])).toContain("undici");
  });

  it.each(["--help", "--version", "help keys create", "help states"])("is one file for %s", async (line) => {
    expect((await filesLoadedBy(line.split(" "))).chunks).toEqual(["main.cjs"]);
  });

  it("is no schema and no cryptography for a page that the environment serves", async () => {
    const server = await startListServer(pagesOf([3]));
    const words = ["entities", "list", "--json"];
    const { chunks, internal } = await filesLoadedBy(words, server.env);
    await server.stop();
    const packages = chunks.flatMap((chunk) => [...packagesIn.get(chunk)!]);
    expect([...new Set(packages)].sort()).toEqual(["commander", "undici"]);
    expect(internal.filter((name) => / (crypto|http|http2|child_process)$/.test(name))).toEqual([]);
  });

  it("is nothing heavy for help of any command that is not ready", async () => {
    const files = [...chunks.values()].filter(({ moduleIds }) => moduleIds.some(isCommand));
    const commands = filesBelow(join(root, "src", "commands")).filter(isCommand);
    expect(files.flatMap(({ moduleIds }) => moduleIds.filter(isCommand)).sort()).toEqual(commands.sort());
    const found = files.map(({ fileName }) => [fileName, heavyWith(fileName)] as const);
    expect(found.filter(([, packages]) => packages.length > 0)).toEqual([]);
    // What is loaded beside the command's own file is the same for every help.
    expect(await heavyLoadedBy(["journal", "recover", "--no-color", "--help"])).toEqual([]);
  });

  it.each(["bash", "zsh", "fish", "powershell"])("is nothing heavy for the script of %s", async (shell) => {
    expect(await heavyLoadedBy(["completion", shell])).toEqual([]);
  });

  it.each([
    ["commands", ["oauth-clients", ":"]],
    ["profiles", ["profiles", "show", ":"]],
    ["entries", ["journal", "show", ":"]],
    ["keys", ["keys", "revoke", ":"]],
  ])("is no package at all for a Tab that asks for %s", async (_what, words) => {
    expect(await loadedBy(["__complete", ...words])).toEqual([]);
  });
});
