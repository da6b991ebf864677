// The tables of a team's journal: their version, how they are made, and the check before each use.
import { Failure } from "../../errors.ts";
import type { NextStep } from "../../next-step.ts";
import type { Actor } from "../actor.ts";
import { nothingSent } from "../store.ts";
import type { Server } from "./connect.ts";
import { initCommand, serverErrorOf } from "./failures.ts";
import type { Query, Session } from "./session.ts";

/** The version of the tables that this program reads and writes. */
const schemaVersion = 3;

/** Any number that no one else is likely to lock: of the making of tables, in each database. */
const initLock = 4_927_301_658;

export interface PostgresParts {
  readonly session: Session;
  readonly tables: Tables;
  readonly actor: Actor;
  /** The address without its password. */
  readonly shown: string;
  /** How long a lease lasts after it was taken or extended. */
  readonly leaseMs: number;
  /** How long one request may take. */
  readonly requestMs: number;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The tables by their whole names: no search path decides which they are. */
export function tablesIn(schema: string) {
  const named = (name: string): string => `${quoted(schema)}.integ_${name}`;
  return {
    schema,
    meta: named("meta"),
    entries: named("entries"),
    records: named("records"),
    escrow: named("escrow"),
  };
}

export type Tables = ReturnType<typeof tablesIn>;

/** `entries` as they are, with the lease of each; `records` as they came, appended to and never changed. */
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

/** Makes the tables, or finds them there; of several that do so at the same time one makes them. @returns whether it was this one */
export async function makeTables(query: Query, tables: Tables): Promise<{ version: number; made: boolean }> {
  const { schema, ...names } = tables;
  await query("SELECT pg_advisory_xact_lock($1)", [initLock]);
  const all = Object.values(names);
  const rows = await query("SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL", [all]);
  if (rows.length < all.length) {
    // Where a restored or edited database has only some of them, to make the others again would hide what is lost.
    const missing = rows.map(({ name }) => String(name).split(".").at(-1)).join(", ");
    if (missing !== "")
      throw unusable(`The tables of the journal in the schema ${schema} lack ${missing}`, {
        hint: "Restore them from a backup, or use another schema.",
      });
    await checkTables(query, tables);
    return { version: schemaVersion, made: false };
  }
  const [found] = await query("SELECT to_regnamespace($1) IS NOT NULL AS is_there", [quoted(schema)]);
  // Only then: a role may create tables in a schema of its own and no schema in the database.
  if (found?.is_there !== true) await query(`CREATE SCHEMA ${quoted(schema)}`);
  for (const statement of statementsOf(tables)) await query(statement);
  return { version: schemaVersion, made: true };
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

/** Asked before anything else of a connection. @throws Failure `usage` if the tables are missing, or of another version */
export async function checkTables(query: Query, { meta, schema }: Tables): Promise<void> {
  const [row] = await query(`SELECT value FROM ${meta} WHERE key = 'version'`).catch((error: unknown) => {
    if (!["42P01", "3F000"].includes(serverErrorOf(error)?.code ?? "")) throw error;
    throw unusable(`The schema ${schema} of this database does not have a journal yet`, { nextCommand: initCommand });
  });
  const version = Number(row?.value ?? Number.NaN);
  if (version === schemaVersion) return;
  const is = Number.isNaN(version) ? "an unknown version" : `version ${version}`;
  throw unusable(`The team's journal has tables of ${is}; this integ needs version ${schemaVersion}`, {
    hint:
      version > schemaVersion
        ? "Upgrade integ, then run the command again."
        : "Restore them from a backup, or use another schema.",
  });
}
