// Carrying entries into and out of a team's journal: all of them in one transaction, or none.
import { Failure } from "../../errors.ts";
import { movedAway } from "../admission.ts";
import type { Entry } from "../entry.ts";
import {
  assertOwnKeys,
  type Coming,
  countMerged,
  type EntryRecords,
  inBatches,
  type Merged,
  type MergeOptions,
  type MergeStep,
  mergeStep,
  sumOfMerged,
} from "../merge.ts";
import { type Moved, recordHash, stepOfContent } from "../record.ts";
import { entryColumns, recordColumns } from "./columns.ts";
import type { LeaseParts } from "./lease.ts";
import type { Tables } from "./schema.ts";
import type { Query } from "./session.ts";

type TransferParts = Pick<LeaseParts, "session" | "tables" | "shown">;

const atOnce = 500;

export async function* recordsIn({ session, tables }: TransferParts): AsyncIterable<EntryRecords> {
  for (let after = ""; ; ) {
    const rows = await session.read(
      `SELECT entry, array_agg(content ORDER BY position) AS contents FROM ${tables.records}
       WHERE entry IN (SELECT id FROM ${tables.entries} WHERE id > $1 ORDER BY id LIMIT ${atOnce})
       GROUP BY entry ORDER BY entry`,
      [after],
    );
    for (const { entry, contents } of rows) yield { id: String(entry), contents: contents as string[] };
    const last = rows.at(-1);
    if (last === undefined) return;
    after = String(last.entry);
  }
}

export async function mergeInto(
  { session, tables, shown }: TransferParts,
  coming: Coming,
  { isMove = false }: MergeOptions,
): Promise<Merged> {
  const batches = inBatches(coming, atOnce);
  // A long journal takes time until it gives its first entry: nothing waits for the lock meanwhile.
  const first = await batches.next();
  return session.transaction(async (query) => {
    await query(`LOCK TABLE ${tables.entries} IN SHARE ROW EXCLUSIVE MODE`);
    if (!isMove) await assertHere(query, { tables, shown });
    let merged = countMerged([]);
    for (let next = first; !next.done; next = await batches.next()) {
      const steps = await stepsFor(query, tables, next.value);
      const changed = steps.filter(({ contents }) => contents.length > 0);
      await assertFree(query, tables, changed);
      if (changed.length > 0) await append(query, tables, changed);
      merged = sumOfMerged(merged, countMerged(steps));
    }
    return merged;
  });
}

async function stepsFor(
  query: Query,
  { records, entries }: Tables,
  coming: readonly EntryRecords[],
): Promise<MergeStep[]> {
  const ids = coming.map(({ id }) => id);
  const rows = await query(
    `SELECT entry, array_agg(hash ORDER BY position) AS hashes FROM ${records} WHERE entry = ANY($1) GROUP BY entry`,
    [ids],
  );
  const hashes = new Map(rows.map((row) => [String(row.entry), row.hashes as string[]]));
  const steps = coming.map((entry) => mergeStep(entry, (id) => hashes.get(id) ?? []));
  const keys = steps.map(({ entry }) => entry.idempotency_key).filter((key) => key !== null);
  const taken = await query(`SELECT id, base_url, idempotency_key FROM ${entries} WHERE idempotency_key = ANY($1)`, [
    keys,
  ]);
  const holder = ({ base_url, idempotency_key }: Entry): string | undefined => {
    const row = taken.find((one) => one.base_url === base_url && one.idempotency_key === idempotency_key);
    return row && String(row.id);
  };
  assertOwnKeys(steps, holder);
  return steps;
}

async function assertFree(query: Query, { entries }: Tables, changed: readonly MergeStep[]): Promise<void> {
  const ids = changed.filter(({ there }) => there > 0).map(({ id }) => id);
  const text = `SELECT id FROM ${entries} WHERE id = ANY($1) AND lease_until > clock_timestamp() LIMIT 1`;
  const [held] = await query(text, [ids]);
  if (held === undefined) return;
  throw new Failure("conflict", `The entry ${String(held.id)} is in use, and the import has new records for it.`, {
    meaning: "Nothing was imported.",
    hint: "Wait until it is released, then run the command again.",
  });
}

async function append(query: Query, { entries, records }: Tables, steps: readonly MergeStep[]): Promise<void> {
  const newest = (step: MergeStep): string => step.contents.at(-1) ?? "";
  const of = <T>(value: (step: MergeStep) => T): T[] => steps.map(value);
  const columns = steps.map(({ entry }) => entryColumns(entry));
  const column = (name: keyof ReturnType<typeof entryColumns>): unknown[] => columns.map((row) => row[name]);
  await query(
    `INSERT INTO ${entries} (id, operation, state, is_settled, profile, base_url, idempotency_key, fingerprint, parent,
       replaces, resources, updated_at, content, hash, position)
     SELECT id, operation, state, is_settled, profile, base_url, idempotency_key, fingerprint, parent, replaces,
       ARRAY(SELECT jsonb_array_elements_text(resources::jsonb)), updated_at, content, hash, position
     FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::text[], $8::text[],
       $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::int[])
       AS come (id, operation, state, is_settled, profile, base_url, idempotency_key, fingerprint, parent, replaces,
         resources, updated_at, content, hash, position)
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, is_settled = excluded.is_settled,
       resources = excluded.resources, updated_at = excluded.updated_at, content = excluded.content,
       hash = excluded.hash, position = excluded.position, epoch = integ_entries.epoch + 1`,
    [
      of(({ id }) => id),
      column("operation"),
      column("state"),
      column("is_settled"),
      column("profile"),
      column("base_url"),
      column("idempotency_key"),
      column("fingerprint"),
      column("parent"),
      column("replaces"),
      columns.map(({ resources }) => JSON.stringify(resources)),
      column("updated_at"),
      of(newest),
      of((step) => recordHash(newest(step))),
      of(({ there, contents }) => there + contents.length),
    ],
  );
  const rows = steps.flatMap(({ id, contents, there }) =>
    contents.map((content, index) => ({
      id,
      content,
      position: there + index + 1,
      ...recordColumns(stepOfContent(content).actor),
    })),
  );
  await query(
    `INSERT INTO ${records} (entry, position, epoch, content, hash, actor_user, actor_host, actor_run)
     SELECT entry, position, 0, content, hash, actor_user, actor_host, actor_run
     FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
       AS come (entry, position, content, hash, actor_user, actor_host, actor_run)`,
    [
      rows.map(({ id }) => id),
      rows.map(({ position }) => position),
      rows.map(({ content }) => content),
      rows.map(({ content }) => recordHash(content)),
      rows.map(({ actor_user }) => actor_user),
      rows.map(({ actor_host }) => actor_host),
      rows.map(({ actor_run }) => actor_run),
    ],
  );
}

/**
 * Condition of every statement that begins something: that the entries are still here. It is asked again once the statement
 * has the table's lock, so that what waited for a move's mark sees it.
 */
export function isHere({ meta }: Tables): string {
  return `NOT EXISTS (SELECT FROM ${meta} WHERE key = 'moved_to')`;
}

export function movedFrom({ session, tables }: TransferParts): Promise<Moved | undefined> {
  return markIn((text) => session.read(text), tables);
}

async function markIn(query: Query, { meta }: Tables): Promise<Moved | undefined> {
  const rows = await query(`SELECT key, value FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`);
  const to = rows.find(({ key }) => key === "moved_to");
  return to && { to: String(to.value), isUnfinished: rows.length > 1 };
}

/** @throws Failure `usage` if the entries were moved elsewhere */
export async function assertHere(
  query: Query,
  { tables, shown }: Pick<TransferParts, "tables" | "shown">,
): Promise<void> {
  const moved = await markIn(query, tables);
  if (moved !== undefined) throw movedAway(shown, moved);
}

/** @throws Failure `conflict` if someone works on an entry; `usage` if the entries are elsewhere */
export function markMovedIn({ session, tables, shown }: TransferParts, moved: Moved | undefined): Promise<void> {
  return session.transaction(async (query) => {
    await query(`LOCK TABLE ${tables.entries} IN SHARE ROW EXCLUSIVE MODE`);
    const before = await markIn(query, tables);
    if (before !== undefined && moved !== undefined && before.to !== moved.to) throw movedAway(shown, before);
    await query(`DELETE FROM ${tables.meta} WHERE key IN ('moved_to', 'is_unfinished')`);
    if (moved === undefined) return;
    const [held] = await query(`SELECT id FROM ${tables.entries} WHERE lease_until > clock_timestamp() LIMIT 1`);
    if (held !== undefined)
      throw new Failure("conflict", `The entry ${String(held.id)} is in use: the journal cannot be moved now.`, {
        meaning: "The journal is as it was.",
        hint: "Wait until it is released, then run the command again.",
      });
    // A holder that stood still past its lease would still record here: its epoch is over.
    await query(
      `UPDATE ${tables.entries} SET epoch = epoch + 1, quiet_until = greatest(quiet_until, lease_until), holder = NULL,
         held_since = NULL, lease_until = NULL WHERE lease_until IS NOT NULL`,
    );
    await query(`INSERT INTO ${tables.meta} (key, value) VALUES ('moved_to', $1)`, [moved.to]);
    if (moved.isUnfinished) await query(`INSERT INTO ${tables.meta} (key, value) VALUES ('is_unfinished', 'true')`);
  });
}
