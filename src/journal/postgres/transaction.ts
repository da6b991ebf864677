// Changes many entries of a team's journal in one transaction. The caller locks the table before a change.
import type { Entry, MoveMark } from "../entry.ts";
import { entryIn, type EntryRecords, type Signed } from "../record.ts";
import type { NewRecord, Transaction } from "../store.ts";
import { endLease } from "./lease.ts";
import { allColumns, editedWords, entriesIn, rowChanges, rowOf } from "./rows.ts";
import type { Tables } from "./schema.ts";
import type { Query, Row } from "./session.ts";

/**
 * A condition for every statement that starts work: the entries were not moved. A statement that waits for the table's
 * lock evaluates the condition after the wait.
 */
export function isHere({ meta }: Tables): string {
  return `NOT EXISTS (SELECT FROM ${meta} WHERE key = 'moved_to')`;
}

export async function markIn(query: Query, { meta }: Tables): Promise<MoveMark | undefined> {
  const rows = await query(`SELECT key, value FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`);
  const to = rows.find(({ key }) => key === "moved_to");
  return to && { to: String(to.value), isUnfinished: rows.length > 1 };
}

/** @param rows one for each record; rows of one entry are adjacent and sorted by step */
export function recordsIn(rows: readonly Row[]): (EntryRecords & { readonly numbers: readonly number[] })[] {
  const found: { id: string; records: Signed[]; numbers: number[]; mismatch?: string | undefined }[] = [];
  for (const { entry, n, content, mac, is_newest: isNewest } of rows) {
    if (found.at(-1)?.id !== entry) found.push({ id: String(entry), records: [], numbers: [] });
    const last = found.at(-1)!;
    last.records.push({ content: String(content), mac: String(mac) });
    last.numbers.push(Number(n));
    last.mismatch = isNewest === true ? undefined : editedWords;
  }
  return found;
}

export const recordsText = ({ records, entries }: Tables): string =>
  `SELECT entry, record.n, record.content, mac, record.content = row.content AS is_newest
   FROM ${records} AS record LEFT JOIN ${entries} AS row ON row.id = entry WHERE entry = ANY($1) ORDER BY entry, n`;

export class TableTransaction implements Transaction {
  readonly moved: MoveMark | undefined;
  readonly #query: Query;
  readonly #tables: Tables;

  constructor(query: Query, tables: Tables, moved: MoveMark | undefined) {
    this.#query = query;
    this.#tables = tables;
    this.moved = moved;
  }

  async mark(moved: MoveMark | undefined): Promise<void> {
    const { meta, entries } = this.#tables;
    await this.#query(`DELETE FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`);
    if (moved === undefined) return;
    // With a higher epoch, a suspended holder cannot record a step later.
    await this.#query(`UPDATE ${entries} SET ${endLease} WHERE lease_until IS NOT NULL`);
    await this.#query(`INSERT INTO ${meta} (key, value) VALUES ('moved_to', $1)`, [moved.to]);
    if (moved.isUnfinished) await this.#query(`INSERT INTO ${meta} (key, value) VALUES ('is_unfinished', 'true')`);
  }

  async records(ids: readonly string[]): Promise<readonly EntryRecords[]> {
    return recordsIn(await this.#query(recordsText(this.#tables), [ids]));
  }

  async ofKeys(keys: readonly string[]): Promise<readonly Entry[]> {
    return entriesIn(await this.#query(`SELECT content FROM ${this.#tables.entries} WHERE key = ANY($1)`, [keys]));
  }

  async leased(): Promise<ReadonlySet<string>> {
    const text = `SELECT id FROM ${this.#tables.entries} WHERE lease_until > clock_timestamp()`;
    return new Set((await this.#query(text)).map(({ id }) => String(id)));
  }

  async entries(): Promise<readonly Entry[]> {
    return entriesIn(await this.#query(`SELECT content FROM ${this.#tables.entries} ORDER BY id DESC`));
  }

  async append(records: readonly NewRecord[]): Promise<void> {
    const { entries, records: table } = this.#tables;
    const newest = new Map(records.map((record) => [record.entry.id, record]));
    const recordsOf = ({ entry: { id } }: NewRecord): NewRecord[] => records.filter(({ entry }) => entry.id === id);
    const changes = [...newest.values()].map((record) => ({ ...rowOf(record, recordsOf(record)), epoch: 0 }));
    await this.#query(
      `INSERT INTO ${entries} SELECT * FROM json_populate_recordset(NULL::${entries}, $1::json)
       ON CONFLICT (id) DO UPDATE SET ${rowChanges}, epoch = integ_entries.epoch + 1`,
      [JSON.stringify(changes)],
    );
    const rows = records.map(({ entry: { id, sequence }, ...rest }) => ({ entry: id, epoch: 0, n: sequence, ...rest }));
    const text = `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`;
    await this.#query(text, [JSON.stringify(rows)]);
  }

  async sign(id: string, records: readonly Signed[]): Promise<void> {
    await this.#query(
      `UPDATE ${this.#tables.records} AS there SET mac = come.mac
       FROM unnest($2::text[], $3::text[]) AS come (content, mac) WHERE entry = $1 AND there.content = come.content`,
      [id, records.map(({ content }) => content), records.map(({ mac }) => mac)],
    );
    const contents = (await this.records([id])).flatMap((one) => one.records.map(({ content }) => content));
    const entry = entryIn(contents.at(-1) ?? "");
    if (entry === undefined) return;
    const steps = contents.map((content) => ({ entry, content, mac: "" }));
    await this.#query(
      `UPDATE ${this.#tables.entries} AS integ_entries SET ${allColumns}
       FROM json_populate_record(NULL::${this.#tables.entries}, $1::json) AS excluded WHERE integ_entries.id = excluded.id`,
      [JSON.stringify(rowOf(steps.at(-1)!, steps))],
    );
  }

  async remove(ids: ReadonlySet<string>): Promise<void> {
    const { records, escrow, entries } = this.#tables;
    for (const place of [`${records} WHERE entry`, `${escrow} WHERE entry`, `${entries} WHERE id`])
      await this.#query(`DELETE FROM ${place} = ANY($1)`, [[...ids]]);
  }
}
