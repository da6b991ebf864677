// What a person gets by `npm install`: a package without an install script that works with nothing else fetched.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { Home, isOtherBinary, root } from "../support/program.ts";

const at = new Home();
const isElse = isOtherBinary("what npm packs and installs");

afterAll(() => at.remove());

function npm(...words: string[]): string {
  return execFileSync("npm", [...words, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, npm_config_cache: at.path("cache"), npm_config_update_notifier: "false" },
  });
}

it.skipIf(isElse)("packs, installs offline without any other package, and runs", () => {
  mkdirSync(at.path("global"));
  const [packed] = JSON.parse(npm("pack", "--json", "--pack-destination", at.folder)) as [
    { filename: string; files: { path: string }[] },
  ];
  const paths = packed.files.map(({ path }) => path);
  for (const path of [
    "bin/integ.js",
    "dist/main.cjs",
    "dist/THIRD-PARTY-LICENSES.txt",
    "LICENSE",
    "README.md",
    "completions/_integ",
  ])
    expect(paths).toContain(path);
  expect(paths.filter((path) => /^(src|test)\//.test(path))).toEqual([]);
  npm("install", "--global", "--offline", "--omit=optional", "--prefix", at.path("global"), at.path(packed.filename));
  const integ = join(at.path("global"), "bin", "integ");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  expect(execFileSync(integ, ["--version"], { env: at.env, encoding: "utf8" }).trim()).toBe(version);
  const listed = execFileSync(integ, ["entities", "list", "-p", "sandbox", "--json"], {
    env: at.env,
    encoding: "utf8",
  });
  expect(JSON.parse(listed).data).toHaveLength(25);
});

it("has no install script anywhere in its tree, and its lock records no download address", () => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { hasInstallScript?: boolean; resolved?: string }>;
  };
  const scripted = Object.entries(lock.packages).filter(([name, entry]) => name !== "" && entry.hasInstallScript);
  expect(scripted.map(([name]) => name)).toEqual([]);
  expect(Object.values(lock.packages).filter(({ resolved }) => resolved?.startsWith("http"))).toEqual([]);
});

it("names every licence of what is bundled", () => {
  const text = readFileSync(join(root, "dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  for (const name of ["commander", "undici", "zod", "chalk"]) expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
});
