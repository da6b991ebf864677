// Finds recorded destinations that are missing, on another machine or in the store of another server.
import { lstatSync } from "node:fs";
import type { Context } from "../../context.ts";
import type { Entry } from "../../journal/entry.ts";
import type { SingleDestination } from "../../journal/entry-destination.ts";
import { type Delivered, placeIn } from "../../policy/holders.ts";
import { isLocal } from "../../secrets/destination.ts";

/**
 * False for a destination on another machine, and for a file that had its secret and no longer exists.
 * @param machine this machine's id, if it has one
 */
export function isHere({ state }: Pick<Entry, "state">, at: SingleDestination, machine: string | undefined): boolean {
  if (!isLocal(at)) return true;
  if (isOfAnotherMachine(at, machine)) return false;
  const isDelivered = state === "done" || state === "waiting";
  return at.kind !== "file" || !isDelivered || exists(at.path);
}

/** @returns places in the form of `placeIn` */
export async function unusablePlaces(
  { profiles, secrets }: Pick<Context, "profiles" | "secrets">,
  delivered: Iterable<Delivered>,
  isShared: boolean,
): Promise<{ readonly vanished: ReadonlySet<string>; readonly elsewhere: ReadonlySet<string> }> {
  const [vanished, elsewhere] = [new Set<string>(), new Set<string>()];
  const profileNames = new Set((await profiles.store()).list().map(({ name }) => name));
  for (const { entry, places } of delivered)
    for (const at of places) {
      const place = placeIn(at, entry);
      if (place === undefined) continue;
      if (at.kind === "store" && (await secrets.isOfOtherServer(at))) elsewhere.add(place);
      else if (!isLocal(at)) continue;
      // A file journal belongs to this machine, whatever machine id it records.
      else if (isShared && isOfAnotherMachine(at, secrets.machine.find())) elsewhere.add(place);
      else if (at.kind === "file" ? !exists(at.path) : at.kind === "profile" && !profileNames.has(at.name))
        vanished.add(place);
    }
  return { vanished, elsewhere };
}

export function isOfAnotherMachine(at: SingleDestination, machine: string | undefined): boolean {
  return "machine" in at && at.machine !== undefined && at.machine !== machine;
}

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
