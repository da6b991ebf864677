// The lease of one entry in a team's journal: a number that only grows (its epoch), and a time by the server's clock. Who
// was overtaken by another epoch records nothing more.
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import type { Entry } from "../entry.ts";
import type { Hold, NewRecord } from "../store.ts";
import { entryColumns, recordColumns } from "./columns.ts";
import { journalFailure } from "./failures.ts";
import { describeHolder, holderIn, leaseColumns } from "./holder.ts";
import type { PostgresParts } from "./schema.ts";
import { durably, type Row } from "./session.ts";

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

export class PostgresLease implements Hold {
  readonly entry: Entry;
  readonly hash: string;
  readonly #parts: PostgresParts;
  readonly #taken: Taken;
  #position: number;
  #attempts: number;
  #extendedAt: Moment;
  #isReleased = false;

  constructor(parts: PostgresParts, taken: Taken) {
    this.#parts = parts;
    this.#taken = taken;
    this.entry = taken.entry;
    this.hash = taken.hash;
    this.#position = taken.position;
    this.#attempts = taken.entry.attempts;
    this.#extendedAt = taken.askedAt;
  }

  get quietUntil(): string | undefined {
    const { quiet, askedAt } = this.#taken;
    return quiet !== undefined && performance.now() - askedAt.monotonic < quiet.ms ? quiet.until : undefined;
  }

  isHeld(): boolean {
    return this.#outlasts(0);
  }

  /** Whether no one else can have the entry for so long. */
  #outlasts(ms: number): boolean {
    return sinceThen(this.#extendedAt) + ms + marginMs < this.#parts.leaseMs;
  }

  async append({ entry: next, content, hash, mac }: NewRecord): Promise<void> {
    const { session, tables, actor, leaseMs } = this.#parts;
    const position = this.#position + 1;
    const { state, is_settled, resources, updated_at } = entryColumns(next);
    const by = recordColumns(actor);
    const askedAt = moment();
    const rows = await session.write({
      text: `WITH ${durably}, entry AS (
               UPDATE ${tables.entries} SET state = $4, is_settled = $5, resources = $6, updated_at = $7, content = $8,
                 hash = $9, position = $10, lease_until = clock_timestamp() + $11::float8 * interval '1 ms'
               FROM durably WHERE id = $1 AND epoch = $2 AND position = $3 RETURNING id, epoch)
             INSERT INTO ${tables.records} (entry, position, epoch, content, hash, actor_user, actor_host, actor_run, mac)
             SELECT id, $10, epoch, $8, $9, $12, $13, $14, $15 FROM entry RETURNING position`,
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
        mac,
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
    this.#extendedAt = askedAt;
    this.#position = position;
    this.#attempts = next.attempts;
  }

  /** Extends the lease if it would not outlast a request. @throws Failure if another has the entry now */
  async extend(): Promise<void> {
    const { session, tables, leaseMs, requestMs, shown } = this.#parts;
    if (this.#outlasts(requestMs)) return;
    const askedAt = moment();
    let rows: readonly Row[];
    const text = `WITH ${durably} UPDATE ${tables.entries} SET lease_until = clock_timestamp() + $3::float8 * interval '1 ms'
                  FROM durably WHERE id = $1 AND epoch = $2 RETURNING id`;
    const values = [this.entry.id, this.#taken.epoch, leaseMs];
    try {
      // The response alone says from when it counts.
      rows = await session.write({ text, values });
    } catch (error) {
      throw journalFailure(error, shown, "The request was not sent.");
    }
    if (rows.length === 0) throw await this.#overtaken();
    this.#extendedAt = askedAt;
  }

  async #overtaken(): Promise<Failure> {
    const { session, tables } = this.#parts;
    const { id } = this.entry;
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
    const kind = this.#attempts > 0 ? "outcome_unknown" : "unreachable";
    return new Failure(kind, what, {
      meaning: "Nothing more is sent or recorded for it here.",
      nextCommand: shell`integ journal show ${id}`,
      entry: id,
    });
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const { session, tables } = this.#parts;
    // Not waited for until it is on the disk: a lease whose end a crash undoes ends by itself.
    const text = `WITH quickly AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS set)
                  UPDATE ${tables.entries} SET holder = NULL, held_since = NULL, lease_until = NULL
                  FROM quickly WHERE id = $1 AND epoch = $2 RETURNING id`;
    const values = [this.entry.id, this.#taken.epoch];
    try {
      await session.write({ text, values });
    } catch {
      // What cannot be given back ends by itself.
    }
  }
}
