// Owns: telling a person where a delivered secret is, from what the journal remembers of its destination. Pure.
import type { Entry } from "../journal/entry.ts";

/** A sentence; nothing where the secret was printed with the result. */
export function whereSecretIs(entry: Entry): string | undefined {
  if (entry.state !== "done") return undefined;
  const place = entry.destination;
  if (place?.kind === "file") return `The secret is in ${place.path}, readable by you alone.`;
  if (place?.kind === "profile") return `The secret is the credential of profile ${place.name} now.`;
  if (place?.kind === "command") return "The secret was given to the command.";
  return undefined;
}
