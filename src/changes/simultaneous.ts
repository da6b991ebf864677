// Two commands that ask for the same thing at the same moment make two of it. Neither waits for the other: who runs one twice
// may want two. Each says so at its end, since the second one may have started after the first one looked.
import { Failure } from "../errors.ts";
import { type Entry, isSameRequest } from "../journal/entry.ts";
import type { Admission } from "../journal/journal.ts";
import type { Workbench } from "./workbench.ts";

/** States in which nothing was made, or is in use. */
const nothing: ReadonlySet<string> = new Set(["refused", "abandoned", "replaced", "unusable"]);

/** Says who is at the same request at this moment: each makes its own. */
export function tellAlongside({ tell }: Workbench, { alongside = [] }: Admission): void {
  for (const { entry, holder } of alongside)
    tell.warn(
      `${holder.user} on ${holder.host} (process ${holder.pid}) has been making the same since ${holder.since} (journal entry ${entry}). This makes another one.`,
    );
}

/** When a creation began, by the clock that the journal's records have. */
export function beginning({ clock }: Workbench): string {
  return new Date(clock.now()).toISOString();
}

/**
 * Says which other creations of the same request were under way since this one began, and how to revoke one.
 * @param since as `beginning` gave it
 */
export async function tellSimultaneous(bench: Workbench, own: Entry, since: string): Promise<void> {
  const others = (await touchedSince(bench, since)).filter(
    (entry) =>
      entry.id !== own.id &&
      !nothing.has(entry.state) &&
      entry.parent === own.parent &&
      entry.replaces === own.replaces &&
      entry.detail.policy_name === own.detail.policy_name &&
      isSameRequest(entry, own),
  );
  if (others.length === 0) return;
  const names = others.map(({ id, resource_id: made }) => `${made ?? "not finished"} (journal entry ${id})`).join(", ");
  const [what, noun] = own.operation === "access_key.create" ? ["key", "keys"] : ["client", "oauth-clients"];
  // Of all that were made the newest, whichever process says it: two logs that name each other's would cost both.
  const newest = [own, ...others].reduce((latest, entry) => (entry.id > latest.id ? entry : latest));
  const next = newest.resource_id === null ? `journal show ${newest.id}` : `${noun} revoke ${newest.resource_id}`;
  bench.tell.warn(`The same ${what} was created at the same moment: ${names}. If you need only one: integ ${next}`);
}

/** How the creation ended stays what it is, whether the journal can be read again or not. */
async function touchedSince({ journal }: Workbench, since: string): Promise<readonly Entry[]> {
  try {
    return await journal.select({ all: true, since });
  } catch (error) {
    if (error instanceof Failure) return [];
    throw error;
  }
}
