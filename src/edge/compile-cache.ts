// Lets Node keep what V8 compiled of this program for the next start, in a folder that only this user can write to.
import { lstatSync, mkdirSync, statSync, type Stats } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";

/** Without the cache a start takes longer, and nothing else changes: no failure is reported. */
export function keepCompiledCode({ env, platform, getBuiltinModule }: NodeJS.Process): void {
  const { enableCompileCache } = getBuiltinModule("node:module") as Partial<CompileCache>;
  // Node 20 has no such cache, an executable has its own, and coverage counts less exactly with one.
  if (enableCompileCache === undefined || getBuiltinModule("node:sea").isSea() || env.NODE_V8_COVERAGE) return;
  if (env.NODE_DISABLE_COMPILE_CACHE || env.NODE_COMPILE_CACHE) return;
  try {
    const folder = cacheFolder(platform, env, env.HOME || getBuiltinModule("node:os").homedir());
    if (!isOwn(firstExisting(dirname(folder)))) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOwn(lstatSync(folder))) enableCompileCache(folder);
  } catch {
    // A full disk, or a home that is read-only.
  }
}

/** As much of `node:module` as Node 22 has and Node 20 has not. */
interface CompileCache {
  enableCompileCache(folder: string): unknown;
}

/** The folder for caches: XDG (Linux), Caches (macOS), %LOCALAPPDATA% (Windows). */
function cacheFolder(platform: NodeJS.Platform, env: NodeJS.ProcessEnv, home: string): string {
  if (platform === "darwin") return join(home, "Library", "Caches", "integ");
  if (platform === "win32") return join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "integ", "cache");
  const given = env.XDG_CACHE_HOME;
  return join(given && isAbsolute(given) ? given : join(home, ".cache"), "integ");
}

/** Node runs the code that it finds in the folder: no other user may be able to write there. */
function isOwn(folder: Stats): boolean {
  const isUsers = process.geteuid === undefined || folder.uid === process.geteuid();
  return folder.isDirectory() && isUsers && (process.platform === "win32" || (folder.mode & 0o022) === 0);
}

/** The nearest folder that exists: what root makes below another user's folder would be in that user's way. */
function firstExisting(folder: string): Stats {
  return statSync(folder, { throwIfNoEntry: false }) ?? firstExisting(dirname(folder));
}
