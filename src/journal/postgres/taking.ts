// Taking the lease of an entry: one that no one has, or whose holder is a process of this machine that has ended. A running
// holder is waited for, then named.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../errors.ts";
import { changeable } from "../admission.ts";
import type { Holder } from "../journal.ts";
import { entryOfContent } from "../read-entry.ts";
import { describeHolder, holderIn, isHolderGone, leaseColumns, ownHolder } from "./holder.ts";
import { type LeaseParts, moment, PostgresLease, type Taken } from "./lease.ts";
import { durably, type Row } from "./session.ts";
import { isHere } from "./transfer.ts";
import { shell } from "../../next-step.ts";

/** A running process has an entry that is wanted. */
export class Busy {
  readonly id: string;
  readonly row: Row | undefined;

  constructor(id: string, row: Row | undefined) {
    this.id = id;
    this.row = row;
  }
}

export async function takeLease(parts: LeaseParts, id: string): Promise<PostgresLease | Busy> {
  const { session, tables } = parts;
  const taken = await takeRow(parts, id, { condition: "lease_until IS NULL OR lease_until <= clock_timestamp()" });
  if (taken !== undefined) return taken;
  const [row] = await session.read(`SELECT ${leaseColumns} FROM ${tables.entries} WHERE id = $1`, [id]);
  if (row === undefined || !isHolderGone(row)) return new Busy(id, row);
  return (await takeRow(parts, id, { condition: "epoch = $4", epoch: row.epoch })) ?? new Busy(id, row);
}

async function takeRow(
  parts: LeaseParts,
  id: string,
  { condition, epoch }: { readonly condition: string; readonly epoch?: unknown },
): Promise<PostgresLease | undefined> {
  const { session, tables, actor, leaseMs } = parts;
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
  const entry = row && entryOfContent(String(row.content));
  if (row === undefined || entry === undefined) return undefined;
  const quietMs = Number(row.quiet_ms ?? 0);
  const taken: Taken = {
    entry: changeable(entry),
    epoch: String(row.epoch),
    position: Number(row.position),
    hash: String(row.hash),
    askedAt,
    quiet: quietMs > 0 ? { until: String(row.quiet_until), ms: quietMs } : undefined,
  };
  return new PostgresLease(parts, taken);
}

/** Tries again until no running holder is in the way, or the time is over. */
export async function waitForHolder<T>(
  { waitMs }: { readonly waitMs: number },
  attempt: () => Promise<T | Busy>,
): Promise<T> {
  const end = performance.now() + waitMs;
  for (let round = 0; ; round += 1) {
    const came = await attempt();
    if (!(came instanceof Busy)) return came;
    const left = end - performance.now();
    if (left <= 0) throw timedOut(came, waitMs);
    await sleep(Math.min(left, 10 * 2 ** Math.min(round, 5)));
  }
}

function timedOut({ id, row }: Busy, waitMs: number): Failure {
  const holder = row && holderIn(row);
  const who = holder === undefined ? "another process" : describeHolder(holder);
  const times = holder === undefined ? "" : ` since ${holder.since}; its lease ends at ${holder.until}`;
  const what = `Journal entry ${id} is in use by ${who}${times}; integ waited ${Math.round(waitMs / 100) / 10} s.`;
  return new Failure("outcome_unknown", what, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Wait for that process, or take the entry from it if it has ended.",
    nextCommand: shell`integ journal release ${id}`,
    entry: id,
  });
}

/** Ends the lease of a holder that was seen. What it has sent may still arrive until that lease would have ended. */
export async function takeAway({ session, tables }: LeaseParts, id: string, seen: Holder): Promise<void> {
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
