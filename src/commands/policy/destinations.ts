import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import type { EntryDestination } from "../../journal/entry-destination.ts";
import { isOptionFor } from "../journal/remembered-destination.ts";
import {
  describeDestination,
  type DestinationOption,
  placesOf,
  type SecretOptions,
} from "../../secrets/destination.ts";

export async function deliveredFiles({ journal }: Pick<Context, "journal">): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for await (const { destination } of (await journal()).each({ states: ["done"] }))
    for (const place of placesOf(destination)) if (place.kind === "file") paths.add(place.path);
  return paths;
}

/** @param before an earlier entry's recorded destination, which may include a person's consent to replace content */
export function destinationOptions(
  destinations: readonly ItemDestination[],
  before: EntryDestination | null = null,
): SecretOptions {
  const places = before === null ? [] : placesOf(before);
  const to = destinations.map((destination) => {
    const option = optionOf(destination);
    const place = places.find((one) => isOptionFor(option, one, ""));
    return place === undefined || option.kind === "command" ? option : (describeDestination(place).option ?? option);
  });
  return { to, mayBeOwn: true };
}

function optionOf(destination: ItemDestination): DestinationOption {
  if ("profile" in destination) return { kind: "profile", name: destination.profile };
  if ("store" in destination) return { kind: "store", to: destination.store };
  const as = destination.format ?? "raw";
  if ("file" in destination) return { kind: "file", path: destination.file, as };
  const { command, check } = destination;
  return { kind: "command", command, as, check: check === undefined ? undefined : { command: check, by: "output" } };
}
