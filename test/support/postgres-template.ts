// A folder for what the PostgreSQL servers of a run begin as: to initialize one takes longer than most tests. The first that
// starts one makes it (postgres.ts), whatever process it is in.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { databasesFolder } from "./databases-folder.ts";

/**
 * Before the first test. A project whose own setup starts a server names this too: the order of setups follows the files.
 * @returns what is done after the last
 */
export default function keepTemplate(): (() => void) | undefined {
  if (process.env.INTEG_TEST_POSTGRES !== undefined) return undefined;
  const folder = mkdtempSync(join(databasesFolder(), "integ-pg-template-"));
  chmodSync(folder, 0o755);
  process.env.INTEG_TEST_POSTGRES = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
