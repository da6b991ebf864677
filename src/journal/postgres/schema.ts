// Creates the tables of a team's journal, and checks their version on each connection.
import { Failure } from "../../errors.ts";
import type { NextStep } from "../../next-step.ts";
import type { Actor } from "../actor.ts";
import { nothingSent } from "../store.ts";
import type { Server } from "./connect.ts";
import { initCommand, serverErrorOf } from "./failures.ts";
import type { Query, Session } from "./session.ts";

const schemaVersion = 3;

/** The arbitrary number of the lock that serializes the creation of tables. */
const initLock = 4_927_301_658;

export interface PostgresParts {
  readonly session: Session;
  readonly tables: Tables;
  readonly actor: Actor;
  readonly shown: string;
  readonly leaseMs: number;
  readonly requestMs: number;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The table names include their schema, so that the search path does not matter. */
export function tablesIn(schema: string) {
  const table = (name: string): string => `${quoted(schema)}.integ_${name}`;
  return {
    schema,
    meta: table("meta"),
    entries: table("entries"),
    records: table("records"),
    escrow: table("escrow"),
  };
}

export type Tables = ReturnType<typeof tablesIn>;

/** `entries` has one row per entry, with the newest record and the lease; `records` has every record. */
function statementsOf({ meta, entries, records, escrow }: Tables): string[] {
  return [
    `CREATE TABLE ${meta} (key text PRIMARY KEY, value text NOT NULL)`,
    `CREATE TABLE ${entries} (
       id text COLLATE "C" PRIMARY KEY,
       about text[] NOT NULL,
       actors text[] NOT NULL,
       is_settled boolean NOT NULL,
       key text UNIQUE,
       updated_at text COLLATE "C" NOT NULL,
       content text NOT NULL,
       n integer NOT NULL,
       epoch bigint NOT NULL DEFAULT 0,
       holder text,
       held_since timestamptz,
       lease_until timestamptz,
       quiet_until timestamptz
     )`,
    `CREATE INDEX integ_entries_unsettled ON ${entries} (id) WHERE NOT is_settled`,
    `CREATE INDEX integ_entries_updated ON ${entries} (updated_at)`,
    `CREATE INDEX integ_entries_held ON ${entries} (lease_until) WHERE lease_until IS NOT NULL`,
    `CREATE INDEX integ_entries_about ON ${entries} USING gin (about)`,
    `CREATE TABLE ${records} (
       entry text COLLATE "C" NOT NULL,
       n integer NOT NULL,
       epoch bigint NOT NULL,
       content text NOT NULL,
       mac text NOT NULL,
       PRIMARY KEY (entry, n)
     )`,
    `CREATE TABLE ${escrow} (
       entry text COLLATE "C" PRIMARY KEY,
       ciphertext text NOT NULL,
       made_at timestamptz NOT NULL DEFAULT clock_timestamp()
     )`,
    `INSERT INTO ${meta} (key, value) VALUES ('version', '${schemaVersion}')`,
  ];
}

export async function makeTables(query: Query, tables: Tables): Promise<{ version: number; isNew: boolean }> {
  const { schema, ...names } = tables;
  await query("SELECT pg_advisory_xact_lock($1)", [initLock]);
  const all = Object.values(names);
  const rows = await query("SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL", [all]);
  if (rows.length < all.length) {
    // A restored or edited database may lack tables: creating them would hide the loss.
    const missing = rows.map(({ name }) => String(name).split(".").at(-1)).join(", ");
    if (missing !== "")
      throw unusable(`The tables of the journal in the schema ${schema} lack ${missing}`, {
        hint: "Restore them from a backup, or use another schema.",
      });
    await checkTables(query, tables);
    return { version: schemaVersion, isNew: false };
  }
  const [found] = await query("SELECT to_regnamespace($1) IS NOT NULL AS is_there", [quoted(schema)]);
  // `CREATE SCHEMA IF NOT EXISTS` would need CREATE on the database even for an existing schema.
  if (found?.is_there !== true) await query(`CREATE SCHEMA ${quoted(schema)}`);
  for (const statement of statementsOf(tables)) await query(statement);
  return { version: schemaVersion, isNew: true };
}

function unusable(what: string, step: NextStep): Failure {
  return new Failure("usage", `${what}.`, { meaning: nothingSent, ...step });
}

export function assertUsable({ encoding }: Server): void {
  if (encoding === "UTF8") return;
  throw unusable(`The database of the journal has the encoding ${encoding}, and UTF8 is needed`, {
    hint: "Create another database: CREATE DATABASE integ ENCODING 'UTF8' TEMPLATE template0.",
  });
}

export async function checkTables(query: Query, { meta, schema }: Tables): Promise<void> {
  const [row] = await query(`SELECT value FROM ${meta} WHERE key = 'version'`).catch((error: unknown) => {
    if (!["42P01", "3F000"].includes(serverErrorOf(error)?.code ?? "")) throw error;
    throw unusable(`The schema ${schema} of this database does not have a journal yet`, { nextCommand: initCommand });
  });
  const version = Number(row?.value ?? Number.NaN);
  if (version === schemaVersion) return;
  const actual = Number.isNaN(version) ? "an unknown version" : `version ${version}`;
  throw unusable(`The team's journal has tables of ${actual}; this integ needs version ${schemaVersion}`, {
    hint:
      version > schemaVersion
        ? "Upgrade integ, then run the command again."
        : "Restore them from a backup, or use another schema.",
  });
}
