// Owns: telling a person where a delivered secret is, from what the journal remembers of its destination. Pure.
import type { Entry } from "../journal/entry.ts";

/** A sentence; nothing where the secret was printed with the result. */
export function whereSecretIs(entry: Entry): string | undefined {
  if (entry.state !== "done") return undefined;
  const { kind, path, name } = entry.destination ?? {};
  if (kind === "file") return `The secret is in ${String(path)}, readable by you alone.`;
  if (kind === "profile") return `The secret is the credential of profile ${String(name)} now.`;
  if (kind === "command") return "The secret was given to the command.";
  return undefined;
}
