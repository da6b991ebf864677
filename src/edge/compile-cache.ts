// Node's compile cache is enabled only in a folder that no other user can write to; on Windows, this is not checked.
import { lstatSync, mkdirSync, statSync, type Stats } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";

/** Without the cache, integ only starts more slowly, so failures are not reported. */
export function useCompileCache({ env, platform, getBuiltinModule }: NodeJS.Process): void {
  const { enableCompileCache } = getBuiltinModule("node:module") as Partial<CompileCache>;
  // Node 20 has no compile cache, a single executable has its own, and coverage is less exact with a cache.
  if (enableCompileCache === undefined || getBuiltinModule("node:sea").isSea() || env.NODE_V8_COVERAGE) return;
  if (env.NODE_DISABLE_COMPILE_CACHE || env.NODE_COMPILE_CACHE) return;
  try {
    const folder = cacheFolder(platform, env, env.HOME || getBuiltinModule("node:os").homedir());
    if (!isOwn(firstExisting(dirname(folder)))) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOwn(lstatSync(folder))) enableCompileCache(folder);
  } catch {
    // integ continues without a cache, for example on a full disk or in a read-only home.
  }
}

/** Node 20 lacks this part of `node:module`. */
interface CompileCache {
  enableCompileCache(folder: string): unknown;
}

function cacheFolder(platform: NodeJS.Platform, env: NodeJS.ProcessEnv, home: string): string {
  if (platform === "darwin") return join(home, "Library", "Caches", "integ");
  if (platform === "win32") return join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "integ", "cache");
  const given = env.XDG_CACHE_HOME;
  return join(given && isAbsolute(given) ? given : join(home, ".cache"), "integ");
}

/** Node runs the code in this folder, so no other user may write to it. */
function isOwn(folder: Stats): boolean {
  const isOwned = process.geteuid === undefined || folder.uid === process.geteuid();
  return folder.isDirectory() && isOwned && (process.platform === "win32" || (folder.mode & 0o022) === 0);
}

/** The nearest existing folder is checked, so that root creates nothing in another user's folder. */
function firstExisting(folder: string): Stats {
  return statSync(folder, { throwIfNoEntry: false }) ?? firstExisting(dirname(folder));
}
