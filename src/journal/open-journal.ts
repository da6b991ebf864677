import { Failure } from "../errors.ts";
import type { Actor } from "./actor.ts";
import { FileJournal } from "./file/file-journal.ts";
import type { Journal } from "./journal.ts";
import { isAddress } from "./place.ts";

export interface JournalParts {
  /** Path of a file, or the address of a team's journal. */
  readonly path: string;
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly actor: Actor;
  /** What only a team's journal asks for. */
  readonly team: TeamParts;
}

interface TeamParts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** How long one request may take. */
  readonly requestMs: number;
  /** How long a lease lasts. */
  readonly leaseMs: number;
}

/** How long a running holder of an entry is waited for. */
const waitMs = 10_000;

/**
 * Opens the journal at a path or an address. Nothing is touched until something is asked of it.
 * @throws Failure `usage` if the address cannot be used
 */
export async function openJournal({ path, team, ...parts }: JournalParts): Promise<Journal> {
  if (!isAddress(path)) return new FileJournal(path, parts);
  const { openTeamJournal } = await import("./postgres/open.ts");
  return openTeamJournal({ ...parts, ...team, address: path, waitMs });
}

/**
 * Makes the tables of a team's journal; a file needs nothing.
 * @throws Failure if that is not possible; nothing is left half made
 */
export async function initJournal({
  path,
  team: { env, home },
  actor,
}: JournalParts): Promise<{ readonly version: number; readonly made: boolean }> {
  if (!isAddress(path))
    throw new Failure("usage", `The journal is the file ${path}: it needs no preparation.`, {
      hint: "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database> for a team's journal.",
    });
  const { initTeamJournal } = await import("./postgres/open.ts");
  return initTeamJournal({ address: path, env, home, actor });
}
