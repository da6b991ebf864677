import type { Entry } from "../../journal/entry.ts";
import type { EntryDestination, SingleDestination } from "../../journal/entry-destination.ts";
import { isLocal, placesOf, type SecretOptions } from "../../secrets/destination.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import type { Context } from "../../context.ts";
import { hasDelivered } from "../../policy/holders.ts";
import { destinationOptions } from "./destinations.ts";
import { isOfAnotherMachine } from "./places.ts";

/**
 * @returns undefined without a trusted delivery, or for a destination that a policy file cannot name, such as a command or
 * a file of another machine
 */
export async function knownOptions(context: Context, id: string): Promise<SecretOptions | undefined> {
  const entries = await (await context.journal()).select({ all: true, resource: id, trusted: true });
  const delivery = entries.find(
    (entry) => entry.resource_id === id && entry.destination !== null && hasDelivered(entry),
  );
  const places = placesOf(delivery?.destination ?? null);
  const destinations = itemDestinations(delivery?.destination ?? null, context.secrets.machine.find());
  if (destinations === undefined) return undefined;
  const options = destinationOptions(destinations);
  // The user does not name the destination again, so the recorded facts identify the store's server.
  const at = (index: number) => places[index] as SingleDestination & { kind: "store" };
  return { ...options, to: options.to.map((one, i) => (one.kind === "store" ? { ...one, facts: at(i).facts } : one)) };
}

export class KnownDestinations {
  readonly #machine: string | undefined;
  readonly #byResource = new Map<string, EntryDestination>();

  constructor(machine: string | undefined) {
    this.#machine = machine;
  }

  /** Call with trusted entries, the newest first. */
  add(entry: Entry): void {
    const { resource_id: id, destination } = entry;
    const isDelivery = destination !== null && hasDelivered(entry);
    if (id !== null && isDelivery && !this.#byResource.has(id)) this.#byResource.set(id, destination);
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
