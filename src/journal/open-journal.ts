import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import { FileStore } from "./file/file-store.ts";
import { machineKey } from "./file/machine-key.ts";
import { type Journal, StoredJournal } from "./journal.ts";
import { keyRing, missingKeys, newKey, parseKeys } from "./keys.ts";

export type JournalPlace = { readonly path: string } | { readonly address: string };

export interface JournalParts {
  readonly place: JournalPlace;
  readonly now: () => number;
  readonly actor: Actor;
  readonly stateDir: string;
  readonly team: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Runs the profile's command for the team's keys; undefined without a command. */
    readonly printedKeys?: () => Promise<string | undefined>;
    readonly requestMs: number;
    readonly leaseMs: number;
  };
}

/** Does not read the journal's file or connect to its server yet. */
export async function openJournal({ place, team, ...parts }: JournalParts): Promise<Journal> {
  const machine = machineKey(parts.stateDir);
  const typed = keysIn(team.env.INTEG_JOURNAL_KEY, "INTEG_JOURNAL_KEY");
  if ("path" in place) {
    const keys = keyRing(typed === undefined ? machine : { read: () => [...typed, ...machine.read()] });
    return new StoredJournal(new FileStore(place.path, parts), { ...parts, keys });
  }
  const { openTeamStore } = await import("./postgres/postgres-store.ts");
  const store = openTeamStore({ ...team, actor: parts.actor, address: place.address });
  const given = typed ?? keysIn(await team.printedKeys?.(), `What ${flags.journalKeyCommand} of the profile printed`);
  // The machine's own key made the digests of secrets delivered before a move to a team's journal.
  const keys =
    given === undefined ? missingKeys(store.path) : keyRing({ read: () => given, readEarlier: machine.read });
  return new StoredJournal(store, { ...parts, keys });
}

/** Parses now, because an invalid list must end the command before a request. */
function keysIn(list: string | undefined, where: string): string[] | undefined {
  return list ? parseKeys(list, where) : undefined;
}

/**
 * Creates all tables of a team's journal or none.
 * @returns a new key, which integ does not store, if the tables were new
 * @throws Failure `usage` for a journal in a file
 */
export async function initJournal({ place, team: { env }, actor }: JournalParts) {
  if ("path" in place)
    throw new Failure("usage", `The journal is the file ${place.path}: it needs no preparation.`, {
      hint: "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database> for a team's journal.",
    });
  const { initTeamJournal } = await import("./postgres/postgres-store.ts");
  const { version, isNew } = await initTeamJournal({ address: place.address, env, actor });
  return { version, isNew, key: isNew ? newKey() : undefined };
}
