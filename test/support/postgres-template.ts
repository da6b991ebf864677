// A run initializes the data of its PostgreSQL servers only once (postgres.ts), because that takes longer than most tests.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { databasesFolder } from "./databases-folder.ts";

/** Runs before the first test, and before any setup that starts a server. @returns a function to run after the last test */
export default function keepTemplate(): (() => void) | undefined {
  if (process.env.INTEG_TEST_POSTGRES !== undefined) return undefined;
  const folder = mkdtempSync(join(databasesFolder(), "integ-pg-template-"));
  chmodSync(folder, 0o755);
  process.env.INTEG_TEST_POSTGRES = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
