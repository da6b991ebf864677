// What a crash may leave of work that is over: space for a secret, a copy that no one needs, the key of its digest.
import { destroyCopy } from "../../operations/secret-delivery.ts";
import { holding } from "../../operations/workbench.ts";
import { keepingOf } from "./change.ts";
import type { Context } from "../../context.ts";
import { onFailure } from "../../errors.ts";
import { type Entry, isInPlace, settledStates } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import { laterRotation } from "../../journal/rotations.ts";
import { placesOf } from "../../secrets/destination.ts";

/** What is done after the work: a journal that cannot be read by then does not change how that ended. */
export async function tidied<T>(context: Context, work: () => Promise<T>): Promise<T | undefined> {
  const unread = onFailure(({ message }): undefined => {
    context.output.warn(`After the work the journal could not be read: ${message}`);
  });
  return work().catch(unread);
}

/**
 * Settled work needs no space for a secret any more: what a crash left of it is removed.
 * @param about.ids entries of this run
 * @param about.lookedBack so many of the newest entries are looked at besides
 */
export async function releaseSettled(
  context: Context,
  { ids, lookedBack }: { readonly ids: readonly string[]; readonly lookedBack: number },
): Promise<void> {
  const journal = await context.journal();
  const secrets = await keepingOf(context);
  const kept = [...(await context.secrets.undelivered()).rooms(), ...((await journal.escrow?.ids()) ?? [])];
  const entries = [
    ...(await journal.select({ states: settledStates, ids: [...kept, ...ids] })),
    ...(lookedBack > 0 ? await journal.select({ states: settledStates, limit: lookedBack }) : []),
  ];
  const bench = { journal, secrets, tell: { warn: (text: string) => context.output.warn(text) } };
  for (const entry of new Map(entries.map((one) => [one.id, one])).values()) {
    try {
      if (secrets.isKept(entry.id)) await destroyLeft(bench, entry);
      else await secrets.release(entry.id);
      for (const place of entry.destination ? placesOf(entry.destination) : [])
        await secrets.removeReserve(place, entry.id);
    } catch (error) {
      context.output.warn(
        `Space that ${entry.id} reserved for its secret was not released: ${error instanceof Error ? error.message : ""}`,
      );
    }
  }
}

/** A crash may have come between the end of the work and the destruction of its copy: what is seen now decides. */
async function destroyLeft(
  bench: Parameters<typeof destroyCopy>[0]["bench"] & { readonly journal: Journal },
  { id, state }: Entry,
): Promise<void> {
  if (state !== "done" && state !== "abandoned" && state !== "replaced") return;
  const lease = await bench.journal.tryLease(id);
  if (lease === null) return;
  await holding(lease, async () => {
    if (state === "replaced") {
      // Another machine may have seen the later rotation in place, and ended this one while its copy was here.
      if (!isInPlace(lease.entry) || !(await lease.isTrusted())) return;
      const later = await laterRotation(bench.journal, lease.entry, bench.secrets);
      if (later !== undefined) await destroyCopy({ bench, lease }, { rotatedAgain: later });
      return;
    }
    // A person typed `forget`: that record is signed.
    if (state === "abandoned" && (await lease.isTrusted())) await destroyCopy({ bench, lease }, { typed: "forget" });
    else await destroyCopy({ bench, lease });
  });
}
