// With INTEG_TEST_ENGINE=postgres every home has its journal in PostgreSQL: one server for the run, one schema for each home.
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

/** Set by `postgres-engine.ts`, which starts the server before the first test. */
const { INTEG_TEST_TEAM_ADDRESS: address, INTEG_TEST_TEAM_PASSWORD: password = "" } = process.env;

/** Says aloud what is only so with a journal in a file. @returns whether to skip it */
export function isOnlyInFile(what: string): boolean {
  if (address !== undefined) console.warn(`skipped with INTEG_TEST_ENGINE=postgres: ${what}`);
  return address !== undefined;
}

let made = 0;

/** The variables of a new journal; none where journals are in files. */
export function teamJournal(): Readonly<Record<string, string>> {
  if (address === undefined) return {};
  const schema = `home_${process.pid}_${(made += 1)}`;
  const journal = { INTEG_JOURNAL: `${address}?options=-csearch_path%3D${schema}`, PGPASSWORD: password };
  const integ = resolve(import.meta.dirname, "../../bin/integ.js");
  execFileSync(process.execPath, [integ, "journal", "init"], {
    env: { ...journal, HOME: "/nonexistent" },
    stdio: "pipe",
  });
  return journal;
}
