import { lstatSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { isMissing, isThereAlready } from "./error-words.ts";
import { syncFolder } from "./write.ts";

/**
 * Makes a folder 0700 with the parents that are missing, one level at a time: Node's recursive mkdir never returns where a
 * parent exists and takes no folder (`/proc`). What stands at the path already, whatever it is, is left to the caller.
 * @param options.synced the names of the new folders outlive a power cut
 */
export function makeFolders(path: string, { synced = true }: { readonly synced?: boolean } = {}): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (isThereAlready(error)) return;
    const parent = dirname(path);
    if (!isMissing(error) || parent === path || isThere(parent)) return refuseUnlessThere(path, error);
    makeFolders(parent, { synced });
    return makeFolders(path, { synced });
  }
  if (synced) syncFolder(dirname(path));
}

/** Some systems refuse to make what exists (a read-only disk, another user's parent) with a code of their own. */
function refuseUnlessThere(path: string, error: unknown): void {
  if (!isThere(path)) throw error;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
