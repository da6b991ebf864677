// Where the secret of an item goes, as the secret options say it.
import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import type { EntryDestination } from "../../journal/entry-destination.ts";
import { leadsTo } from "../journal/remembered-destination.ts";
import {
  describeDestination,
  type DestinationOption,
  placesOf,
  type SecretOptions,
} from "../../secrets/destination.ts";

/** Paths of the files that integ has delivered a secret to, as far as the journal remembers: what is there now is not looked at. */
export async function writtenPlaces({ journal }: Pick<Context, "journal">): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for await (const { destination } of (await journal()).each({ states: ["done"] }))
    for (const place of destination ? placesOf(destination) : []) if (place.kind === "file") paths.add(place.path);
  return paths;
}

/**
 * @param about.isFirst nothing of the item exists: a profile that the policy names is there, and gives its credential up
 * @param about.before what the entry that is finished remembers: what a person consented to stays so
 */
export function destinationOptions(
  destinations: readonly ItemDestination[],
  { isFirst = false, before = null }: { readonly isFirst?: boolean; readonly before?: EntryDestination | null } = {},
): SecretOptions {
  const places = before === null ? [] : placesOf(before);
  const to = destinations.map((destination) => {
    const option = optionOf(destination, isFirst);
    const place = places.find((one) => leadsTo(option, one, ""));
    return place === undefined || option.kind === "command" ? option : (describeDestination(place).option ?? option);
  });
  return { to, mayBeOwn: true };
}

function optionOf(destination: ItemDestination, isFirst: boolean): DestinationOption {
  if ("profile" in destination) return { kind: "profile", name: destination.profile, force: isFirst };
  if ("store" in destination) return { kind: "store", to: destination.store };
  const as = destination.format ?? "raw";
  if ("file" in destination) return { kind: "file", path: destination.file, as };
  const { command, check } = destination;
  return { kind: "command", command, as, check: check === undefined ? undefined : { command: check, by: "output" } };
}
