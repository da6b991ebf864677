// Opens a team's journal from its address: nothing is connected before something is asked of it.
import type { Actor } from "../actor.ts";
import { type Environment, readAddress } from "./address.ts";
import { journalFailure } from "./failures.ts";
import { PostgresStore } from "./postgres-store.ts";
import { assertUsable, checkTables, makeTables, type PostgresParts, tablesIn } from "./schema.ts";
import { Session } from "./session.ts";

export interface Team {
  readonly address: string;
  readonly env: Environment;
  readonly actor: Actor;
}

/** @param isMade the tables are there, or the connection is refused */
function partsOf({ address: text, env, actor }: Team, isMade: boolean) {
  const address = readAddress(text, { env });
  const tables = tablesIn(address.schema);
  const session = new Session({
    address,
    user: actor.user,
    check: async (query, server) => {
      assertUsable(server);
      if (isMade) await checkTables(query, tables);
    },
  });
  return { session, tables, actor, shown: address.shown };
}

/** @throws Failure `usage` if the address cannot be used */
export function openTeamStore({ requestMs, leaseMs, ...team }: Team & Pick<PostgresParts, "requestMs" | "leaseMs">) {
  return new PostgresStore({ ...partsOf(team, true), requestMs, leaseMs });
}

/** Makes the tables, or finds them there. @returns their version, and whether they were made now */
export async function initTeamJournal(team: Team): Promise<{ version: number; made: boolean }> {
  const { session, tables, shown } = partsOf(team, false);
  try {
    return await session.transaction((query) => makeTables(query, tables));
  } catch (error) {
    throw journalFailure(error, shown);
  } finally {
    session.close();
  }
}
