// Stores a team's journal in PostgreSQL. A pooler may change the server connection between transactions, so each statement
// is its own transaction, and a change of many entries is one transaction.
import { randomUUID } from "node:crypto";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import type { Actor } from "../actor.ts";
import { journalMovedFailure } from "../admission.ts";
import type { Entry } from "../entry.ts";
import { type EntryFilter, entryNotFound } from "../lookup.ts";
import { type EntryRecords, entryIn, type Finding } from "../record.ts";
import type { Condition, EscrowStore, Hold, Holder, LookupResult, NewRecord, Store, Transaction } from "../store.ts";
import { Busy } from "../store.ts";
import { type Environment, readAddress } from "./address.ts";
import { journalFailure, serverErrorOf } from "./failures.ts";
import {
  describeHolder,
  fromNow,
  holderIn,
  hasHolderEnded,
  leaseOf,
  leaseColumns,
  moment,
  ownHolder,
  recordValues,
  findWrittenRecord,
  withRecord,
} from "./lease.ts";
import { rowMismatch, entriesIn, requestWord, rowOf, selectionOf } from "./rows.ts";
import { assertUsable, checkTables, makeTables, type PostgresParts, tablesIn } from "./schema.ts";
import { durably, type Query, type Row, Session } from "./session.ts";
import { isHere, markIn, recordsIn, recordsText, TableTransaction } from "./transaction.ts";

const pageLength = 1000;
const recordsAtOnce = 500;

class PostgresStore implements Store {
  readonly path: string;
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
    // The server compares only part of the account, so it cannot apply the limit.
    const limit = filter.account === undefined ? Math.min(filter.limit ?? pageLength, pageLength) : pageLength;
    for (let below: string | undefined; ; ) {
      const { text, values } = selectionOf(filter, this.#parts.tables, { below, limit });
      const page = entriesIn(await this.#read(text, values));
      yield* page;
      below = page.at(-1)?.id;
      if (page.length < limit) return;
    }
  }

  async *records(ids?: readonly string[]): AsyncIterable<EntryRecords> {
    const { tables } = this.#parts;
    if (ids !== undefined) return yield* recordsIn(await this.#read(recordsText(tables), [ids]));
    // An id that has records and no row shows that the entry's row was removed.
    const next = `SELECT id FROM (SELECT id FROM ${tables.entries} WHERE id > $1 UNION SELECT entry FROM ${tables.records} WHERE entry > $1) AS ids
                  ORDER BY id LIMIT ${recordsAtOnce}`;
    for (let after = ""; ; ) {
      const page = (await this.#read(next, [after])).map(({ id }) => String(id));
      if (page.length === 0) return;
      const rows = await this.#read(`SELECT * FROM ${tables.entries} WHERE id = ANY($1)`, [page]);
      const byId = new Map(rows.map((row) => [row.id, row]));
      const found = new Map(recordsIn(await this.#read(recordsText(tables), [page])).map((one) => [one.id, one]));
      for (const id of page) {
        const { records = [], numbers = [] } = found.get(id) ?? {};
        const contents = records.map(({ content }) => content);
        yield { id, records, mismatch: rowMismatch(byId.get(id), numbers, contents) };
      }
      after = page.at(-1)!;
    }
  }

  async condition(): Promise<Condition> {
    const moved = await markIn((text) => this.#read(text), this.#parts.tables);
    return { damagedPlaces: 0, isEmptied: false, moved };
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    // The first condition makes the server use the partial index.
    const rows = await this.#read(
      `SELECT id, ${leaseColumns} FROM ${this.#parts.tables.entries}
       WHERE lease_until IS NOT NULL AND lease_until > clock_timestamp()`,
    );
    return new Map(rows.flatMap((row) => (holderIn(row) ? [[String(row.id), holderIn(row)!]] : [])));
  }

  async look(intent: Parameters<Store["look"]>[0], key: string | null): Promise<LookupResult> {
    const { entries } = this.#parts.tables;
    const columns = `id, content, ${leaseColumns}`;
    const rows = await this.#read(
      `(SELECT 'same' AS found, ${columns} FROM ${entries} WHERE about @> $1 AND NOT is_settled)
       UNION ALL (SELECT 'key', ${columns} FROM ${entries} WHERE key = $2)
       UNION ALL (SELECT 'newest', ${columns} FROM ${entries} ORDER BY id DESC LIMIT 1) ORDER BY 1, 2 DESC`,
      [[requestWord(intent)], key],
    );
    const of = (found: string): readonly Row[] => rows.filter((row) => row.found === found);
    const unfinished = of("same").flatMap((row) => entriesIn([row]).map((entry) => ({ entry, holder: holderIn(row) })));
    const newest = of("newest")[0]?.id;
    return { unfinished, ofKey: entriesIn(of("key")), newest: typeof newest === "string" ? newest : "" };
  }

  async #assertNotMoved(): Promise<void> {
    const { moved } = await this.condition();
    if (moved !== undefined) throw journalMovedFailure(this.path, moved);
  }

  /** Needs no lock, because keys and ids are unique in the table. */
  async insert(record: NewRecord): Promise<Hold | undefined> {
    const { session, tables, actor, leaseMs } = this.#parts;
    const { entry, content } = record;
    const sentAt = moment();
    try {
      const rows = await session.write({
        text: `WITH ${durably}, entry AS (
                 INSERT INTO ${tables.entries} (id, about, actors, is_settled, key, updated_at, content, n, epoch, holder,
                   held_since, lease_until)
                 SELECT id, about, actors, is_settled, key, updated_at, content, n, 1, $2, clock_timestamp(), ${fromNow("$3")}
                 FROM durably, json_populate_record(NULL::${tables.entries}, $1::json) WHERE ${isHere(tables)} RETURNING id, epoch)
               ${withRecord(tables, 4)}`,
        values: [
          JSON.stringify(rowOf(record, [record])),
          ownHolder(actor, randomUUID()),
          leaseMs,
          ...recordValues(record),
        ],
        findOutcome: findWrittenRecord(tables, record),
      });
      if (rows.length > 0) return leaseOf(this.#parts, { entry, content, epoch: "1", n: entry.sequence, sentAt });
    } catch (error) {
      if (serverErrorOf(error)?.code === "23505") return undefined;
      throw error;
    }
    // No row was inserted if the journal was moved.
    await this.#assertNotMoved();
    return undefined;
  }

  async take(id: string): Promise<Hold | Busy> {
    const taken = await this.#takeRow(id, { condition: "lease_until IS NULL OR lease_until <= clock_timestamp()" });
    if (taken !== undefined) return taken;
    // The statement takes no row of a moved journal.
    await this.#assertNotMoved();
    const row = await this.#leaseOf(id);
    if (row === undefined) throw entryNotFound(id);
    const holder = holderIn(row);
    const times = holder && ` since ${holder.since}; its lease ends at ${holder.until}`;
    const by = `${describeHolder(holder)}${times ?? ""}`;
    const busy = new Busy(`Journal entry ${id}`, { kind: "outcome_unknown", by, entry: id });
    if (!hasHolderEnded(row)) return busy;
    return (await this.#takeRow(id, { condition: "epoch = $4", epoch: row.epoch })) ?? busy;
  }

  async #leaseOf(id: string): Promise<Row | undefined> {
    const [row] = await this.#read(`SELECT ${leaseColumns} FROM ${this.#parts.tables.entries} WHERE id = $1`, [id]);
    return row;
  }

  async #takeRow(
    id: string,
    { condition, epoch }: { readonly condition: string; readonly epoch?: unknown },
  ): Promise<Hold | undefined> {
    const { session, tables, actor, leaseMs } = this.#parts;
    const mark = randomUUID();
    const sentAt = moment();
    const columns = `content, n, ${leaseColumns}`;
    const values = [id, ownHolder(actor, mark), leaseMs];
    const [row] = await session.write({
      text: `WITH ${durably} UPDATE ${tables.entries} SET epoch = epoch + 1, holder = $2, held_since = clock_timestamp(),
               lease_until = ${fromNow("$3")},
               quiet_until = CASE WHEN holder IS NULL THEN quiet_until ELSE greatest(quiet_until, lease_until) END
             FROM durably WHERE id = $1 AND (${condition}) AND ${isHere(tables)} RETURNING ${columns}`,
      values: epoch === undefined ? values : [...values, epoch],
      findOutcome: async (query) => {
        const text = `SELECT ${columns} FROM ${tables.entries} WHERE id = $1 AND holder LIKE $2`;
        const found = await query(text, [id, `%${mark}%`]);
        return found.length === 0 ? undefined : found;
      },
    });
    const content = String(row?.content);
    const entry = row && entryIn(content);
    if (entry === undefined) return undefined;
    const quietMs = Number(row?.quiet_ms ?? 0);
    const quiet = quietMs > 0 ? { until: String(row?.quiet_until), ms: quietMs } : undefined;
    const [newEpoch, n] = [String(row?.epoch), Number(row?.n)];
    return leaseOf(this.#parts, { entry, content, epoch: newEpoch, n, sentAt, quiet });
  }

  /** The former holder's requests may arrive until `quiet_until`. @throws Failure `conflict` if the holder has changed */
  async takeAway({ id }: Entry, seen: Holder | undefined): Promise<void> {
    const row = await this.#leaseOf(id);
    const holder = holderIn(row);
    if (seen === undefined || holder === undefined) return;
    if (holder.since !== seen.since || holder.pid !== seen.pid || holder.host !== seen.host)
      throw new Failure("conflict", `Journal entry ${id} is held by ${describeHolder(holder)} now.`, {
        meaning: "Nothing changed.",
        nextCommand: shell`integ journal show ${id}`,
        entry: id,
      });
    await (await this.#takeRow(id, { condition: "epoch = $4", epoch: row?.epoch }))?.release();
  }

  exclusive<T>(work: (tx: Transaction) => Promise<T>, isTrial = false): Promise<T> {
    const { session, tables } = this.#parts;
    return session.transaction(async (query: Query) => {
      // The lock makes admissions and appends wait, so that the work sees no other change.
      if (!isTrial) await query(`LOCK TABLE ${tables.entries} IN SHARE ROW EXCLUSIVE MODE`);
      return work(new TableTransaction(query, tables, await markIn(query, tables)));
    });
  }

  async verify(): Promise<readonly Finding[]> {
    const { serverFindings } = await import("./verify.ts");
    return serverFindings(this.#parts);
  }

  failure(error: unknown, _action: string, meaning?: string): unknown {
    return journalFailure(error, this.path, meaning);
  }

  close(): void {
    this.#parts.session.close();
  }
}

function escrowTable({ session, tables: { escrow }, shown }: PostgresParts): EscrowStore {
  const unchanged = "The encrypted secret in the journal is as it was.";
  const orFail = (work: Promise<readonly Row[]>, meaning?: string): Promise<readonly Row[]> =>
    work.catch((error: unknown) => {
      throw journalFailure(error, shown, meaning);
    });
  return {
    async ids() {
      return new Set((await orFail(session.read(`SELECT entry FROM ${escrow}`))).map(({ entry }) => String(entry)));
    },
    async put(entry, ciphertext) {
      const text = `WITH ${durably} INSERT INTO ${escrow} (entry, ciphertext) SELECT $1, $2 FROM durably
        ON CONFLICT (entry) DO UPDATE SET ciphertext = excluded.ciphertext, made_at = clock_timestamp()`;
      await orFail(session.write({ text, values: [entry, ciphertext] }), unchanged);
    },
    async get(entry) {
      const [row] = await orFail(session.read(`SELECT ciphertext FROM ${escrow} WHERE entry = $1`, [entry]), unchanged);
      return row && String(row.ciphertext);
    },
    async remove(entry) {
      await orFail(session.write({ text: `DELETE FROM ${escrow} WHERE entry = $1`, values: [entry] }), unchanged);
    },
  };
}

export interface Team {
  readonly address: string;
  readonly env: Environment;
  readonly actor: Actor;
}

function partsOf({ address: text, env, actor }: Team, needsTables: boolean) {
  const address = readAddress(text, { env, user: actor.user });
  const tables = tablesIn(address.schema);
  const session = new Session({
    address,
    check: async (query, server) => {
      assertUsable(server);
      if (needsTables) await checkTables(query, tables);
    },
  });
  return { session, tables, actor, shown: address.shown };
}

export function openTeamStore({ requestMs, leaseMs, ...team }: Team & Pick<PostgresParts, "requestMs" | "leaseMs">) {
  return new PostgresStore({ ...partsOf(team, true), requestMs, leaseMs });
}

export async function initTeamJournal(team: Team): Promise<{ version: number; isNew: boolean }> {
  const { session, tables, shown } = partsOf(team, false);
  try {
    return await session.transaction((query) => makeTables(query, tables));
  } catch (error) {
    throw journalFailure(error, shown);
  } finally {
    session.close();
  }
}
