// What `journal verify` and `doctor` report of a team's journal alone: columns that do not fit their records, and a server that
// may forget what it acknowledged.
import { entryIn, type Finding, recordHash, stepIn } from "../record.ts";
import { columnsAstray, entryColumns, recordColumns } from "./columns.ts";
import type { PostgresParts } from "./schema.ts";
import type { Row } from "./session.ts";

type VerifyParts = Pick<PostgresParts, "session" | "tables" | "shown">;

export async function verifyTables(parts: VerifyParts): Promise<Finding[]> {
  return [...(await serverFindings(parts)), ...(await tableFindings(parts))];
}

/** What a failure of the server would cost. */
export async function serverFindings({ session, tables, shown }: VerifyParts): Promise<Finding[]> {
  const server = await session.server();
  const [row = {}] = await session.read(
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
            current_setting('synchronous_standby_names') AS standbys, current_setting('full_page_writes') AS pages,
            (SELECT count(*)::int FROM pg_stat_replication) AS replicas, current_user AS role,
            has_table_privilege($1, 'INSERT') AND has_table_privilege($1, 'UPDATE')
              AND has_table_privilege($2, 'INSERT') AS may_record,
            to_regclass($3) IS NULL AS is_escrow_missing,
            has_table_privilege(to_regclass($3), 'SELECT') AND has_table_privilege(to_regclass($3), 'INSERT')
              AND has_table_privilege(to_regclass($3), 'UPDATE') AND has_table_privilege(to_regclass($3), 'DELETE') AS may_keep`,
    [tables.entries, tables.records, tables.escrow],
  );
  const found: Finding[] = [];
  const add = (severity: Finding["severity"], message: string): void =>
    void found.push({ severity, where: shown, message });
  if (row.fsync === "off")
    add("problem", "fsync is off: a crash of the server's machine can lose or damage what was committed; turn it on");
  if (row.pages === "off")
    add("warning", "full_page_writes is off: a crash of the server's machine can damage the tables; turn it on");
  if (server.isStandby) add("problem", "the server is a standby: it is read-only; connect to the primary");
  else if (server.isReadOnly)
    add("problem", "the server is read-only (default_transaction_read_only): no change can be recorded");
  if (row.may_record === false)
    add("warning", `the role ${String(row.role)} may not record changes: it needs INSERT and UPDATE on the tables`);
  // Each change looks there first, whether it has something encrypted or not.
  if (row.is_escrow_missing === true)
    add("problem", "the table integ_escrow is missing: no change can be recorded; restore it from a backup");
  if (row.may_keep === false)
    add(
      "warning",
      `the role ${String(row.role)} may not keep encrypted secrets: it needs SELECT, INSERT, UPDATE and DELETE on integ_escrow`,
    );
  if (row.commits !== "on" && row.commits !== "remote_apply")
    add(
      "warning",
      `synchronous_commit is ${String(row.commits)} for this role or server; integ sets it to on in each of its transactions`,
    );
  if (Number(row.replicas) > 0 && row.standbys === "")
    add(
      "warning",
      "its replicas are asynchronous: a failover can lose the newest records; set synchronous_standby_names",
    );
  return found;
}

const atOnce = 5000;

/** Compares the columns of both tables with the records, some thousands of entries at a time. */
async function tableFindings({ session, tables }: VerifyParts): Promise<Finding[]> {
  const found: Finding[] = [];
  for (let after = ""; ; ) {
    const entries = await session.read(`SELECT * FROM ${tables.entries} WHERE id > $1 ORDER BY id LIMIT ${atOnce}`, [
      after,
    ]);
    const last = entries.at(-1);
    const until = last === undefined || entries.length < atOnce ? undefined : String(last.id);
    const records = await session.read(
      `SELECT * FROM ${tables.records} WHERE entry > $1 AND ($2::text IS NULL OR entry <= $2)
       ORDER BY entry, position`,
      [after, until ?? null],
    );
    const byEntry = new Map<string, Row[]>(entries.map(({ id }) => [String(id), []]));
    for (const record of records) {
      const id = String(record.entry);
      const own = byEntry.get(id) ?? [];
      byEntry.set(id, own);
      own.push(record);
    }
    const rows = new Map(entries.map((entry) => [String(entry.id), entry]));
    for (const [id, own] of byEntry) {
      const message = entryFinding(rows.get(id), own);
      if (message !== undefined) found.push({ severity: "problem", where: `entry ${id}`, message });
    }
    if (until === undefined) return found;
    after = until;
  }
}

/** What lists and admissions look for entries by: an entry whose columns say another thing would be hidden from them. */
function entryFinding(entry: Row | undefined, records: readonly Row[]): string | undefined {
  if (entry === undefined) return "it has records, and was removed itself";
  const unsound = records.findIndex(({ content, hash }) => recordHash(String(content)) !== hash);
  if (unsound >= 0) return `its record ${unsound + 1} was edited since it was written`;
  const isWhole = records.every(({ position }, index) => position === index + 1) && records.length === entry.position;
  if (!isWhole) return "a record of it was removed or put elsewhere since it was written";
  const last = records.at(-1);
  if (entry.content !== last?.content || entry.hash !== last?.hash)
    return "it does not stand as its newest record says: it was edited";
  const newest = entryIn(String(entry.content));
  const names = newest === undefined ? [] : columnsAstray(entry, entryColumns(newest));
  if (names.length > 0) return `its newest record says something else than its ${columnWords(names)}: it was edited`;
  for (const [index, record] of records.entries()) {
    const wrong = columnsAstray(record, recordColumns(stepIn(String(record.content)).actor));
    if (wrong.length > 0)
      return `its record ${index + 1} says something else than the ${columnWords(wrong)} beside it: it was edited`;
  }
  return undefined;
}

function columnWords(names: readonly string[]): string {
  return `${names.length === 1 ? "column" : "columns"} ${names.join(", ")}`;
}
