// Forgets settled entries with their records: the one thing that deletes, for a role that may.
import type { Pruned } from "../journal.ts";
import { entryOfContent } from "../read-entry.ts";
import { prunable } from "../prunable.ts";
import type { LeaseParts } from "./lease.ts";
import { assertHere } from "./transfer.ts";

export async function pruneTables(
  { session, tables, shown }: Pick<LeaseParts, "session" | "tables" | "shown">,
  {
    before,
    includeLive,
    isTrial,
  }: { readonly before: string; readonly includeLive: boolean; readonly isTrial: boolean },
): Promise<Pruned> {
  return session.transaction(async (query) => {
    // Nothing is admitted or recorded meanwhile: what is judged is what is removed.
    if (!isTrial) await query(`LOCK TABLE ${tables.entries} IN SHARE ROW EXCLUSIVE MODE`);
    await assertHere(query, { tables, shown });
    const rows = await query(
      `SELECT id, content, coalesce(lease_until > clock_timestamp(), false) AS is_held FROM ${tables.entries} ORDER BY id DESC`,
    );
    const entries = rows.flatMap((row) => entryOfContent(String(row.content)) ?? []);
    const leased = new Set(rows.filter((row) => row.is_held === true).map((row) => String(row.id)));
    const { going, live, keptLive } = prunable(entries, { before, leased, includeLive });
    if (!isTrial && going.size > 0) {
      for (const [table, column] of [
        [tables.records, "entry"],
        [tables.escrow, "entry"],
        [tables.entries, "id"],
      ])
        await query(`DELETE FROM ${table} WHERE ${column} = ANY($1)`, [[...going]]);
    }
    return { removed: going.size, live, keptLive };
  });
}
