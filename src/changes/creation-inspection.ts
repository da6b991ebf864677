// Owns: a creation that the service holds pending, looked at until it is something else, and one whose client must not be
// used (§3.1, §4.2).
// Must not know: flags, terminals, files, when to send (oauth-client-creation.ts).
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure } from "../errors.ts";
import { type Course, stillPending, waitOr } from "./creation-course.ts";
import { destroyCopy } from "./creation-secret.ts";
import { detailsOf, recordAfterwards } from "./workbench.ts";

/**
 * `pending` (§4.2): the key is kept, the resource inspected, nothing created anew.
 * @assumed §3.1 does not show how it ends: it is looked at again and again, and any other status is its end
 */
export async function inspect(course: Course, client: OAuthClient): Promise<undefined> {
  const { bench, drive, options } = course;
  course.uncertain = true;
  await recordAfterwards(bench, drive, { state: "pending", resource_id: client.id, last_error: null });
  const deadline = bench.clock.now() + options.waitMs;
  for (let round = 0; ; round++) {
    const answer = await bench.account.service.oauthClients.get(client.id);
    const status = answer.kind === "answered" ? answer.value.status : "pending";
    if (answer.kind === "answered" && status !== "pending") {
      if (status !== "active") throw await unusable(course, answer.value);
      return undefined; // The next replay tells whether it still has a secret for us.
    }
    const pauseMs = Math.min(10_000, 500 * 2 ** round) * (0.5 + bench.clock.random() / 2);
    if (bench.clock.now() + pauseMs > deadline) throw stillPending(drive.entry);
    await waitOr(course, pauseMs, `Client ${client.id} is pending`, () =>
      stillPending(drive.entry, bench.clock.interruption.reason),
    );
  }
}

/** The failure of a creation whose client must not be used (§4.2): a secret that came for it is good for nothing. */
export async function unusable(course: Course, client: OAuthClient): Promise<Failure> {
  const { bench, drive } = course;
  if (!course.settledBefore || drive.entry.state === "done")
    await recordAfterwards(bench, drive, { state: "unusable", resource_id: client.id, last_error: null });
  await destroyCopy(course);
  return new Failure("unusable", `The client ${client.id} is ${client.status}: it must not be used.`, {
    ...detailsOf(drive.entry),
    meaning: "A receipt under the same key always shows this client.",
    hint: "Create another one under a new key: the same command with --new, and without --idempotency-key.",
  });
}
