// What `journal verify` and `doctor` report of a team's journal: records that do not follow each other, and a server that
// may forget what it acknowledged.
import { entryOfContent } from "../read-entry.ts";
import { brokenStep, historyFinding, readLine, recordHash, seal, type SoundRecord, stepOfContent } from "../record.ts";
import type { Finding } from "../journal.ts";
import { columnsAstray, entryColumns, recordColumns } from "./columns.ts";
import type { LeaseParts } from "./lease.ts";
import type { Row } from "./session.ts";

type VerifyParts = Pick<LeaseParts, "session" | "tables" | "shown">;

export async function verifyTables(parts: VerifyParts): Promise<Finding[]> {
  return [...(await serverFindings(parts)), ...(await recordFindings(parts))];
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

/** Reads all records in the order of their entries, some thousands at a time. */
async function recordFindings({ session, tables }: VerifyParts): Promise<Finding[]> {
  const found: Finding[] = [];
  let after = "";
  for (;;) {
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
    found.push(...findingsOf(entries, records));
    if (until === undefined) return found;
    after = until;
  }
}

function findingsOf(entries: readonly Row[], records: readonly Row[]): Finding[] {
  const byEntry = new Map<string, Row[]>();
  for (const record of records) {
    const id = String(record.entry);
    const there = byEntry.get(id);
    if (there === undefined) byEntry.set(id, [record]);
    else there.push(record);
  }
  const found = entries.flatMap((entry) => {
    const own = byEntry.get(String(entry.id)) ?? [];
    byEntry.delete(String(entry.id));
    return entryFindings(entry, own);
  });
  for (const id of byEntry.keys())
    found.push({ severity: "problem", where: `entry ${id}`, message: "it has records, and was removed itself" });
  return found;
}

function entryFindings(entry: Row, records: readonly Row[]): Finding[] {
  const id = String(entry.id);
  const contents = records.map(({ content }) => String(content));
  const unsound = contents.findIndex((content, index) => !isOf(content, { id, hash: records[index]?.hash }));
  const isWhole = records.every(({ position }, index) => position === index + 1) && records.length === entry.position;
  const problem = (message: string): Finding[] => [{ severity: "problem", where: `entry ${id}`, message }];
  if (unsound >= 0) return problem(`its record ${unsound + 1} was edited since it was written`);
  if (!isWhole) return problem("a record of it was removed or put elsewhere since it was written");
  if (entry.content !== contents.at(-1)) return problem("it does not stand as its newest record says: it was edited");
  const astray = columnFindings(entry, records);
  if (astray !== undefined) return problem(`${astray}: it was edited`);
  const read = contents.map(recordOf).filter((record) => record?.kind === "entry");
  const isOther = entry.hash !== recordHash(contents.at(-1) ?? "");
  const broken = brokenStep(read) ?? (isOther || read.length < contents.length ? contents.length : undefined);
  return broken === undefined ? [] : [historyFinding(id, broken, false)];
}

/** What lists and admissions look for entries by: an entry whose columns say another thing would be hidden from them. */
function columnFindings(entry: Row, records: readonly Row[]): string | undefined {
  const newest = entryOfContent(String(entry.content));
  const names = newest === undefined ? [] : columnsAstray(entry, entryColumns(newest));
  if (names.length > 0) return `its newest record says something else than its ${columnWords(names)}`;
  for (const [index, record] of records.entries()) {
    const wrong = columnsAstray(record, recordColumns(stepOfContent(String(record.content)).actor));
    if (wrong.length > 0) return `its record ${index + 1} says something else than the ${columnWords(wrong)} beside it`;
  }
  return undefined;
}

function columnWords(names: readonly string[]): string {
  return `${names.length === 1 ? "column" : "columns"} ${names.join(", ")}`;
}

function isOf(content: string, { id, hash }: { readonly id: string; readonly hash: unknown }): boolean {
  try {
    return recordHash(content) === hash && entryOfContent(content)?.id === id;
  } catch {
    return false;
  }
}

function recordOf(content: string): SoundRecord | undefined {
  const bytes = Buffer.from(seal(content).trimEnd());
  return readLine({ bytes, start: 0, end: bytes.length });
}
