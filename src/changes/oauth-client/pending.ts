// A creation that the service accepted and has not completed (§4.2): the key is kept, the client inspected, nothing created
// again.
import type { OAuthClient } from "../../api/oauth-clients.ts";
import { Failure } from "../../errors.ts";
import { type Entry, nextStep } from "../../journal/entry.ts";
import {
  detailsOf,
  isInterruption,
  prerequisite,
  recoveryIn,
  saysNothingWasDone,
  wait,
  type Workbench,
} from "../workbench.ts";

/**
 * Inspects the client until it has another status.
 * @assumed §3.1 does not show how `pending` ends: the client is read again and again, and any other status is the end
 * @throws Failure `pending` once `waitMs` is over
 */
export async function untilNotPending(
  bench: Workbench,
  { entry, id, waitMs }: { readonly entry: Entry; readonly id: string; readonly waitMs: number },
): Promise<OAuthClient> {
  const { clock, account } = bench;
  const deadline = clock.elapsed() + waitMs;
  for (let round = 0; ; round++) {
    const answer = await account.service.oauthClients.get(id);
    if (answer.kind === "answered" && answer.value.status !== "pending") return answer.value;
    const pauseMs = Math.min(10_000, 500 * 2 ** round) * (0.5 + clock.random() / 2);
    if (clock.elapsed() + pauseMs > deadline) throw stillPending(entry);
    try {
      await wait(bench, pauseMs, `Client ${id} is pending`);
    } catch (error) {
      throw error instanceof Failure ? stillPending(entry, clock.interruption.reason) : error;
    }
  }
}

/**
 * @param because what ended the wait: an interruption keeps its own exit code (130, 143), since nothing is unknown; a
 * destination that can take no secret is reported with what fixes it
 */
export function stillPending(entry: Entry, because?: unknown): Failure {
  const failure = because instanceof Failure ? because : undefined;
  const stops = failure !== undefined && saysNothingWasDone(failure) ? failure : undefined;
  return new Failure(
    failure !== undefined && isInterruption(failure) ? failure.kind : "pending",
    `The service accepted the creation and has not completed it yet.${stops ? ` ${stops.message}` : ""}`,
    {
      ...detailsOf(entry),
      meaning: `The idempotency key is saved; the service continues the creation.${stops ? prerequisite(stops) : ""}`,
      ...((stops && recoveryIn(stops.details)) ?? { nextCommand: nextStep(entry) ?? undefined }),
    },
  );
}
