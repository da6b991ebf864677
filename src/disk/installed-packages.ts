import { createRequire } from "node:module";

/**
 * Loads optional packages with native code, which are not bundled.
 * @returns undefined in the single executable, whose folder may be writable for other users
 */
export function requireInstalled(): NodeJS.Require | undefined {
  return process.getBuiltinModule("node:sea").isSea() ? undefined : createRequire(import.meta.url);
}
