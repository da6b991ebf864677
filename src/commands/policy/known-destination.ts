// Where the secret of a client or key went, as a policy file says it: read from the entry that made it.
import type { Entry } from "../../journal/entry.ts";
import type { EntryDestination, SingleDestination } from "../../journal/entry-destination.ts";
import { isLocal, placesOf } from "../../secrets/destination.ts";
import type { ItemDestination } from "../../policy/policy.ts";

/**
 * @param machine the id of this machine's state folder: a path, a profile or a keychain of another one is not a destination here
 * @returns undefined if a destination cannot be named: the text of a command is not in the journal, nor is a screen one
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

/** The same of every client and key, from entries that are shown one by one: a journal may have any number. */
export class KnownDestinations {
  readonly #byResource = new Map<string, EntryDestination>();

  /** Shown from the newest to the oldest. */
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
  // A policy has fewer formats than an option.
  if (as === "json-string" || as.includes(":")) return undefined;
  return as === "raw" ? { file: path } : { file: path, format: as };
}
