import { createRequire } from "node:module";

/**
 * Loads optional packages with native code, which are not bundled.
 * @returns undefined in the single executable: it has no packages, and other users may write to its folder
 */
export function requireInstalled(): NodeJS.Require | undefined {
  return process.getBuiltinModule("node:sea").isSea() ? undefined : createRequire(import.meta.url);
}
