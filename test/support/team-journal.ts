// Keeps the journals of homes in PostgreSQL, each in its own schema on one server.

export const teamKey = "a-key-of-a-team-in-the-tests-0123456789";

let server: TeamServer | undefined;
let made = 0;

export interface TeamServer {
  readonly address: string;
  readonly password: string;
}

/** Applies to every new home of this process. Without a server, journals are in files. */
export function keepJournalsIn(team: TeamServer | undefined): void {
  server = team;
}

/** The environment variables of a new journal without tables, or undefined if journals are in files. */
export function teamJournal(): Readonly<Record<string, string>> | undefined {
  if (server === undefined) return undefined;
  const schema = `home_${process.pid}_${(made += 1)}`;
  return {
    INTEG_JOURNAL: `${server.address}?options=-csearch_path%3D${schema}`,
    INTEG_JOURNAL_KEY: teamKey,
    PGPASSWORD: server.password,
  };
}
