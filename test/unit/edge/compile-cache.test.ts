// Node runs code from its compile cache, so integ names only a folder that no other user can write to.
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useCompileCache } from "../../../src/edge/compile-cache.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "integ-cache-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

interface Surroundings {
  readonly platform?: NodeJS.Platform;
  readonly env?: Readonly<Record<string, string>>;
  readonly isExecutable?: boolean;
}

function cacheFolder({ platform = "linux", env = {}, isExecutable = false }: Surroundings = {}): string | undefined {
  let given: string | undefined;
  const modules: Readonly<Record<string, unknown>> = {
    "node:module": { enableCompileCache: (folder: string) => void (given = folder) },
    "node:sea": { isSea: () => isExecutable },
    "node:os": { homedir: () => home },
  };
  const process = { platform, env: { HOME: home, ...env }, getBuiltinModule: (name: string) => modules[name] };
  useCompileCache(process as unknown as NodeJS.Process);
  return given;
}

const isRoot = process.geteuid?.() === 0;

describe("the folder for compiled code", () => {
  it.each<[NodeJS.Platform, readonly string[]]>([
    ["linux", [".cache", "integ"]],
    ["darwin", ["Library", "Caches", "integ"]],
    ["win32", ["AppData", "Local", "integ", "cache"]],
  ])("is the user's own on %s, unreadable for others", (platform, names) => {
    const folder = join(home, ...names);
    expect(cacheFolder({ platform })).toBe(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it.each<[string, NodeJS.Platform]>([
    ["XDG_CACHE_HOME", "linux"],
    ["LOCALAPPDATA", "win32"],
  ])("comes from %s", (name, platform) => {
    expect(cacheFolder({ platform, env: { [name]: join(home, "mine") } })).toContain(join(home, "mine", "integ"));
  });

  it("ignores a relative XDG_CACHE_HOME, as the XDG specification requires", () => {
    expect(cacheFolder({ env: { XDG_CACHE_HOME: "mine" } })).toBe(join(home, ".cache", "integ"));
  });

  it.each<[string, Surroundings]>([
    ["NODE_DISABLE_COMPILE_CACHE", { env: { NODE_DISABLE_COMPILE_CACHE: "1" } }],
    ["NODE_COMPILE_CACHE, which Node reads itself", { env: { NODE_COMPILE_CACHE: "/elsewhere" } }],
    ["coverage", { env: { NODE_V8_COVERAGE: "/coverage" } }],
    ["the single executable", { isExecutable: true }],
  ])("is not created with %s", (_why, surroundings) => {
    expect(cacheFolder(surroundings)).toBeUndefined();
    expect(existsSync(join(home, ".cache"))).toBe(false);
  });

  it.each(["720", "702", "1777"])("is not used if others can write to it or to the folder around it: %s", (mode) => {
    const caches = join(home, ".cache");
    mkdirSync(join(caches, "integ"), { recursive: true, mode: 0o700 });
    for (const folder of [caches, join(caches, "integ")]) {
      expect(cacheFolder()).toBe(join(caches, "integ"));
      chmodSync(folder, Number.parseInt(mode, 8));
      expect(cacheFolder()).toBeUndefined();
      chmodSync(folder, 0o700);
    }
  });

  it("is not a symbolic link, and not a file", () => {
    mkdirSync(join(home, ".cache"), { mode: 0o700 });
    mkdirSync(join(home, "elsewhere"), { mode: 0o700 });
    symlinkSync(join(home, "elsewhere"), join(home, ".cache", "integ"));
    expect(cacheFolder()).toBeUndefined();
    expect(cacheFolder({ env: { XDG_CACHE_HOME: "/dev/null" } })).toBeUndefined();
  });

  it.skipIf(!isRoot)("is not used, and nothing is created in it, if it belongs to another user", () => {
    const folder = join(home, ".cache", "integ");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, 12_345, 12_345);
    expect(cacheFolder()).toBeUndefined();
    rmSync(folder, { recursive: true });
    chownSync(join(home, ".cache"), 12_345, 12_345);
    expect(cacheFolder()).toBeUndefined();
    expect(cacheFolder({ env: { XDG_CACHE_HOME: join(home, ".cache", "deeper") } })).toBeUndefined();
    expect(existsSync(folder)).toBe(false);
    expect(existsSync(join(home, ".cache", "deeper"))).toBe(false);
  });
});
