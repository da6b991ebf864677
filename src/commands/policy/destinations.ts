// Where the secret of an item goes, as the secret options say it.
import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import { placesOf, type SecretOptions } from "../../secrets/destination.ts";

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

export function destinationOptions(destination: ItemDestination, written: ReadonlySet<string>): SecretOptions {
  if ("profile" in destination) return { to: [{ kind: "profile", name: destination.profile }] };
  const as = destination.format ?? "raw";
  if ("command" in destination) return { to: [{ kind: "command", command: destination.command, as }] };
  const { file: path } = destination;
  return { to: [{ kind: "file", path, as, force: written.has(path) }] };
}
