// Starts the one PostgreSQL of a run with INTEG_TEST_ENGINE=postgres.
import { isWithoutPostgres, PostgresServer, role } from "./postgres.ts";

export default async function startEngine(): Promise<(() => Promise<void>) | undefined> {
  const { INTEG_TEST_ENGINE: engine } = process.env;
  if (engine === undefined || engine === "file") return undefined;
  if (engine !== "postgres") throw new Error(`INTEG_TEST_ENGINE is "file" or "postgres", not ${engine}`);
  if (isWithoutPostgres("INTEG_TEST_ENGINE=postgres")) throw new Error("INTEG_TEST_ENGINE=postgres needs PostgreSQL.");
  const server = await PostgresServer.start();
  process.env.INTEG_TEST_TEAM_ADDRESS = server.address();
  process.env.INTEG_TEST_TEAM_PASSWORD = role.password;
  return () => server.remove();
}
