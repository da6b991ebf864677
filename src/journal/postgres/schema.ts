// The tables of a team's journal: their version, how they are made or brought to it, and the check before each use.
import { Failure } from "../../errors.ts";
import type { Server } from "./connect.ts";
import { initCommand, serverErrorOf } from "./failures.ts";
import type { Actor } from "../actor.ts";
import type { Query, Session } from "./session.ts";

/** The version of the tables that this program reads and writes. */
const schemaVersion = 2;

/** Any number that no one else is likely to lock: of the making of tables, in each database. */
const initLock = 4_927_301_658;

export interface Tables {
  readonly schema: string;
  readonly meta: string;
  readonly entries: string;
  readonly records: string;
  readonly escrow: string;
}

/** What every lease of one journal works with. */
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
export function tablesIn(schema: string): Tables {
  const named = (name: string): string => `${quoted(schema)}.${name}`;
  return {
    schema,
    meta: named("integ_meta"),
    entries: named("integ_entries"),
    records: named("integ_records"),
    escrow: named("integ_escrow"),
  };
}

/** `entries` as they are, with the lease of each; `records` as they came, appended to and never changed. */
function statementsOf({ meta, entries, records, escrow }: Tables): string[] {
  return [
    `CREATE TABLE ${meta} (key text PRIMARY KEY, value text NOT NULL)`,
    `CREATE TABLE ${entries} (
       id text COLLATE "C" PRIMARY KEY,
       operation text NOT NULL,
       state text NOT NULL,
       is_settled boolean NOT NULL,
       profile text NOT NULL,
       base_url text NOT NULL,
       idempotency_key text,
       fingerprint text NOT NULL,
       parent text,
       replaces text,
       resources text[] NOT NULL,
       updated_at text COLLATE "C" NOT NULL,
       content text NOT NULL,
       hash text NOT NULL,
       position integer NOT NULL,
       epoch bigint NOT NULL DEFAULT 0,
       holder text,
       held_since timestamptz,
       lease_until timestamptz,
       quiet_until timestamptz
     )`,
    `CREATE UNIQUE INDEX integ_entries_key ON ${entries} (base_url, idempotency_key) WHERE idempotency_key IS NOT NULL`,
    `CREATE INDEX integ_entries_unsettled ON ${entries} (id) WHERE NOT is_settled`,
    `CREATE INDEX integ_entries_fingerprint ON ${entries} (fingerprint) WHERE NOT is_settled`,
    `CREATE INDEX integ_entries_updated ON ${entries} (updated_at)`,
    `CREATE INDEX integ_entries_parent ON ${entries} (parent) WHERE parent IS NOT NULL`,
    `CREATE INDEX integ_entries_replaces ON ${entries} (replaces) WHERE replaces IS NOT NULL`,
    `CREATE INDEX integ_entries_held ON ${entries} (lease_until) WHERE lease_until IS NOT NULL`,
    `CREATE INDEX integ_entries_resources ON ${entries} USING gin (resources)`,
    `CREATE TABLE ${records} (
       entry text COLLATE "C" NOT NULL,
       position integer NOT NULL,
       epoch bigint NOT NULL,
       content text NOT NULL,
       hash text NOT NULL,
       mac text NOT NULL,
       actor_user text,
       actor_host text,
       actor_run text,
       PRIMARY KEY (entry, position)
     )`,
    `CREATE TABLE ${escrow} (
       entry text COLLATE "C" PRIMARY KEY,
       ciphertext text NOT NULL,
       made_at timestamptz NOT NULL DEFAULT clock_timestamp()
     )`,
    `INSERT INTO ${meta} (key, value) VALUES ('version', '${schemaVersion}')`,
  ];
}

async function versionOf(query: Query, { meta }: Tables): Promise<number | undefined> {
  const [there] = await query("SELECT to_regclass($1) IS NOT NULL AS is_there", [meta]);
  if (there?.is_there !== true) return undefined;
  const [row] = await query(`SELECT value FROM ${meta} WHERE key = 'version'`);
  return Number(row?.value);
}

/** Makes the tables, or finds them there; of several that do so at the same time one makes them. @returns whether it was this one */
export async function makeTables(query: Query, tables: Tables): Promise<{ version: number; made: boolean }> {
  await query("SELECT pg_advisory_xact_lock($1)", [initLock]);
  const version = await versionOf(query, tables);
  if (version !== undefined) {
    await assertWhole(query, tables, version);
    return { version, made: false };
  }
  const [found] = await query("SELECT to_regnamespace($1) IS NOT NULL AS is_there", [quoted(tables.schema)]);
  // Only then: a role may create tables in a schema of its own and no schema in the database.
  if (found?.is_there !== true) await query(`CREATE SCHEMA ${quoted(tables.schema)}`);
  for (const statement of statementsOf(tables)) await query(statement);
  return { version: schemaVersion, made: true };
}

/** Where a restored or edited database has only some of them, to make the others again would hide what is lost. */
async function assertWhole(query: Query, { schema, ...tables }: Tables, version: number): Promise<void> {
  if (version > schemaVersion) assertVersion(version);
  const rows = await query("SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL", [
    Object.values(tables),
  ]);
  const missing = rows.map(({ name }) => String(name).split(".").at(-1));
  const what = [
    ...(version === schemaVersion ? [] : [`integ_meta does not name the version ${schemaVersion}`]),
    ...(missing.length === 0 ? [] : [`${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`]),
  ];
  if (what.length === 0) return;
  throw new Failure("usage", `The tables of the journal in the schema ${schema} are not whole: ${what.join("; ")}.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Restore them from a backup, or use another schema.",
  });
}

function assertVersion(version: number): void {
  if (version === schemaVersion) return;
  const isNewer = version > schemaVersion;
  throw new Failure(
    "usage",
    `The team's journal has tables of ${Number.isNaN(version) ? "an unknown version" : `version ${version}`}; this integ needs version ${schemaVersion}.`,
    {
      meaning: "Nothing was sent and nothing changed.",
      ...(isNewer ? { hint: "Upgrade integ, then run the command again." } : { nextCommand: initCommand }),
    },
  );
}

export function assertUsable({ encoding }: Server): void {
  if (encoding === "UTF8") return;
  throw new Failure("usage", `The database of the journal has the encoding ${encoding}, and UTF8 is needed.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Create another database: CREATE DATABASE integ ENCODING 'UTF8' TEMPLATE template0.",
  });
}

/**
 * Asked before anything else of a connection.
 * @throws Failure `usage` if the tables are missing, older or newer, or if the entries were moved elsewhere
 */
export async function checkTables(query: Query, tables: Tables): Promise<void> {
  const rows = await query(`SELECT key, value FROM ${tables.meta}`).catch((error: unknown) => {
    if (serverErrorOf(error)?.code !== "42P01" && serverErrorOf(error)?.code !== "3F000") throw error;
    throw new Failure("usage", `The schema ${tables.schema} of this database does not have a journal yet.`, {
      meaning: "Nothing was sent and nothing changed.",
      nextCommand: initCommand,
    });
  });
  const value = (key: string): string | undefined => rows.find((row) => row.key === key)?.value as string | undefined;
  assertVersion(Number(value("version")));
}
