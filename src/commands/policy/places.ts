// Which destinations in the journal are the ones that this machine would write to.
import { lstatSync } from "node:fs";
import { hostname } from "node:os";
import type { Entry } from "../../journal/entry.ts";
import type { SingleDestination } from "../../journal/entry-destination.ts";

/** True of files, profiles and keychains: another machine has others of the same name. */
export function isLocal(at: SingleDestination): boolean {
  return at.kind === "file" || at.kind === "profile" || (at.kind === "store" && at.to.startsWith("keychain:"));
}

/** False of a destination of another machine, and of a file that was moved away: nothing is overwritten there. */
export function isHere({ state, detail: { attempted_at } }: Entry, at: SingleDestination): boolean {
  if (!isLocal(at)) return true;
  const machine = `${hostname()}:`;
  if (attempted_at !== undefined && !attempted_at.some((place) => place.startsWith(machine))) return false;
  const isDelivered = state === "done" || state === "waiting";
  return at.kind !== "file" || !isDelivered || isThere(at.path);
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
