// Where the secret of an item goes, as the secret options say it.
import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import { type DestinationOption, placesOf, type SecretOptions } from "../../secrets/destination.ts";

/** Paths of the files that integ has delivered a secret to: a rotation may replace them, and no other file. */
export async function writtenPlaces({ journal }: Pick<Context, "journal">): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for await (const { destination } of (await journal()).each({ states: ["done"] }))
    for (const place of destination ? placesOf(destination) : []) if (place.kind === "file") paths.add(place.path);
  return paths;
}

export function destinationOptions(
  destinations: readonly ItemDestination[],
  written: ReadonlySet<string>,
): SecretOptions {
  return { to: destinations.map((destination) => optionOf(destination, written)) };
}

function optionOf(destination: ItemDestination, written: ReadonlySet<string>): DestinationOption {
  if ("profile" in destination) return { kind: "profile", name: destination.profile };
  if ("store" in destination) return { kind: "store", to: destination.store };
  const as = destination.format ?? "raw";
  if ("file" in destination) return { kind: "file", path: destination.file, as, force: written.has(destination.file) };
  const { command, check } = destination;
  return { kind: "command", command, as, check: check === undefined ? undefined : { command: check, by: "output" } };
}
