// Where the secret of an item goes, as the secret options say it.
import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import { type DestinationOption, placesOf, type SecretOptions } from "../../secrets/destination.ts";

/** Paths of the files that integ has delivered a secret to: a rotation may replace them, and no other file. */
export async function writtenPlaces({ journal }: Pick<Context, "journal">): Promise<ReadonlySet<string>> {
  const entries = await (await journal()).entries();
  return new Set(
    entries.flatMap(({ state, destination }) =>
      state === "done" && destination
        ? placesOf(destination).flatMap((place) => (place.kind === "file" ? [place.path] : []))
        : [],
    ),
  );
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
