// Where the secret of an item goes, as the secret options say it.
import type { Context } from "../../context.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import type { SecretOptions } from "../../secrets/destination.ts";

/** Paths of the files that integ has delivered a secret to: a rotation may replace them, and no other file. */
export async function writtenPlaces({ journal }: Pick<Context, "journal">): Promise<ReadonlySet<string>> {
  const entries = await (await journal()).entries();
  return new Set(
    entries.flatMap(({ state, destination }) =>
      state === "done" && destination?.kind === "file" ? [destination.path] : [],
    ),
  );
}

export function destinationOptions(destination: ItemDestination, written: ReadonlySet<string>): SecretOptions {
  if ("profile" in destination) return { secretProfile: destination.profile };
  if ("command" in destination) return { secretCommand: destination.command, secretFormat: destination.format };
  const { file, format } = destination;
  return { secretFile: file, secretFormat: format, force: written.has(file) ? true : undefined };
}
