// The journal in PostgreSQL: one for a team. Each statement is a transaction of its own, so that it works through a pooler;
// the rules of admission are those of the file.
import { randomInt, randomUUID } from "node:crypto";
import { Failure } from "../../errors.ts";
import * as admission from "../admission.ts";
import { movedAway } from "../admission.ts";
import { type Entry, isOfAccount } from "../entry.ts";
import { findEntry, newEntryId, normalizeId, type EntryFilter } from "../lookup.ts";
import { entryOfContent } from "../read-entry.ts";
import { type Moved, type Step, stepOfContent, recordContent, recordHash } from "../record.ts";
import type {
  Admission,
  AdmissionChoice,
  Condition,
  EntryLease,
  EscrowStore,
  Finding,
  Holder,
  Intent,
  Journal,
  Pruned,
  PruneOptions,
} from "../journal.ts";
import type { Coming, EntryRecords, Merged, MergeOptions } from "../merge.ts";
import { entryColumns, fingerprintOf, recordColumns } from "./columns.ts";
import { escrowTable } from "./escrow-table.ts";
import { journalFailure, serverErrorOf } from "./failures.ts";
import { holderIn, leaseColumns, ownHolder } from "./holder.ts";
import { type LeaseParts, moment, PostgresLease } from "./lease.ts";
import { pruneTables } from "./prune.ts";
import { isHere, markMovedIn, mergeInto, movedFrom, recordsIn } from "./transfer.ts";
import { selectionOf } from "./selection.ts";
import { durably, type Row } from "./session.ts";
import { Busy, takeAway, takeLease, waitForHolder } from "./taking.ts";
import { verifyTables } from "./verify.ts";

export interface PostgresJournalParts extends Omit<LeaseParts, "held"> {
  /** How long a running holder is waited for. */
  readonly waitMs: number;
}

/** Entries of a long list that are read together. */
const pageLength = 1000;

const nothingSent = "Nothing was sent and nothing changed.";

function entryIn(row: Row): Entry | undefined {
  return typeof row.content === "string" ? entryOfContent(row.content) : undefined;
}

function entriesIn(rows: readonly Row[]): Entry[] {
  return rows.flatMap((row) => entryIn(row) ?? []);
}

function ofAccount(entries: Entry[], { account }: EntryFilter): Entry[] {
  return account === undefined ? entries : entries.filter((entry) => isOfAccount(entry, account));
}

const keyOf = admission.keyOf;

/** See `Journal`. */
export class PostgresJournal implements Journal {
  readonly path: string;
  readonly isShared = true;
  readonly escrow: EscrowStore;
  readonly #parts: PostgresJournalParts;
  readonly #lease: LeaseParts;

  constructor(parts: PostgresJournalParts) {
    this.path = parts.shown;
    this.escrow = escrowTable(parts);
    this.#parts = parts;
    this.#lease = { ...parts, held: new Set() };
  }

  entries(): Promise<Entry[]> {
    return this.select({ all: true });
  }

  unsettled(): Promise<Entry[]> {
    return this.select({});
  }

  async select(filter: EntryFilter): Promise<Entry[]> {
    // The server does not know in how many rows so many of an account are.
    if (filter.account !== undefined && filter.limit !== undefined) {
      const found: Entry[] = [];
      for await (const entry of this.each(filter)) found.push(entry);
      return found;
    }
    const { text, values } = selectionOf(filter, this.#parts.tables);
    return ofAccount(entriesIn(await this.#read(text, values)), filter);
  }

  async *each(filter: EntryFilter): AsyncIterable<Entry> {
    const { tables } = this.#parts;
    let left = filter.limit ?? Number.POSITIVE_INFINITY;
    for (let below: string | undefined; left > 0; ) {
      const length = filter.account === undefined ? Math.min(left, pageLength) : pageLength;
      const { limit: _, ...rest } = filter;
      const { text, values } = selectionOf(rest, tables, { below, limit: length });
      const page = entriesIn(await this.#read(text, values));
      const fitting = ofAccount(page, filter).slice(0, left);
      yield* fitting;
      below = page.at(-1)?.id;
      left -= fitting.length;
      if (page.length < length) return;
    }
  }

  async count(): Promise<number> {
    const [row] = await this.#read(`SELECT count(*)::float8 AS count FROM ${this.#parts.tables.entries}`);
    return Number(row?.count);
  }

  async history(id: string): Promise<Step[]> {
    const text = `SELECT content FROM ${this.#parts.tables.records} WHERE entry = $1 ORDER BY position`;
    return (await this.#read(text, [id])).map(({ content }) => stepOfContent(String(content)));
  }

  async find(typed: string): Promise<Entry> {
    const wanted = normalizeId(typed);
    // Ids are digits and letters: nothing that begins so comes after a brace.
    const text = `SELECT content FROM ${this.#parts.tables.entries} WHERE id >= $1 AND id < $1 || '{' ORDER BY id DESC LIMIT 1000`;
    const isId = /^[0-9a-z]+$/.test(wanted);
    return findEntry(isId ? entriesIn(await this.#read(text, [wanted])) : [], typed);
  }

  async admit(intent: Intent, options: AdmissionChoice = {}): Promise<Admission> {
    try {
      return await waitForHolder(this.#parts, () => this.#admitNow(intent, options));
    } catch (error) {
      throw this.#failure(error, nothingSent);
    }
  }

  async resume(intent: Intent, options: AdmissionChoice = {}): Promise<Admission | undefined> {
    try {
      return await waitForHolder(this.#parts, async () => (await this.#resumeNow(intent, options)).came);
    } catch (error) {
      throw this.#failure(error, nothingSent);
    }
  }

  async #admitNow(intent: Intent, options: AdmissionChoice): Promise<Admission | Busy> {
    await this.#assertWritable();
    const { came, rows, newest } = await this.#resumeNow(intent, options);
    if (came !== undefined) return came;
    const key = keyOf(intent, options);
    const unsettled = entriesIn(rows);
    if (key === undefined && options.fresh !== true) {
      admission.assertNoneLost(admission.entriesOfRequest(unsettled, intent, "shared"));
      admission.assertSameAccount(unsettled, intent, "shared");
    }
    const lease = await this.#admitNew(intent, { newest, key });
    if (lease === undefined) return this.#admitNow(intent, options);
    const same = new Set(admission.entriesOfRequest(unsettled, intent, "shared").map(({ id }) => id));
    const alongside = rows.flatMap((row) => {
      const holder = holderIn(row);
      return holder !== undefined && same.has(String(row.id)) ? [{ entry: String(row.id), holder }] : [];
    });
    return { kind: "new", lease, alongside };
  }

  /** What is there of the request, the newest first, and what of it can be continued. */
  async #resumeNow(
    intent: Intent,
    options: AdmissionChoice,
  ): Promise<{ came: Admission | Busy | undefined; rows: readonly Row[]; newest: string | undefined }> {
    const { entries } = this.#parts.tables;
    const key = keyOf(intent, options);
    const columns = `id, content, ${leaseColumns}`;
    const rows = await this.#parts.session.read(
      `(SELECT 'same' AS found, ${columns} FROM ${entries} WHERE fingerprint = $1 AND NOT is_settled)
       UNION ALL (SELECT 'key', ${columns} FROM ${entries} WHERE base_url = $2 AND idempotency_key = $3)
       UNION ALL (SELECT 'newest', ${columns} FROM ${entries} ORDER BY id DESC LIMIT 1) ORDER BY 1, 2 DESC`,
      [fingerprintOf(intent), intent.base_url, key ?? null],
    );
    const of = (found: string): readonly Row[] => rows.filter((row) => row.found === found);
    const [last] = of("newest");
    const rest = { rows: of("same"), newest: last && String(last.id) };
    if (key !== undefined) {
      const holder = admission.entryOfKey(entriesIn(of("key")), intent, { key, scope: "shared" });
      return { came: holder && (await this.#take("same_key", holder.id)), ...rest };
    }
    if (options.fresh === true) return { came: undefined, ...rest };
    const unfinished = admission.entriesOfRequest(entriesIn(rest.rows), intent, "shared");
    for (const entry of unfinished.filter(admission.isResumable)) {
      const taken = await this.#take("resumed", admission.changeable(entry).id);
      if (taken instanceof Busy) continue;
      if (admission.isResumable(taken.lease.entry)) return { came: taken, ...rest };
      // Its holder has finished it since it was read: it is that one's, and what is there now is looked at again.
      await taken.lease.release();
      return this.#resumeNow(intent, options);
    }
    return { came: undefined, ...rest };
  }

  async #take(kind: Admission["kind"], id: string): Promise<Admission | Busy> {
    const lease = await this.#takeLease(id);
    return lease instanceof Busy ? lease : { kind, lease };
  }

  /** Asked before each attempt: one that waits for a holder may wait while the journal is moved. */
  async #takeLease(id: string): Promise<PostgresLease | Busy> {
    await this.#assertWritable();
    return takeLease(this.#lease, id);
  }

  /** @returns undefined if another process was first with the key or the id, or has moved the journal: look at it again */
  async #admitNew(
    intent: Intent,
    { newest, key: typed }: { newest: string | undefined; key: string | undefined },
  ): Promise<PostgresLease | undefined> {
    const { session, tables, actor, now, leaseMs } = this.#parts;
    const at = now();
    const id = newEntryId(at, { random: randomInt(2 ** 20), newest });
    const key = intent.idempotent ? (typed ?? randomUUID()) : null;
    const entry = admission.newEntry(intent, { id, key, at: new Date(at).toISOString() });
    const content = recordContent(entry, { by: actor });
    const contentHash = recordHash(content);
    const [columns, by] = [entryColumns(entry), recordColumns(actor)];
    const askedAt = moment();
    try {
      const rows = await session.write({
        text: `WITH ${durably}, entry AS (
                 INSERT INTO ${tables.entries} (id, operation, state, is_settled, profile, base_url, idempotency_key,
                   fingerprint, parent, replaces, resources, updated_at, content, hash, position, epoch, holder,
                   held_since, lease_until)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1, 1, $15, clock_timestamp(),
                   clock_timestamp() + $16::float8 * interval '1 ms' FROM durably WHERE ${isHere(tables)} RETURNING id)
               INSERT INTO ${tables.records} (entry, position, epoch, content, hash, actor_user, actor_host, actor_run)
               SELECT id, 1, 1, $13, $14, $17, $18, $19 FROM entry RETURNING entry`,
        values: [
          id,
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
          contentHash,
          ownHolder(actor),
          leaseMs,
          by.actor_user,
          by.actor_host,
          by.actor_run,
        ],
        settle: async (query) => {
          const [row] = await query(`SELECT id, hash FROM ${tables.entries} WHERE id = $1 AND position = 1`, [id]);
          return row?.hash === contentHash ? [row] : undefined;
        },
      });
      if (rows.length === 0) return undefined;
    } catch (error) {
      if (serverErrorOf(error)?.code === "23505") return undefined;
      throw error;
    }
    return new PostgresLease(this.#lease, { entry, epoch: "1", position: 1, hash: contentHash, askedAt });
  }

  async lease(typed: string): Promise<EntryLease> {
    try {
      const { id } = admission.changeable(await this.find(typed));
      return await waitForHolder(this.#parts, () => this.#takeLease(id));
    } catch (error) {
      throw this.#failure(error, nothingSent);
    }
  }

  async tryLease(typed: string): Promise<EntryLease | null> {
    try {
      const lease = await this.#takeLease(admission.changeable(await this.find(typed)).id);
      return lease instanceof Busy ? null : lease;
    } catch (error) {
      throw this.#failure(error, nothingSent);
    }
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    const { entries } = this.#parts.tables;
    // The first condition is that of an index: few of many entries are held.
    const isHeld = "lease_until IS NOT NULL AND lease_until > clock_timestamp()";
    const rows = await this.#read(`SELECT id, ${leaseColumns} FROM ${entries} WHERE ${isHeld}`);
    return new Map(
      rows.flatMap((row) => {
        const holder = holderIn(row);
        return holder === undefined ? [] : [[String(row.id), holder]];
      }),
    );
  }

  async takeAway(id: string, seen: Holder | undefined): Promise<void> {
    try {
      if (seen !== undefined) await takeAway(this.#lease, id, seen);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  async extendLeases(): Promise<void> {
    for (const lease of this.#lease.held) await lease.extend();
  }

  holdsLeases(): boolean {
    return [...this.#lease.held].every((lease) => lease.outlasts(0));
  }

  records(): AsyncIterable<EntryRecords> {
    return recordsIn(this.#parts);
  }

  async merge(entries: Coming, options: MergeOptions = {}): Promise<Merged> {
    return mergeInto(this.#parts, entries, options).catch((error: unknown) => {
      throw this.#failure(error, "Nothing was imported.");
    });
  }

  async movedTo(): Promise<Moved | undefined> {
    return movedFrom(this.#parts).catch((error: unknown) => {
      throw this.#failure(error);
    });
  }

  async markMoved(moved: Moved | undefined): Promise<void> {
    return markMovedIn(this.#parts, moved).catch((error: unknown) => {
      throw this.#failure(error, "The journal is as it was.");
    });
  }

  async verify(): Promise<Finding[]> {
    try {
      return await verifyTables(this.#parts);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  async condition(): Promise<Condition> {
    return { damagedPlaces: 0, isEmptied: false };
  }

  async prune(olderThanMs: number, { includeLive = false, isTrial = false }: PruneOptions = {}): Promise<Pruned> {
    const before = new Date(this.#parts.now() - olderThanMs).toISOString();
    try {
      return await pruneTables(this.#parts, { before, includeLive, isTrial });
    } catch (error) {
      throw this.#failure(error, "The journal was not changed.");
    }
  }

  close(): void {
    this.#parts.session.close();
  }

  async #assertWritable(): Promise<void> {
    const { isReadOnly } = await this.#parts.session.server();
    const moved = await movedFrom(this.#parts);
    if (moved !== undefined) throw movedAway(this.path, moved);
    if (!isReadOnly) return;
    throw new Failure("unreachable", `The server of the journal ${this.path} is read-only.`, {
      meaning: nothingSent,
      hint: "Use the primary: several hosts with target_session_attrs=read-write find it.",
    });
  }

  async #read(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    try {
      return await this.#parts.session.read(text, values);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #failure(error: unknown, meaning?: string): unknown {
    return journalFailure(error, this.path, meaning);
  }
}
