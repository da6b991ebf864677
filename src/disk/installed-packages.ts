import { createRequire } from "node:module";

/**
 * Loads optional packages, which have native code and stay outside the bundle.
 * @returns undefined in the single executable, which has none and may lie in a folder that others write to
 */
export function requireInstalled(): NodeJS.Require | undefined {
  return process.getBuiltinModule("node:sea").isSea() ? undefined : createRequire(import.meta.url);
}
