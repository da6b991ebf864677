import type { Entry } from "../../journal/entry.ts";
import type { EntryDestination, SingleDestination } from "../../journal/entry-destination.ts";
import { isLocal, placesOf, type SecretOptions } from "../../secrets/destination.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import { destinationOptions } from "./destinations.ts";
import { isOfAnotherMachine } from "./places.ts";

/**
 * @param machine this machine's id, if it has one
 * @returns undefined without a delivery, or for a destination that a policy file cannot name, such as a command or a
 * file of another machine
 */
export function knownOptions(
  entries: readonly Entry[],
  id: string,
  machine: string | undefined,
): SecretOptions | undefined {
  const delivery = entries.find(({ resource_id, destination }) => resource_id === id && destination !== null);
  const places = placesOf(delivery?.destination ?? null);
  const destinations = itemDestinations(delivery?.destination ?? null, machine);
  if (destinations === undefined) return undefined;
  const options = destinationOptions(destinations);
  // The user does not name the destination again, so the recorded facts identify the store's server.
  const at = (index: number) => places[index] as SingleDestination & { kind: "store" };
  return { ...options, to: options.to.map((one, i) => (one.kind === "store" ? { ...one, facts: at(i).facts } : one)) };
}

/** Takes entries one by one, so that a long journal need not fit into memory. */
export class KnownDestinations {
  readonly #machine: string | undefined;
  readonly #byResource = new Map<string, EntryDestination>();

  constructor(machine: string | undefined) {
    this.#machine = machine;
  }

  /** Call with the newest entry first. */
  add({ resource_id: id, destination }: Entry): void {
    if (id !== null && destination !== null && !this.#byResource.has(id)) this.#byResource.set(id, destination);
  }

  of(id: string): readonly ItemDestination[] | undefined {
    return itemDestinations(this.#byResource.get(id) ?? null, this.#machine);
  }
}

function itemDestinations(
  destination: EntryDestination | null,
  machine: string | undefined,
): readonly ItemDestination[] | undefined {
  const places = placesOf(destination);
  if (places.length === 0 || places.some((at) => isLocal(at) && isOfAnotherMachine(at, machine))) return undefined;
  const converted = places.flatMap((place) => itemDestination(place) ?? []);
  return converted.length === places.length ? converted : undefined;
}

function itemDestination(place: SingleDestination): ItemDestination | undefined {
  if (place.kind === "profile") return { profile: place.name };
  if (place.kind === "store") return { store: place.to };
  if (place.kind !== "file") return undefined;
  const { path, as } = place;
  // A policy file cannot contain these formats of --secret-format.
  if (as === "json-string" || as.includes(":")) return undefined;
  return as === "raw" ? { file: path } : { file: path, format: as };
}
