// Owns: the time in which the old and the new credential of a rotation both work: it begins when the new one is known to
// work, a short one is waited for, a long one left to `journal recover`.
// Must not know: flags, terminals, files, what is rotated and how it was proven.
import { Failure } from "../errors.ts";
import type { Entry, EntryProgress } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { wait } from "./trying-again.ts";
import type { Workbench } from "./workbench.ts";

/** An overlap up to this long is waited for; a longer one is finished by `journal recover` when it is due. */
const longestWaitMs = 15 * 60_000;

export type Rotated = "client" | "key";

/** What the journal keeps of a proof: how it was made, and until when both are to work. */
export function proven(bench: Workbench, { detail }: Entry, how: string): Pick<EntryProgress, "detail"> {
  const until = new Date(bench.clock.now() + (detail.overlap_ms ?? 0)).toISOString();
  return { detail: { ...detail, proven: how, overlap_until: until } };
}

/** Says how a rotation that is gone on with was begun, where something else was typed now: what is begun stays as it is. */
export function tellBegun(
  bench: Workbench,
  { detail }: Entry,
  wanted: { readonly overlapMs: number; readonly keepOld?: boolean },
): void {
  const begun = { overlapMs: detail.overlap_ms ?? 0, keepOld: detail.keep_old === true };
  if (begun.overlapMs === wanted.overlapMs && begun.keepOld === (wanted.keepOld ?? false)) return;
  const how = begun.keepOld ? "with --keep-old" : `to revoke the old one, with --overlap ${begun.overlapMs / 1000}s`;
  bench.tell.warn(`It was begun ${how}, and ends so: what was typed now is not used for that.`);
}

/** Waits the overlap out. @throws Failure `pending` where it is longer than a command should wait */
export async function overlap(bench: Workbench, drive: EntryLease, what: Rotated): Promise<void> {
  const until = String(drive.entry.detail.overlap_until);
  const leftMs = Date.parse(until) - bench.clock.now();
  if (!(leftMs > 0)) return;
  await drive.record({ state: "pending" });
  if (leftMs > longestWaitMs)
    throw new Failure("pending", `The new ${what} works; the old one is revoked when the overlap ends, at ${until}.`, {
      meaning: "Type the command below then, or let a nightly job do it.",
    });
  await wait(bench, leftMs, `Both ${what}s work; the old one is revoked when the overlap ends`);
}

/** The secret of the new one, where an earlier process left it readable. */
export function rereadSecret(bench: Workbench, child: Entry): Promise<string | undefined> {
  return child.destination ? bench.secrets.reread(child.destination) : Promise.resolve(undefined);
}
