// What a crash may leave of work that is over: space for a secret, a copy that no one needs, the key of its digest.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { settledStates } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import { placesOf } from "../../secrets/destination.ts";

/** What is done after the work: a journal that cannot be read by then does not change how that ended. */
export async function tidied<T>(context: Context, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    context.output.warn(`After the work the journal could not be read: ${error.message}`);
    return undefined;
  }
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
  await removeEscrowed(journal);
  const undelivered = await context.secrets.undelivered();
  const entries = [
    ...(await journal.select({ states: settledStates, ids: [...undelivered.rooms(), ...ids] })),
    ...(lookedBack > 0 ? await journal.select({ states: settledStates, limit: lookedBack }) : []),
  ];
  if (entries.length === 0) return;
  const open = new Set((await journal.unsettled()).map(({ id }) => id));
  for (const { id, state, parent, destination } of new Map(entries.map((entry) => [entry.id, entry])).values()) {
    try {
      // A delivered secret needs no copy: a crash may have come between the two.
      const keepsProof = parent !== null && open.has(parent);
      if (state === "done" || state === "abandoned" || state === "replaced" || !undelivered.isKept(id))
        await undelivered.destroy(id, { keepsProof });
      for (const place of destination ? placesOf(destination) : []) await context.secrets.removeReserve(place, id);
    } catch (error) {
      context.output.warn(
        `Space that ${id} reserved for its secret was not released: ${error instanceof Error ? error.message : ""}`,
      );
    }
  }
}

/** The ciphertext of a secret that was delivered, given up or replaced: a crash came before it was removed. */
async function removeEscrowed(journal: Journal): Promise<void> {
  const { escrow } = journal;
  const ids = [...((await escrow?.ids()) ?? [])];
  if (ids.length === 0) return;
  for (const { id } of await journal.select({ states: ["done", "abandoned", "replaced"], ids }))
    await escrow?.remove(id);
}
