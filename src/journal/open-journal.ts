import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import { FileStore } from "./file/file-store.ts";
import { machineKey } from "./file/machine-key.ts";
import { type Journal, StoredJournal } from "./journal.ts";
import { keyRing, missingKeys, newKey, parseKeys } from "./keys.ts";

/** A file of this machine, or the server of a team's journal. */
export type JournalPlace = { readonly path: string } | { readonly address: string };

export interface JournalParts {
  readonly place: JournalPlace;
  readonly now: () => number;
  readonly actor: Actor;
  readonly stateDir: string;
  readonly team: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Output of the profile's command for the team's keys; undefined without a command. */
    readonly printedKeys?: () => Promise<string | undefined>;
    readonly requestMs: number;
    readonly leaseMs: number;
  };
}

/** The first use of the journal reads the file or connects to the server. */
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
  // Before a move to a team's journal, this machine made its digests of delivered secrets with its own key.
  const keys =
    given === undefined ? missingKeys(store.path) : keyRing({ read: () => given, readEarlier: machine.read });
  return new StoredJournal(store, { ...parts, keys });
}

/** An invalid list must end the command before it sends a request, so the keys are parsed now. */
function keysIn(list: string | undefined, where: string): string[] | undefined {
  return list ? parseKeys(list, where) : undefined;
}

/**
 * Creates all tables of a team's journal, or none.
 * @returns a new key if this call created the tables; integ does not store the key
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
