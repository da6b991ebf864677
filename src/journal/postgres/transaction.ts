// A change of many entries in a team's journal: one transaction, under the lock of the table.
import { type Entry, type Moved } from "../entry.ts";
import { entryIn, type Signed, stepIn } from "../record.ts";
import type { NewRecord, Transaction } from "../store.ts";
import { entryColumns, recordColumns } from "./columns.ts";
import type { Tables } from "./schema.ts";
import type { Query, Row } from "./session.ts";

/**
 * Condition of every statement that begins something: that the entries are still here. It is asked again once the statement
 * has the table's lock, so that what waited for a move's mark sees it.
 */
export function isHere({ meta }: Tables): string {
  return `NOT EXISTS (SELECT FROM ${meta} WHERE key = 'moved_to')`;
}

/** Where the entries are now, if that is not here. */
export async function markIn(query: Query, { meta }: Tables): Promise<Moved | undefined> {
  const rows = await query(`SELECT key, value FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`);
  const to = rows.find(({ key }) => key === "moved_to");
  return to && { to: String(to.value), isUnfinished: rows.length > 1 };
}

export class TableTransaction implements Transaction {
  readonly moved: Moved | undefined;
  readonly #query: Query;
  readonly #tables: Tables;

  constructor(query: Query, tables: Tables, moved: Moved | undefined) {
    this.#query = query;
    this.#tables = tables;
    this.moved = moved;
  }

  async mark(moved: Moved | undefined): Promise<void> {
    const { meta, entries } = this.#tables;
    await this.#query(`DELETE FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`);
    if (moved === undefined) return;
    // A holder that stood still past its lease would still record here: its epoch is over.
    await this.#query(
      `UPDATE ${entries} SET epoch = epoch + 1, quiet_until = greatest(quiet_until, lease_until), holder = NULL,
         held_since = NULL, lease_until = NULL WHERE lease_until IS NOT NULL`,
    );
    await this.#query(`INSERT INTO ${meta} (key, value) VALUES ('moved_to', $1)`, [moved.to]);
    if (moved.isUnfinished) await this.#query(`INSERT INTO ${meta} (key, value) VALUES ('is_unfinished', 'true')`);
  }

  async hashes(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const rows = await this.#query(
      `SELECT entry, array_agg(hash ORDER BY position) AS hashes FROM ${this.#tables.records} WHERE entry = ANY($1) GROUP BY entry`,
      [ids],
    );
    return new Map(rows.map((row) => [String(row.entry), row.hashes as string[]]));
  }

  async ofKeys(keys: readonly string[]): Promise<readonly Pick<Entry, "id" | "base_url" | "idempotency_key">[]> {
    const text = `SELECT id, base_url, idempotency_key FROM ${this.#tables.entries} WHERE idempotency_key = ANY($1)`;
    const rows = await this.#query(text, [keys]);
    return rows.map((row) => ({
      id: String(row.id),
      base_url: String(row.base_url),
      idempotency_key: String(row.idempotency_key),
    }));
  }

  async held(): Promise<ReadonlySet<string>> {
    const text = `SELECT id FROM ${this.#tables.entries} WHERE lease_until > clock_timestamp()`;
    return new Set((await this.#query(text)).map(({ id }) => String(id)));
  }

  async entries(): Promise<readonly Entry[]> {
    const rows = await this.#query(`SELECT content FROM ${this.#tables.entries} ORDER BY id DESC`);
    return rows.flatMap((row) => entryIn(String(row.content)) ?? []);
  }

  async append(records: readonly NewRecord[]): Promise<void> {
    const { entries, records: table } = this.#tables;
    const newest = new Map(records.map((record) => [record.entry.id, record]));
    const rows = [...newest.values()].map(({ entry, content, hash }) => ({
      id: entry.id,
      ...entryColumns(entry),
      content,
      hash,
      position: entry.sequence,
    }));
    const updated = ["state", "is_settled", "resources", "updated_at", "content", "hash", "position"];
    await this.#insert(
      `${entries} (${entryColumnNames})`,
      `SELECT ${entryColumnNames} FROM json_populate_recordset(NULL::${entries}, $1::json)
       ON CONFLICT (id) DO UPDATE SET ${updated.map((name) => `${name} = excluded.${name}`).join(", ")},
         epoch = integ_entries.epoch + 1`,
      rows,
    );
    await this.#insert(
      table,
      `SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`,
      records.map(({ entry, content, hash, mac }) => ({
        entry: entry.id,
        position: entry.sequence,
        epoch: 0,
        content,
        hash,
        mac,
        ...recordColumns(stepIn(content).actor),
      })),
    );
  }

  #insert(into: string, picked: string, rows: readonly Row[]): Promise<readonly Row[]> {
    return this.#query(`INSERT INTO ${into} ${picked}`, [JSON.stringify(rows)]);
  }

  async sign(id: string, records: readonly Signed[]): Promise<void> {
    await this.#query(
      `UPDATE ${this.#tables.records} SET mac = come.mac FROM unnest($2::text[], $3::text[]) AS come (content, mac)
       WHERE entry = $1 AND ${this.#tables.records}.content = come.content`,
      [id, records.map(({ content }) => content), records.map(({ mac }) => mac)],
    );
  }

  async remove(ids: ReadonlySet<string>): Promise<void> {
    if (ids.size === 0) return;
    const { records, escrow, entries } = this.#tables;
    for (const [table, column] of [
      [records, "entry"],
      [escrow, "entry"],
      [entries, "id"],
    ])
      await this.#query(`DELETE FROM ${table} WHERE ${column} = ANY($1)`, [[...ids]]);
  }
}

const entryColumnNames =
  "id, operation, state, is_settled, profile, base_url, idempotency_key, fingerprint, parent, replaces, resources, updated_at, content, hash, position";
