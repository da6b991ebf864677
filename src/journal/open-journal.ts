import { Failure } from "../errors.ts";
import type { Actor } from "./actor.ts";
import { FileJournal } from "./file/file-journal.ts";
import { isLong } from "./file/safety.ts";
import type { Journal, Slowly } from "./journal.ts";

/** Where a journal is: a file of this machine, or a server that a team shares. */
export type JournalPlace = { readonly path: string } | { readonly address: string };

export interface JournalParts {
  readonly place: JournalPlace;
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly actor: Actor;
  /** How a long file is read that has no index. */
  readonly slowly?: Slowly;
  /** What only a team's journal asks for. */
  readonly team: TeamParts;
}

interface TeamParts {
  readonly env: Readonly<Record<string, string | undefined>>;
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
export async function openJournal({ place, team, ...parts }: JournalParts): Promise<Journal> {
  if ("path" in place) {
    const { summarize } = isLong(place.path) ? await import("./file/summaries.ts") : {};
    return new FileJournal(place.path, { ...parts, ...(summarize && { summarize }) });
  }
  const { openTeamJournal } = await import("./postgres/open.ts");
  return openTeamJournal({ ...parts, ...team, address: place.address, waitMs });
}

/**
 * Makes the tables of a team's journal; a file needs nothing.
 * @throws Failure if that is not possible; nothing is left half made
 */
export async function initJournal({
  place,
  team: { env },
  actor,
}: JournalParts): Promise<{ readonly version: number; readonly made: boolean }> {
  if ("path" in place)
    throw new Failure("usage", `The journal is the file ${place.path}: it needs no preparation.`, {
      hint: "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database> for a team's journal.",
    });
  const { initTeamJournal } = await import("./postgres/open.ts");
  return initTeamJournal({ address: place.address, env, actor });
}
