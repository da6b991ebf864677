// Opens a team's journal from its address: nothing is connected before something is asked of it.
import type { Actor } from "../actor.ts";
import { type Environment, readAddress } from "./address.ts";
import { journalFailure } from "./failures.ts";
import { PostgresStore } from "./postgres-store.ts";
import { assertUsable, checkTables, makeTables, tablesIn } from "./schema.ts";
import { Session } from "./session.ts";

export interface TeamJournalParts {
  readonly address: string;
  readonly env: Environment;
  readonly actor: Actor;
  /** How long one request may take. */
  readonly requestMs: number;
  /** How long a lease lasts. */
  readonly leaseMs: number;
}

/** @throws Failure `usage` if the address cannot be used */
export function openTeamStore({ address: text, env, actor, ...parts }: TeamJournalParts): PostgresStore {
  const address = readAddress(text, { env });
  const tables = tablesIn(address.schema);
  const session = new Session({
    address,
    user: actor.user,
    check: async (query, server) => {
      assertUsable(server);
      await checkTables(query, tables);
    },
  });
  return new PostgresStore({ ...parts, session, tables, actor, shown: address.shown });
}

/**
 * Makes the tables, or finds them there.
 * @returns their version, and whether they were made now
 */
export async function initTeamJournal({
  address: text,
  env,
  actor,
}: Pick<TeamJournalParts, "address" | "env" | "actor">): Promise<{ version: number; made: boolean }> {
  const address = readAddress(text, { env });
  const tables = tablesIn(address.schema);
  const session = new Session({
    address,
    user: actor.user,
    check: async (_, server) => assertUsable(server),
  });
  try {
    return await session.transaction((query) => makeTables(query, tables));
  } catch (error) {
    throw journalFailure(error, address.shown);
  } finally {
    session.close();
  }
}
