// Whether a client that a key returns was made by the entry's own requests. A key given by hand may be used on other disks.
import type { Entry } from "../../journal/entry.ts";
import { beganAt } from "../workbench.ts";

/** Clocks that were compared differ by this much at most: what the service's Date leaves out, and the way of its answer. */
const comparedSkewMs = 10_000;

/** So long after a request left the service may still act on it. */
const lateMs = 60_000;

/** Of so many requests the journal keeps when they left. */
const mostRequests = 100;

/** What the entry of a key that others may use notes of a request that is about to leave. */
export function requestLeaves({ detail, attempts }: Entry, now: number): Entry["detail"] {
  const { own_key, requested_at = [] } = detail;
  // Of an entry of an earlier version the first ones are not known.
  if (own_key === true || (attempts > 0 && requested_at.length === 0)) return {};
  return { requested_at: [...requested_at.slice(1 - mostRequests), new Date(now).toISOString()] };
}

/**
 * True if no request of the entry can have made the client, or if that cannot be known: its secret was not lost here. Either
 * none of the requests went unanswered, or the client is older than all of them, or it was made long after one and before the
 * next. When they were sent, by the service's clock, is known only if the first one was answered: this machine's clock may
 * have been wrong then, whatever it says now.
 * @param mayHaveMade a request of the entry went unanswered
 */
export function wasMadeElsewhere(entry: Entry, createdAt: string, mayHaveMade: boolean): boolean {
  const { detail, clock_offset_ms } = entry;
  if (detail.own_key === true) return false;
  if (!mayHaveMade || detail.made_before === true || clock_offset_ms === null) return true;
  const madeAt = Date.parse(createdAt);
  if (madeAt < beganAt(entry) - comparedSkewMs) return true;
  // This machine's clock may have been set right since the first one.
  const times = (detail.requested_at ?? []).map((text) => Date.parse(text)).flatMap((at) => [at, at + clock_offset_ms]);
  return times.length > 0 && !times.some((at) => at - comparedSkewMs <= madeAt && madeAt <= at + lateMs);
}
