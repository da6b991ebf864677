import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { Home, isOtherBinary, root } from "../support/program.ts";

const at = new Home();
const isSkipped = isOtherBinary("what npm packs and installs");

afterAll(() => at.remove());

const npmEnv = {
  ...process.env,
  npm_config_cache: at.path("cache"),
  npm_config_update_notifier: "false",
  npm_config_loglevel: "error",
};

function npm(...words: string[]): string {
  return execFileSync("npm", [...words, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    encoding: "utf8",
    env: npmEnv,
  });
}

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function pack(): Packed {
  const words = [join(root, "scripts", "pack.mjs"), "--out", at.folder];
  return (JSON.parse(execFileSync(process.execPath, words, { encoding: "utf8", env: npmEnv })) as Packed[])[0]!;
}

let packed: Packed | undefined;

it.skipIf(isSkipped)("packs only the files that a user needs", () => {
  packed = pack();
  const paths = packed.files.map(({ path }) => path);
  for (const path of ["bin/integ.js", "dist/main.cjs", "dist/THIRD-PARTY-LICENSES.txt", "completions/_integ"])
    expect(paths).toContain(path);
  expect(paths).toEqual(expect.arrayContaining(["LICENSE", "README.md"]));
  expect(paths.filter((path) => !/^(bin|dist|completions|docs)\/|^[\w-]+(\.md|\.json)?$/.test(path))).toEqual([]);
  const kilobytes = (bytes: number): string => `${Math.round(bytes / 1000)} kB`;
  console.log(`package: ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} installed`);
});

const versions = process.env.INTEG_TEST_FULL ? ["running", "20", "22", "24", "26"] : ["running"];
if (!process.env.INTEG_TEST_FULL && !isSkipped)
  console.warn("skipped: installing the package with Node 20, 22, 24 and 26: INTEG_TEST_FULL=1 fetches and tries them");

/** @returns the path of a Node of the release line, or undefined if it cannot be downloaded */
function nodeOf(line: string): string | undefined {
  if (line === "running") return process.execPath;
  const folder = at.path(`node-${line}`);
  mkdirSync(folder);
  try {
    const name = `node-linux-${process.arch}@${line}`;
    const file = npm("pack", name, "--silent", "--pack-destination", folder).trim().split("\n").at(-1)!;
    execFileSync("tar", ["-xzf", join(folder, file), "-C", folder, "package/bin/node"]);
  } catch {
    return undefined;
  }
  return join(folder, "package", "bin", "node");
}

it.skipIf(isSkipped).each(versions)("installs offline without any other package, and runs: Node %s", (line) => {
  packed ??= pack();
  const node = nodeOf(line);
  if (!node) return console.warn(`skipped: installing with Node ${line}: it cannot be fetched here`);
  const prefix = at.path(`global-${line}`);
  mkdirSync(prefix);
  const cli = realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim());
  const env = { ...at.env, PATH: `${dirname(node)}:${at.env.PATH}`, npm_config_cache: at.path("cache") };
  const words = ["install", "--global", "--offline", "--omit=optional", "--prefix", prefix, at.path(packed.filename)];
  execFileSync(node, [cli, ...words, "--no-audit", "--no-fund", "--loglevel=error"], { cwd: at.folder, env });
  const integ = (...command: string[]): string =>
    execFileSync(join(prefix, "bin", "integ"), command, { env, cwd: at.folder, encoding: "utf8" });
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  expect(integ("--version").trim()).toBe(version);
  // A script such as `prepare` works only in a clone: it builds from sources that the package does not have.
  const installed = JSON.parse(readFileSync(join(prefix, "lib/node_modules/integ/package.json"), "utf8")) as object;
  expect(installed).not.toHaveProperty("scripts");
  expect(installed).not.toHaveProperty("devDependencies");
  // npm links only the man pages that package.json names, not a whole folder.
  const pages = readdirSync(join(root, "docs/man")).sort();
  expect(readdirSync(join(prefix, "share/man/man1")).sort()).toEqual(pages);
  expect(JSON.parse(integ("entities", "list", "-p", "sandbox", "--json")).data).toHaveLength(25);
  expect(integ("sandbox", "tour")).toContain("The end: no change was lost");
  if (line !== "running") {
    const found = execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }).trim();
    recordFigure("package", { version: found, failures: 0 }, `installed with Node ${line}`);
  }
});

it("has no install script anywhere in its tree, and its lock records no download address", () => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { hasInstallScript?: boolean; resolved?: string }>;
  };
  const scripted = Object.entries(lock.packages).filter(([name, entry]) => name !== "" && entry.hasInstallScript);
  expect(scripted.map(([name]) => name)).toEqual([]);
  expect(Object.values(lock.packages).filter(({ resolved }) => resolved?.startsWith("http"))).toEqual([]);
});

it("names the license of each bundled package", () => {
  const text = readFileSync(join(root, "dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  for (const name of ["commander", "undici", "zod", "chalk"]) expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
});
