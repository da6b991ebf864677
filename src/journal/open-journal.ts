import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import type { Actor } from "./actor.ts";
import { FileStore } from "./file/file-store.ts";
import { machineKey } from "./file/machine-key.ts";
import { type Journal, StoredJournal } from "./journal.ts";
import { type Keys, type KeySource, keyRing, missingKeys, newKey, parseKeys } from "./keys.ts";

/** The place of a journal: a file of this machine, or a team's server. */
export type JournalPlace = { readonly path: string } | { readonly address: string };

export interface JournalParts {
  readonly place: JournalPlace;
  readonly now: () => number;
  readonly actor: Actor;
  /** The folder of the machine's own key. */
  readonly stateDir: string;
  readonly team: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Output of the profile's command for the team's keys; undefined without a command. */
    readonly printedKeys?: () => Promise<string | undefined>;
    /** The longest duration of one request. */
    readonly requestMs: number;
    /** The duration of a lease. */
    readonly leaseMs: number;
  };
}

/** Opens the journal at a path or an address. The first use reads it or connects. */
export async function openJournal({ place, team, ...parts }: JournalParts): Promise<Journal> {
  const machine = machineKey(parts.stateDir);
  const typed = keysIn(team.env.INTEG_JOURNAL_KEY, "INTEG_JOURNAL_KEY", machine);
  if ("path" in place) {
    const keys = typed ?? keyRing(machine);
    return new StoredJournal(new FileStore(place.path, parts), { ...parts, keys });
  }
  const { openTeamStore } = await import("./postgres/postgres-store.ts");
  const store = openTeamStore({ ...team, actor: parts.actor, address: place.address });
  const printed = async (): Promise<Keys | undefined> =>
    keysIn(await team.printedKeys?.(), `What ${flags.journalKeyCommand} of the profile printed`, machine);
  return new StoredJournal(store, { ...parts, keys: typed ?? (await printed()) ?? missingKeys(store.path) });
}

/** Parses the keys now: an invalid list must end the command before it sends a request. */
function keysIn(list: string | undefined, where: string, machine: KeySource): Keys | undefined {
  if (!list) return undefined;
  const keys = parseKeys(list, where);
  // Before a move to a team's journal, this machine made its digests of delivered secrets with its own key.
  return keyRing({ read: () => keys, readEarlier: machine.read });
}

/** Creates the tables of a team's journal, all or none; if it creates them, returns a new key, which it does not store. */
export async function initJournal({ place, team: { env }, actor }: JournalParts) {
  if ("path" in place)
    throw new Failure("usage", `The journal is the file ${place.path}: it needs no preparation.`, {
      hint: "Set INTEG_JOURNAL to postgresql://<user>@<host>:<port>/<database> for a team's journal.",
    });
  const { initTeamJournal } = await import("./postgres/postgres-store.ts");
  const { version, made } = await initTeamJournal({ address: place.address, env, actor });
  return { version, made, key: made ? newKey() : undefined };
}
