// Removes reserved space and unneeded copies of secrets, which finished work can leave after a crash.
import { destroyCopy } from "../../operations/secret-delivery.ts";
import { withLease } from "../../operations/workbench.ts";
import { secretKeepingOf } from "./change.ts";
import type { Context } from "../../context.ts";
import { onFailure } from "../../errors.ts";
import { type Entry, isInPlace, settledStates } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import { laterRotation } from "../../journal/rotations.ts";
import { placesOf } from "../../secrets/destination.ts";

export async function cleanUp<T>(context: Context, work: () => Promise<T>): Promise<T | undefined> {
  const warn = onFailure(({ message }): undefined => {
    context.output.warn(`After the work the journal could not be read: ${message}`);
  });
  return work().catch(warn);
}

/**
 * Checks finished entries: those of `ids`, the `newestCount` newest, and those with a kept secret or reserved space.
 */
export async function releaseSettled(
  context: Context,
  { ids, newestCount }: { readonly ids: readonly string[]; readonly newestCount: number },
): Promise<void> {
  const journal = await context.journal();
  const secrets = await secretKeepingOf(context);
  const kept = [...(await context.secrets.undelivered()).entriesWithSpace(), ...((await journal.escrow?.ids()) ?? [])];
  const settled = { states: settledStates, trusted: true };
  const entries = [
    ...(await journal.select({ ...settled, ids: [...kept, ...ids] })),
    ...(newestCount > 0 ? await journal.select({ ...settled, limit: newestCount }) : []),
  ];
  const bench = { journal, secrets, tell: { warn: (text: string) => context.output.warn(text) } };
  for (const entry of new Map(entries.map((one) => [one.id, one])).values()) {
    try {
      if (secrets.isKept(entry.id)) await destroyLeftover(bench, entry);
      else await secrets.release(entry.id);
      for (const place of placesOf(entry.destination)) await secrets.removeReserve(place, entry.id);
    } catch (error) {
      context.output.warn(
        `Space that ${entry.id} reserved for its secret was not released: ${error instanceof Error ? error.message : ""}`,
      );
    }
  }
}

/** The copy is destroyed only with the evidence that the interrupted work needed. */
async function destroyLeftover(
  bench: Parameters<typeof destroyCopy>[0] & { readonly journal: Journal },
  { id, state }: Entry,
): Promise<void> {
  if (state !== "done" && state !== "abandoned" && state !== "replaced") return;
  const lease = await bench.journal.tryLease(id);
  if (lease === null) return;
  await withLease(lease, async () => {
    if (state === "replaced") {
      // Another machine may have ended this rotation because of a later one, and could not destroy this machine's copy.
      if (!isInPlace(lease.entry) || !(await lease.isTrusted())) return;
      const later = await laterRotation(bench.journal, lease.entry, bench.secrets);
      if (later !== undefined) await destroyCopy(bench, lease.entry, { rotatedAgain: later });
      return;
    }
    // A person typed `forget`, as the signed record shows.
    if (state === "abandoned" && (await lease.isTrusted())) await destroyCopy(bench, lease.entry, { typed: "forget" });
    else await destroyCopy(bench, lease.entry);
  });
}
