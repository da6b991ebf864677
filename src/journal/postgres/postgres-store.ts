// The journal in PostgreSQL: one for a team. Each statement is a transaction of its own, so that it works through a pooler; what
// changes many entries is one transaction.
import { randomUUID } from "node:crypto";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import { movedAway } from "../admission.ts";
import { type Entry, type Moved } from "../entry.ts";
import type { Condition, EscrowStore, Holder } from "../journal.ts";
import { type EntryFilter, entryNotFound } from "../lookup.ts";
import type { EntryRecords } from "../record.ts";
import { entryIn, type Finding } from "../record.ts";
import {
  type Action,
  Busy,
  type Hold,
  type Looked,
  type NewRecord,
  type Store,
  type Transaction,
  type TransactionOptions,
} from "../store.ts";
import { entryColumns, fingerprintOf, recordColumns } from "./columns.ts";
import { escrowTable } from "./escrow-table.ts";
import { journalFailure, serverErrorOf } from "./failures.ts";
import { describeHolder, holderIn, isHolderGone, leaseColumns, ownHolder } from "./holder.ts";
import { moment, PostgresLease } from "./lease.ts";
import type { PostgresParts } from "./schema.ts";
import { selectionOf } from "./selection.ts";
import { durably, type Query, type Row } from "./session.ts";
import { isHere, TableTransaction, markIn } from "./transaction.ts";

/** Entries of a long list that are read together. */
const pageLength = 1000;
const recordsAtOnce = 500;

export function entriesIn(rows: readonly Row[]): Entry[] {
  return rows.flatMap(({ content }) => entryIn(String(content)) ?? []);
}

function recordsIn(rows: readonly Row[]): EntryRecords[] {
  return rows.map((row) => {
    const [contents, macs] = [row.contents as string[], row.macs as string[]];
    return { id: String(row.entry), records: contents.map((content, at) => ({ content, mac: macs[at] ?? "" })) };
  });
}

/** See `Store`. */
export class PostgresStore implements Store {
  readonly path: string;
  readonly isShared = true;
  readonly escrow: EscrowStore;
  readonly #parts: PostgresParts;

  constructor(parts: PostgresParts) {
    this.path = parts.shown;
    this.escrow = escrowTable(parts);
    this.#parts = parts;
  }

  #read(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#parts.session.read(text, values);
  }

  async *select(filter: EntryFilter): AsyncIterable<Entry> {
    const { limit: _, ...rest } = filter;
    // The server does not know in how many rows so many of an account are.
    const length = filter.account === undefined ? Math.min(filter.limit ?? pageLength, pageLength) : pageLength;
    for (let below: string | undefined; ; ) {
      const { text, values } = selectionOf(rest, this.#parts.tables, { below, limit: length });
      const page = entriesIn(await this.#read(text, values));
      yield* page;
      below = page.at(-1)?.id;
      if (page.length < length) return;
    }
  }

  async count(): Promise<number> {
    const [row] = await this.#read(`SELECT count(*)::float8 AS count FROM ${this.#parts.tables.entries}`);
    return Number(row?.count);
  }

  async beginning(start: string): Promise<readonly Entry[]> {
    if (!/^[0-9a-z]+$/.test(start)) return [];
    // Ids are digits and letters: nothing that begins so comes after a brace.
    const text = `SELECT content FROM ${this.#parts.tables.entries} WHERE id >= $1 AND id < $1 || '{' ORDER BY id DESC LIMIT 1000`;
    return entriesIn(await this.#read(text, [start]));
  }

  async recordsOf(ids: readonly string[]): Promise<readonly EntryRecords[]> {
    return recordsIn(await this.#read(this.#gathered("entry = ANY($1)"), [ids]));
  }

  /** The records of some entries, a row for each. */
  #gathered(condition: string): string {
    return `SELECT entry, array_agg(content ORDER BY position) AS contents, array_agg(mac ORDER BY position) AS macs
            FROM ${this.#parts.tables.records} WHERE ${condition} GROUP BY entry ORDER BY entry`;
  }

  async *all(): AsyncIterable<EntryRecords> {
    const { entries } = this.#parts.tables;
    const next = `SELECT id FROM ${entries} WHERE id > $1 ORDER BY id LIMIT ${recordsAtOnce}`;
    for (let after = ""; ; ) {
      const found = recordsIn(await this.#read(this.#gathered(`entry IN (${next})`), [after]));
      yield* found;
      const last = found.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  async condition(): Promise<Condition> {
    return { damagedPlaces: 0, isEmptied: false };
  }

  movedTo(): Promise<Moved | undefined> {
    return markIn((text) => this.#read(text), this.#parts.tables);
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    const { entries } = this.#parts.tables;
    // The first condition is that of an index: few of many entries are held.
    const isHeld = "lease_until IS NOT NULL AND lease_until > clock_timestamp()";
    const rows = await this.#read(`SELECT id, ${leaseColumns} FROM ${entries} WHERE ${isHeld}`);
    const holders = new Map<string, Holder>();
    for (const row of rows) {
      const holder = holderIn(row);
      if (holder !== undefined) holders.set(String(row.id), holder);
    }
    return holders;
  }

  async look(intent: Parameters<Store["look"]>[0], key: string | undefined): Promise<Looked> {
    const { entries } = this.#parts.tables;
    const columns = `id, content, ${leaseColumns}`;
    const rows = await this.#read(
      `(SELECT 'same' AS found, ${columns} FROM ${entries} WHERE fingerprint = $1 AND NOT is_settled)
       UNION ALL (SELECT 'key', ${columns} FROM ${entries} WHERE base_url = $2 AND idempotency_key = $3)
       UNION ALL (SELECT 'newest', ${columns} FROM ${entries} ORDER BY id DESC LIMIT 1) ORDER BY 1, 2 DESC`,
      [fingerprintOf(intent), intent.base_url, key ?? null],
    );
    const of = (found: string): readonly Row[] => rows.filter((row) => row.found === found);
    const unfinished = of("same").flatMap((row) => entriesIn([row]).map((entry) => ({ entry, holder: holderIn(row) })));
    const [last] = of("newest");
    return { unfinished, ofKey: entriesIn(of("key")), newest: last && String(last.id) };
  }

  /** Keys and ids are unique in the table: no lock is needed. What it inserts or takes is refused there if the entries moved. */
  admitting<T>(work: () => Promise<T | Busy>): Promise<T | Busy> {
    return work();
  }

  async #assertHere(): Promise<void> {
    const moved = await this.movedTo();
    if (moved !== undefined) throw movedAway(this.path, moved);
  }

  async insert({ entry, content, hash, mac }: NewRecord): Promise<Hold | undefined> {
    const { session, tables, actor, leaseMs } = this.#parts;
    const columns = entryColumns(entry);
    const by = recordColumns(actor);
    const askedAt = moment();
    try {
      const rows = await session.write({
        text: `WITH ${durably}, entry AS (
                 INSERT INTO ${tables.entries} (id, operation, state, is_settled, profile, base_url, idempotency_key,
                   fingerprint, parent, replaces, resources, updated_at, content, hash, position, epoch, holder,
                   held_since, lease_until)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1, 1, $15, clock_timestamp(),
                   clock_timestamp() + $16::float8 * interval '1 ms' FROM durably WHERE ${isHere(tables)} RETURNING id)
               INSERT INTO ${tables.records} (entry, position, epoch, content, hash, actor_user, actor_host, actor_run, mac)
               SELECT id, 1, 1, $13, $14, $17, $18, $19, $20 FROM entry RETURNING entry`,
        values: [
          entry.id,
          columns.operation,
          columns.state,
          columns.is_settled,
          columns.profile,
          columns.base_url,
          columns.idempotency_key,
          columns.fingerprint,
          columns.parent,
          columns.replaces,
          columns.resources,
          columns.updated_at,
          content,
          hash,
          ownHolder(actor),
          leaseMs,
          by.actor_user,
          by.actor_host,
          by.actor_run,
          mac,
        ],
        settle: async (query) => {
          const [row] = await query(`SELECT id, hash FROM ${tables.entries} WHERE id = $1 AND position = 1`, [
            entry.id,
          ]);
          return row?.hash === hash ? [row] : undefined;
        },
      });
      if (rows.length === 0) {
        // Nothing was inserted: the entries are elsewhere since it was asked.
        await this.#assertHere();
        return undefined;
      }
    } catch (error) {
      if (serverErrorOf(error)?.code === "23505") return undefined;
      throw error;
    }
    return new PostgresLease(this.#parts, { entry, epoch: "1", position: 1, hash, askedAt });
  }

  async take(id: string): Promise<Hold | Busy> {
    const { session, tables } = this.#parts;
    const taken = await this.#takeRow(id, { condition: "lease_until IS NULL OR lease_until <= clock_timestamp()" });
    if (taken !== undefined) return taken;
    // Each attempt asks: who waits for a holder may wait while the journal is moved.
    await this.#assertHere();
    const [row] = await session.read(`SELECT ${leaseColumns} FROM ${tables.entries} WHERE id = $1`, [id]);
    if (row === undefined) throw entryNotFound(id);
    const busy = new Busy((waitedMs) => inUse(id, row, waitedMs));
    if (!isHolderGone(row)) return busy;
    return (await this.#takeRow(id, { condition: "epoch = $4", epoch: row.epoch })) ?? busy;
  }

  async #takeRow(
    id: string,
    { condition, epoch }: { readonly condition: string; readonly epoch?: unknown },
  ): Promise<Hold | undefined> {
    const { session, tables, actor, leaseMs } = this.#parts;
    // Names this taking: what a lost response left is found again by it.
    const mark = randomUUID();
    const holder = JSON.stringify({ ...(JSON.parse(ownHolder(actor)) as object), mark });
    const askedAt = moment();
    const columns = `content, hash, position, ${leaseColumns}`;
    const values = [id, holder, leaseMs];
    const [row] = await session.write({
      text: `WITH ${durably} UPDATE ${tables.entries} SET epoch = epoch + 1, holder = $2, held_since = clock_timestamp(),
               lease_until = clock_timestamp() + $3::float8 * interval '1 ms',
               quiet_until = CASE WHEN holder IS NULL THEN quiet_until ELSE greatest(quiet_until, lease_until) END
             FROM durably WHERE id = $1 AND (${condition}) AND ${isHere(tables)} RETURNING ${columns}`,
      values: epoch === undefined ? values : [...values, epoch],
      settle: async (query) => {
        const text = `SELECT ${columns} FROM ${tables.entries} WHERE id = $1 AND holder LIKE $2`;
        const found = await query(text, [id, `%${mark}%`]);
        return found.length === 0 ? undefined : found;
      },
    });
    const entry = row && entryIn(String(row.content));
    if (row === undefined || entry === undefined) return undefined;
    const quietMs = Number(row.quiet_ms ?? 0);
    return new PostgresLease(this.#parts, {
      entry,
      epoch: String(row.epoch),
      position: Number(row.position),
      hash: String(row.hash),
      askedAt,
      quiet: quietMs > 0 ? { until: String(row.quiet_until), ms: quietMs } : undefined,
    });
  }

  /** Ends the lease of a holder that was seen. What it has sent may still arrive until that lease would have ended. */
  async takeAway({ id }: Entry, seen: Holder | undefined): Promise<void> {
    if (seen === undefined) return;
    const { session, tables } = this.#parts;
    const text = `WITH ${durably} UPDATE ${tables.entries} SET epoch = epoch + 1, holder = NULL, held_since = NULL,
                    lease_until = NULL, quiet_until = greatest(quiet_until, lease_until)
                  FROM durably WHERE id = $1 AND epoch = $2 RETURNING id`;
    const [row] = await session.read(`SELECT ${leaseColumns} FROM ${tables.entries} WHERE id = $1`, [id]);
    const holder = row && holderIn(row);
    if (holder === undefined) return;
    const isSame = holder.since === seen.since && holder.pid === seen.pid && holder.host === seen.host;
    if (isSame) {
      // A repeated one changes nothing: the epoch is another by then.
      await session.write({ text, values: [id, row?.epoch], settle: async () => [] });
      return;
    }
    throw new Failure("conflict", `Journal entry ${id} is held by ${describeHolder(holder)} now.`, {
      meaning: "Nothing changed.",
      nextCommand: shell`integ journal show ${id}`,
      entry: id,
    });
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>, { isTrial = false }: TransactionOptions = {}): Promise<T> {
    const { session, tables } = this.#parts;
    return session.transaction(async (query: Query) => {
      // Nothing is admitted or recorded meanwhile: what is judged is what is changed.
      if (!isTrial) await query(`LOCK TABLE ${tables.entries} IN SHARE ROW EXCLUSIVE MODE`);
      return work(new TableTransaction(query, tables, await markIn(query, tables)));
    });
  }

  async verify(): Promise<readonly Finding[]> {
    const { verifyTables } = await import("./verify.ts");
    return verifyTables(this.#parts);
  }

  failure(error: unknown, _action: Action, meaning?: string): unknown {
    return journalFailure(error, this.path, meaning);
  }

  close(): void {
    this.#parts.session.close();
  }
}

function inUse(id: string, row: Row | undefined, waitedMs: number): Failure {
  const holder = row && holderIn(row);
  const who = holder === undefined ? "another process" : describeHolder(holder);
  const times = holder === undefined ? "" : ` since ${holder.since}; its lease ends at ${holder.until}`;
  const what = `Journal entry ${id} is in use by ${who}${times}; integ waited ${Math.round(waitedMs / 100) / 10} s.`;
  return new Failure("outcome_unknown", what, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Wait for that process, or take the entry from it if it has ended.",
    nextCommand: shell`integ journal release ${id}`,
    entry: id,
  });
}
