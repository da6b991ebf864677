// Lists settings and permissions of the server that may lose records or prevent changes, for `journal verify` and
// `doctor`.
import type { Finding } from "../record.ts";
import type { PostgresParts } from "./schema.ts";

type VerifyParts = Pick<PostgresParts, "session" | "tables" | "shown">;

export async function serverFindings({ session, tables, shown }: VerifyParts): Promise<Finding[]> {
  const [row = {}] = await session.read(
    `SELECT current_setting('transaction_read_only') = 'on' AS read_only, pg_is_in_recovery() AS standby,
            current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
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
  if (row.standby === true) add("problem", "the server is a standby: it is read-only; connect to the primary");
  else if (row.read_only === true)
    add("problem", "the server is read-only (default_transaction_read_only): no change can be recorded");
  if (row.may_record === false)
    add("warning", `the role ${String(row.role)} may not record changes: it needs INSERT and UPDATE on the tables`);
  // Every change queries this table.
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
