// Which destinations in the journal are the ones that this machine would write to.
import { lstatSync } from "node:fs";
import { hostname } from "node:os";
import type { Context } from "../../context.ts";
import type { Entry } from "../../journal/entry.ts";
import type { SingleDestination } from "../../journal/entry-destination.ts";
import { type Delivered, placeIn } from "../../policy/holders.ts";

/** True of files, profiles and keychains: another machine has others of the same name. */
export function isLocal(at: SingleDestination): boolean {
  return at.kind === "file" || at.kind === "profile" || (at.kind === "store" && at.to.startsWith("keychain:"));
}

/** False of a destination of another machine, and of a file that was moved away: nothing is overwritten there. */
export function isHere(entry: Entry, at: SingleDestination): boolean {
  if (!isLocal(at)) return true;
  if (isOfAnotherMachine(entry)) return false;
  const isDelivered = entry.state === "done" || entry.state === "waiting";
  return at.kind !== "file" || !isDelivered || isThere(at.path);
}

/** Which destinations of what was delivered are on another machine, and at which nothing is any more, as `placeIn` names them. */
export async function lookedAt(
  { profiles }: Pick<Context, "profiles">,
  delivered: ReadonlyMap<string, Delivered>,
  isShared: boolean,
): Promise<{ readonly missing: ReadonlySet<string>; readonly elsewhere: ReadonlySet<string> }> {
  const [missing, elsewhere] = [new Set<string>(), new Set<string>()];
  const known = new Set((await profiles.store()).list().map(({ name }) => name));
  for (const { entry, places } of delivered.values())
    for (const at of places) {
      const place = placeIn(at, entry);
      if (place === undefined || !isLocal(at)) continue;
      // A journal in a file is on the disk of its machine, whatever that is called today.
      if (isShared && isOfAnotherMachine(entry)) elsewhere.add(place);
      else if (at.kind === "file" ? !isThere(at.path) : at.kind === "profile" && !known.has(at.name))
        missing.add(place);
    }
  return { missing, elsewhere };
}

function isOfAnotherMachine({ detail: { attempted_at } }: Entry): boolean {
  const machine = `${hostname()}:`;
  return attempted_at !== undefined && !attempted_at.some((place) => place.startsWith(machine));
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
