// Who has the lease of an entry, as its row names them, and whether that process has ended.
import { hasEnded, identify, type ProcessIdentity } from "../../disk/lock-owner.ts";
import { type Actor, readActor } from "../actor.ts";
import type { Holder } from "../journal.ts";
import type { Row } from "./session.ts";

/** What a row says about its lease, times in ISO 8601 UTC by the server's clock. */
export const leaseColumns = `holder, epoch::text,
  to_char(held_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since,
  to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS until,
  to_char(quiet_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS quiet_until,
  (extract(epoch FROM quiet_until - clock_timestamp()) * 1000)::float8 AS quiet_ms,
  coalesce(lease_until > clock_timestamp(), false) AS is_held`;

let own: ProcessIdentity | undefined;

function ownProcess(): ProcessIdentity {
  return (own ??= identify(process.pid));
}

/** This process as a row names it. */
export function ownHolder(actor: Actor): string {
  return JSON.stringify({ ...actor, process: ownProcess() });
}

interface Named {
  readonly actor: Actor;
  readonly process: ProcessIdentity;
}

function named(row: Row): Named | undefined {
  if (typeof row.holder !== "string") return undefined;
  const read = JSON.parse(row.holder) as { process?: Partial<ProcessIdentity> };
  const actor = readActor(read);
  const { pid, start = null, boot = null, space = null } = read.process ?? {};
  if (actor === null || typeof pid !== "number") return undefined;
  return { actor, process: { pid, start, boot, space, host: actor.host } };
}

/** Who has the lease of a row now. */
export function holderIn(row: Row): Holder | undefined {
  const { actor, process } = named(row) ?? {};
  if (row.is_held !== true || actor === undefined || process === undefined) return undefined;
  return { ...actor, pid: process.pid, since: String(row.since), until: String(row.until) };
}

/**
 * Whether the holder is a process of this machine that has ended. Where the system does not name its boot (macOS), another
 * machine may have the same name: the lease runs out then.
 */
export function isHolderGone(row: Row, self = ownProcess()): boolean {
  const { process: holder } = named(row) ?? {};
  return holder !== undefined && holder.boot !== null && holder.pid !== self.pid && hasEnded(holder, self);
}

/** `process 12 (ada on desk)` */
export function describeHolder({ pid, user, host, run }: Holder): string {
  return `process ${pid} (${user} on ${host}${run === undefined ? "" : `, ${run}`})`;
}
