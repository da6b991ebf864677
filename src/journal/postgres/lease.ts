// Leases an entry of a team's journal until a time by the server's clock. Each new lease raises the entry's epoch: a holder
// with an older epoch can no longer record steps.
import { hasEnded, identify, type ProcessIdentity } from "../../disk/lock-owner.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import type { Actor } from "../actor.ts";
import type { Hold, Holder, NewRecord } from "../store.ts";
import { journalFailure } from "./failures.ts";
import { rowChanges, rowOf } from "./rows.ts";
import type { PostgresParts, Tables } from "./schema.ts";
import { durably, type Row } from "./session.ts";

const isoTime = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

export const leaseColumns = `holder, epoch::text, ${isoTime("held_since")} AS since, ${isoTime("lease_until")} AS until,
  ${isoTime("quiet_until")} AS quiet_until,
  (extract(epoch FROM quiet_until - clock_timestamp()) * 1000)::float8 AS quiet_ms,
  coalesce(lease_until > clock_timestamp(), false) AS is_held`;

/** Ends a lease early. The holder's requests may arrive until the planned end of the lease, `quiet_until`. */
export const endLease = `epoch = epoch + 1, quiet_until = greatest(quiet_until, lease_until), holder = NULL,
  held_since = NULL, lease_until = NULL`;

export const fromNow = (place: string): string => `clock_timestamp() + ${place}::float8 * interval '1 ms'`;

let own: ProcessIdentity | undefined;

const ownProcess = (): ProcessIdentity => (own ??= identify(process.pid));

/** @param mark identifies the lease if the response to the lease's statement is lost */
export function ownHolder(actor: Actor, mark: string): string {
  return JSON.stringify({ ...actor, process: ownProcess(), mark });
}

function storedHolder(row: Row): (Actor & { readonly process: ProcessIdentity }) | undefined {
  return typeof row.holder === "string" ? JSON.parse(row.holder) : undefined;
}

export function holderIn(row: Row | undefined): Holder | undefined {
  const holder = row?.is_held === true ? storedHolder(row) : undefined;
  if (holder === undefined) return undefined;
  const { user, host, run, process } = holder;
  return { user, host, run, pid: process.pid, since: String(row?.since), until: String(row?.until) };
}

/**
 * True if the holder was a process of this machine and has ended. Without a boot id (macOS) the result is false,
 * because another machine may have the same name.
 */
export function hasHolderEnded(row: Row, self = ownProcess()): boolean {
  const holder = storedHolder(row)?.process;
  return holder !== undefined && holder.boot !== null && holder.pid !== self.pid && hasEnded(holder, self);
}

export function describeHolder(holder: Holder | undefined): string {
  if (holder === undefined) return "another process";
  const { pid, user, host, run } = holder;
  return `process ${pid} (${user} on ${host}${run === undefined ? "" : `, ${run}`})`;
}

export interface LeaseRow extends Pick<Hold, "entry" | "content"> {
  readonly epoch: string;
  readonly n: number;
  /** When the lease's statement was sent: the lease starts later. */
  readonly sentAt: ReturnType<typeof moment>;
  readonly quiet?: { readonly until: string; readonly ms: number } | undefined;
}

/** Two clocks: one may stop while the machine sleeps, the other may be set. The larger elapsed time counts. */
export const moment = () => ({ monotonic: performance.now(), wall: Date.now() });

/** Inserts a record for the row of the CTE `entry`. @param first the number of the first placeholder */
export const withRecord = ({ records }: Tables, first: number): string =>
  `INSERT INTO ${records} (entry, epoch, n, content, mac) SELECT id, epoch, $${first}, $${first + 1}, $${first + 2} FROM entry RETURNING entry`;

export const recordValues = ({ entry, content, mac }: NewRecord): unknown[] => [entry.sequence, content, mac];

/** Matches a row that equals its newest record, so that the next record does not sign an edit of the row. */
const isRecorded = ({ records }: Tables): string =>
  `EXISTS (SELECT FROM ${records} AS newest WHERE newest.entry = integ_entries.id AND newest.n = integ_entries.n AND newest.content = integ_entries.content)`;

export const findWrittenRecord =
  ({ records }: Tables, { entry: { id, sequence }, content }: NewRecord) =>
  async (query: (text: string, values: readonly unknown[]) => Promise<readonly Row[]>) => {
    const [row] = await query(`SELECT content FROM ${records} WHERE entry = $1 AND n = $2`, [id, sequence]);
    return row?.content === content ? [row] : undefined;
  };

/** A lease counts as ended this much early, because clocks drift and a request is written slightly after the check. */
const marginMs = 250;

async function leaseLost(
  { session, tables }: PostgresParts,
  { id, epoch, attempts }: { readonly id: string; readonly epoch: string; readonly attempts: number },
): Promise<Failure> {
  const text = `SELECT ${leaseColumns} FROM ${tables.entries} WHERE id = $1`;
  const rows = await session.read(text, [id]).catch(() => undefined);
  const wasReset = rows?.length === 0 || rows?.[0]?.epoch === epoch;
  const what = wasReset
    ? `The journal entry ${id} is not as this process left it: the database was restored or edited.`
    : `The journal entry ${id} was taken over by ${describeHolder(holderIn(rows?.[0]))}: this process's lease had ended.`;
  // Only the new holder knows the outcome of earlier requests.
  return new Failure(attempts > 0 ? "outcome_unknown" : "unreachable", what, {
    meaning: "Nothing more is sent or recorded for it here.",
    nextCommand: shell`integ journal show ${id}`,
    entry: id,
  });
}

export function leaseOf(parts: PostgresParts, { entry, content, epoch, quiet, sentAt, ...taken }: LeaseRow): Hold {
  const { session, tables, leaseMs, requestMs, shown } = parts;
  const { id } = entry;
  let [{ n }, { attempts }, extendedAt, isReleased] = [taken, entry, sentAt, false];

  const isValidFor = (ms: number): boolean => {
    const { monotonic, wall } = extendedAt;
    return Math.max(performance.now() - monotonic, Date.now() - wall) + ms + marginMs < leaseMs;
  };

  /** Safe to repeat: updates the row only while this lease's epoch is current. */
  const update = (how: string, change: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    const text = `WITH ${how} UPDATE ${tables.entries} SET ${change} FROM durably WHERE id = $1 AND epoch = $2 RETURNING id`;
    return session.write({ text, values: [id, epoch, ...values] });
  };

  return {
    entry,
    content,
    get quietUntil() {
      return quiet !== undefined && performance.now() - sentAt.monotonic < quiet.ms ? quiet.until : undefined;
    },
    isHeld: () => isValidFor(0),
    async append(record) {
      const now = moment();
      const rows = await session.write({
        text: `WITH ${durably}, entry AS (
                 UPDATE ${tables.entries} AS integ_entries SET ${rowChanges}, lease_until = ${fromNow("$4")}
                 FROM durably, json_populate_record(NULL::${tables.entries}, $5::json) AS excluded
                 WHERE integ_entries.id = $1 AND integ_entries.epoch = $2 AND integ_entries.n = $3 AND ${isRecorded(tables)}
                 RETURNING integ_entries.id, integ_entries.epoch)
               ${withRecord(tables, 6)}`,
        values: [id, epoch, n, leaseMs, JSON.stringify(rowOf(record, [record])), ...recordValues(record)],
        findOutcome: findWrittenRecord(tables, record),
      });
      if (rows.length === 0) throw await leaseLost(parts, { id, epoch, attempts });
      [n, attempts, extendedAt] = [record.entry.sequence, record.entry.attempts, now];
    },
    async extend() {
      if (isValidFor(requestMs)) return;
      const now = moment();
      const rows = await update(durably, `lease_until = ${fromNow("$3")}`, [leaseMs]).catch((error: unknown) => {
        throw journalFailure(error, shown, "The request was not sent.");
      });
      if (rows.length === 0) throw await leaseLost(parts, { id, epoch, attempts });
      extendedAt = now;
    },
    async release() {
      if (isReleased) return;
      isReleased = true;
      // The release does not wait for the disk: if a crash undoes it, the lease ends at its time limit.
      const quickly = durably.replace("'on'", "'off'");
      await update(quickly, "holder = NULL, held_since = NULL, lease_until = NULL").catch(() => {});
    },
  };
}
