// The lease of one entry in a team's journal: a number that only grows (its epoch), and a time by the server's clock. Who
// was overtaken by another epoch records nothing more.
import { Failure } from "../../errors.ts";
import type { Actor } from "../actor.ts";
import type { Entry, EntryProgress } from "../entry.ts";
import type { EntryLease } from "../journal.ts";
import { recordContent, recordHash } from "../record.ts";
import { entryColumns, recordColumns } from "./columns.ts";
import { journalFailure } from "./failures.ts";
import { describeHolder, holderIn, leaseColumns } from "./holder.ts";
import type { Tables } from "./schema.ts";
import { durably, type Query, type Row, type Session } from "./session.ts";
import { shell } from "../../next-step.ts";

/** What every lease of one journal works with. */
export interface LeaseParts {
  readonly session: Session;
  readonly tables: Tables;
  readonly actor: Actor;
  readonly shown: string;
  /** milliseconds since 1970 */
  readonly now: () => number;
  /** How long a lease lasts after it was taken or extended. */
  readonly leaseMs: number;
  /** How long one request may take. */
  readonly requestMs: number;
  /** Leases that were not released. */
  readonly held: Set<PostgresLease>;
}

/** A row as it was taken. */
export interface Taken {
  readonly entry: Entry;
  readonly epoch: string;
  readonly position: number;
  readonly hash: string;
  /** When the statement that took it left: the lease has not started before. */
  readonly askedAt: Moment;
  readonly quiet?: { readonly until: string; readonly ms: number } | undefined;
}

/** By two clocks: one stands still while the machine sleeps, the other may be set. What says that more has passed counts. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export function moment(): Moment {
  return { monotonic: performance.now(), wall: Date.now() };
}

function sinceThen({ monotonic, wall }: Moment): number {
  return Math.max(performance.now() - monotonic, Date.now() - wall);
}

/** For a response that is long on its way, and clocks that run apart. */
const marginMs = 250;

export class PostgresLease implements EntryLease {
  readonly #parts: LeaseParts;
  readonly #taken: Taken;
  #entry: Entry;
  #position: number;
  #hash: string;
  #extendedAt: Moment;
  #isReleased = false;

  constructor(parts: LeaseParts, taken: Taken) {
    this.#parts = parts;
    this.#taken = taken;
    this.#entry = taken.entry;
    this.#position = taken.position;
    this.#hash = taken.hash;
    this.#extendedAt = taken.askedAt;
    parts.held.add(this);
  }

  get entry(): Entry {
    return this.#entry;
  }

  get quietUntil(): string | undefined {
    const { quiet, askedAt } = this.#taken;
    return quiet !== undefined && performance.now() - askedAt.monotonic < quiet.ms ? quiet.until : undefined;
  }

  /** Whether no one else can have the entry for so long. */
  outlasts(ms: number): boolean {
    return sinceThen(this.#extendedAt) + ms + marginMs < this.#parts.leaseMs;
  }

  note(change: Partial<EntryProgress>): void {
    this.#entry = { ...this.#entry, ...change };
  }

  async record(change: Partial<EntryProgress>): Promise<Entry> {
    if (this.#isReleased) throw new Error(`journal entry ${this.#entry.id} is recorded after its release`);
    const { now, actor, shown } = this.#parts;
    const before = this.#entry;
    // The clocks of several machines differ: a step is never before the one before it.
    const at = Math.max(now(), Date.parse(before.updated_at) + 1);
    const next = { ...before, ...change, sequence: before.sequence + 1, updated_at: new Date(at).toISOString() };
    const content = recordContent(next, { by: actor, prev: this.#hash });
    const askedAt = moment();
    try {
      await this.#append(next, content);
    } catch (error) {
      throw journalFailure(error, shown, "The journal still shows the entry as it was before this step.");
    }
    this.#extendedAt = askedAt;
    this.#entry = next;
    this.#position += 1;
    this.#hash = recordHash(content);
    return next;
  }

  async #append(next: Entry, content: string): Promise<void> {
    const { session, tables, actor, leaseMs } = this.#parts;
    const hash = recordHash(content);
    const position = this.#position + 1;
    const { state, is_settled, resources, updated_at } = entryColumns(next);
    const by = recordColumns(actor);
    const rows = await session.write({
      text: `WITH ${durably}, entry AS (
               UPDATE ${tables.entries} SET state = $4, is_settled = $5, resources = $6, updated_at = $7, content = $8,
                 hash = $9, position = $10, lease_until = clock_timestamp() + $11::float8 * interval '1 ms'
               FROM durably WHERE id = $1 AND epoch = $2 AND position = $3 RETURNING id, epoch)
             INSERT INTO ${tables.records} (entry, position, epoch, content, hash, actor_user, actor_host, actor_run)
             SELECT id, $10, epoch, $8, $9, $12, $13, $14 FROM entry RETURNING position`,
      values: [
        next.id,
        this.#taken.epoch,
        this.#position,
        state,
        is_settled,
        resources,
        updated_at,
        content,
        hash,
        position,
        leaseMs,
        by.actor_user,
        by.actor_host,
        by.actor_run,
      ],
      settle: async (query) => {
        const [row] = await query(`SELECT hash FROM ${tables.records} WHERE entry = $1 AND position = $2`, [
          next.id,
          position,
        ]);
        return row?.hash === hash ? [row] : undefined;
      },
    });
    if (rows.length === 0) throw await this.#overtaken();
  }

  /** Extends the lease if it would not outlast a request. @throws Failure if another has the entry now */
  async extend(): Promise<void> {
    const { session, tables, leaseMs, requestMs, shown } = this.#parts;
    if (this.outlasts(requestMs)) return;
    const askedAt = moment();
    let rows: readonly Row[];
    const text = `WITH ${durably} UPDATE ${tables.entries} SET lease_until = clock_timestamp() + $3::float8 * interval '1 ms'
                  FROM durably WHERE id = $1 AND epoch = $2 RETURNING id`;
    const values = [this.#entry.id, this.#taken.epoch, leaseMs];
    try {
      // Harmless to repeat: the response alone says from when it counts.
      rows = await session.write({ text, values, settle: async (query) => query(text, values) });
    } catch (error) {
      throw journalFailure(error, shown, "The request was not sent.");
    }
    if (rows.length === 0) throw await this.#overtaken();
    this.#extendedAt = askedAt;
  }

  async #overtaken(): Promise<Failure> {
    const { session, tables } = this.#parts;
    const { id, attempts } = this.#entry;
    const rows = await session
      .read(`SELECT ${leaseColumns} FROM ${tables.entries} WHERE id = $1`, [id])
      .catch(() => undefined);
    const holder = rows?.[0] && holderIn(rows[0]);
    const by = holder === undefined ? "another process" : describeHolder(holder);
    const isGone = rows?.length === 0 || rows?.[0]?.epoch === this.#taken.epoch;
    const what = isGone
      ? `The journal entry ${id} is not as this process left it: the database was restored or edited.`
      : `The journal entry ${id} was taken over by ${by}: this process's lease had ended.`;
    // Its new holder knows what became of earlier requests; this process does not.
    const kind = attempts > 0 ? "outcome_unknown" : "unreachable";
    return new Failure(kind, what, {
      meaning: "Nothing more is sent or recorded for it here.",
      nextCommand: shell`integ journal show ${id}`,
      entry: id,
    });
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const { session, tables, held } = this.#parts;
    held.delete(this);
    // Not waited for until it is on the disk: a lease whose end a crash undoes ends by itself.
    const text = `WITH quickly AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS set)
                  UPDATE ${tables.entries} SET holder = NULL, held_since = NULL, lease_until = NULL
                  FROM quickly WHERE id = $1 AND epoch = $2 RETURNING id`;
    const values = [this.#entry.id, this.#taken.epoch];
    try {
      await session.write({ text, values, settle: async (query: Query) => query(text, values) });
    } catch {
      // What cannot be given back ends by itself.
    }
  }
}
