import { Failure } from "../errors.ts";
import type { Actor } from "./actor.ts";
import { FileJournal } from "./file/file-journal.ts";
import type { Journal } from "./journal.ts";

export interface JournalParts {
  readonly path: string;
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly actor: Actor;
}

/**
 * Opens the journal at a path. Nothing on the disk is touched until something is asked of it.
 * @throws Failure `usage` if the path is an address
 */
export function openJournal({ path, ...parts }: JournalParts): Journal {
  refuseAddress(path);
  return new FileJournal(path, parts);
}

/**
 * Refuses an address as the journal's path: it would become a folder here, and each machine of a fleet would silently
 * have a journal of its own. What follows the scheme may hold a password and is not shown.
 */
function refuseAddress(path: string): void {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1];
  if (scheme === undefined) return;
  throw new Failure(
    "usage",
    `INTEG_JOURNAL is an address (${scheme}://…), and this integ keeps its journal in a file.`,
    {
      meaning: "Nothing was sent, nothing changed.",
      hint: "set INTEG_JOURNAL to a file's path, on a volume that outlives the machine",
    },
  );
}
