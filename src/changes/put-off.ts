// A request that the service refused as too early (429): nothing was changed, and the entry keeps the request, its key and the
// time at which it may be sent again (§4.2, §8).
import { Failure } from "../errors.ts";
import { dueAt, type Entry, type EntryProgress } from "../journal/entry.ts";
import { detailsOf, lastErrorOf, serviceTime, wait, type Workbench } from "./workbench.ts";
import { type NextStep, shell } from "../next-step.ts";

/** True if the service itself refused the request as too early. A token endpoint that does leaves the request unsent. */
export function isTooEarly({ kind, details }: Failure): boolean {
  return kind === "rate_limited" && details.unsent !== true;
}

/** What the journal keeps of a request that was too early, if no earlier one may have arrived. */
export function putOff(bench: Workbench, { detail }: Entry, failure: Failure): Partial<EntryProgress> {
  const { retryAfterSeconds } = failure.details;
  const until =
    retryAfterSeconds === undefined ? undefined : isoTime(serviceTime(bench) + Math.ceil(retryAfterSeconds) * 1000);
  return {
    state: "open",
    last_error: lastErrorOf(failure),
    detail: { ...detail, put_off: true, put_off_until: until },
  };
}

/** The last moment that a date can name is the end of a wait that is longer. */
function isoTime(ms: number): string {
  return new Date(Math.min(ms, 8.64e15)).toISOString();
}

/**
 * Waits as the service asked, if `--retry-for` allows it. A clock that was set back since says nothing of how long is left:
 * the service is asked.
 * @throws Failure `rate_limited` if the wait is longer; nothing was sent
 */
export async function untilDue(bench: Workbench, entry: Entry): Promise<void> {
  const { clock, account, retryForMs } = bench;
  const until = entry.detail.put_off === true ? dueAt(entry) : undefined;
  if (until === undefined || clock.now() < Date.parse(entry.updated_at)) return;
  const now = clock.now() + (account.service.clockOffset() ?? entry.clock_offset_ms ?? 0);
  const leftMs = Date.parse(until) - now;
  if (leftMs <= 0) return;
  if (leftMs > retryForMs)
    throw new Failure("rate_limited", `The service asked to wait until ${until}.`, {
      ...detailsOf(entry, { unsent: true }),
      meaning: "Nothing was sent now, and nothing was changed before. The request and its key are saved.",
      ...stepAfter(entry, { leftMs, until }),
    });
  await wait(bench, leftMs, "The service asked for this wait");
}

/** No one keeps a command waiting for days. */
const longestWaitMs = 24 * 60 * 60_000;

function stepAfter({ id }: Entry, { leftMs, until }: { leftMs: number; until: string }): NextStep {
  if (leftMs > longestWaitMs)
    return { hint: `Wait until ${until}, then run the command.`, nextCommand: shell`integ journal recover ${id}` };
  const minutes = `${Math.ceil(leftMs / 60_000) + 2}m`;
  return { nextCommand: shell`integ journal recover ${id} --retry-for ${minutes}` };
}
