// The destination of a credential's secret for a policy file, from the entry that created it.
import type { Entry } from "../../journal/entry.ts";
import type { EntryDestination, SingleDestination } from "../../journal/entry-destination.ts";
import { isLocal, placesOf } from "../../secrets/destination.ts";
import type { ItemDestination } from "../../policy/policy.ts";

/**
 * @param machine the id of this machine's state folder: another machine's paths, profiles and keychain are not destinations here
 * @returns undefined if a destination cannot be named: a command's text is not recorded, and a screen is not a destination
 */
export function destinationsOf(
  entries: readonly Entry[],
  id: string,
  machine: string | undefined,
): readonly ItemDestination[] | undefined {
  const made = entries.find(({ resource_id, destination }) => resource_id === id && destination !== null);
  if (made?.destination === null || made === undefined) return undefined;
  const isElsewhere = (at: SingleDestination): boolean =>
    isLocal(at) && "machine" in at && at.machine !== undefined && at.machine !== machine;
  return placesOf(made.destination).some(isElsewhere) ? undefined : namedIn(made.destination);
}

/** The destinations of all clients and keys, from a stream of entries of any length. */
export class KnownDestinations {
  readonly #byResource = new Map<string, EntryDestination>();

  /** Call with the newest entry first. */
  add({ resource_id: id, destination }: Entry): void {
    if (id !== null && destination !== null && !this.#byResource.has(id)) this.#byResource.set(id, destination);
  }

  of(id: string): readonly ItemDestination[] | undefined {
    const destination = this.#byResource.get(id);
    return destination && namedIn(destination);
  }
}

function namedIn(destination: EntryDestination): readonly ItemDestination[] | undefined {
  const places = destination.kind === "several" ? destination.places.map(({ at }) => at) : [destination];
  const named = places.flatMap((place) => nameOf(place) ?? []);
  return named.length === places.length ? named : undefined;
}

function nameOf(place: SingleDestination): ItemDestination | undefined {
  if (place.kind === "profile") return { profile: place.name };
  if (place.kind === "store") return { store: place.to };
  if (place.kind !== "file") return undefined;
  const { path, as } = place;
  // A policy supports fewer formats than the option.
  if (as === "json-string" || as.includes(":")) return undefined;
  return as === "raw" ? { file: path } : { file: path, format: as };
}
