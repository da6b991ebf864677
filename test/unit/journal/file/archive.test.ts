// Above a size limit, finished entries without a valid client or key move to an archive; the journal still finds them.
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { EntryProgress } from "../../../../src/journal/entry.ts";
import type { Intent, Journal } from "../../../../src/journal/journal.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { longJournal, writeJournal } from "../../../support/long-journal.ts";
import { ada, clock, folder, intent, journalPath } from "../intent.ts";

const shared = clock();
const at = (path: string, archiveBytes = 3000): Journal => fileJournal(path, { now: shared, actor: ada, archiveBytes });
const archiveOf = (path: string): string => join(dirname(path), "archive.ndjson");
const recordsIn = (path: string): number =>
  existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n").length - 1 : 0;

async function add(journal: Journal, changes: Partial<Intent>, ...steps: Partial<EntryProgress>[]): Promise<string> {
  const { lease } = await journal.admit(intent(changes), { fresh: true });
  for (const step of steps) await lease.record(step);
  await lease.release();
  return lease.entry.id;
}

async function addRefused(journal: Journal, count = 6): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1)
    ids.push(await add(journal, { fingerprint: `refused ${number}` }, { state: "refused" }));
  return ids;
}

const idsOf = async (journal: Journal, filter: Parameters<Journal["select"]>[0]): Promise<string[]> =>
  (await journal.select(filter)).map(({ id }) => id);

test("entries that created nothing move above the size limit; unfinished and live ones stay", async () => {
  const path = journalPath();
  const journal = at(path, 1e9);
  const live = await add(journal, {}, { state: "done", resource_id: "oc_1" });
  const open = await add(journal, { fingerprint: "open" }, { state: "unknown", attempts: 1 });
  const gone = await addRefused(journal);
  const before = await journal.select({ all: true });
  expect(existsSync(archiveOf(path))).toBe(false);
  const next = await add(at(path), { fingerprint: "next" });
  expect(await idsOf(at(path), { all: true })).toEqual([next, open, live]);
  expect(recordsIn(archiveOf(path))).toBe(12);
  expect(statSync(archiveOf(path)).mode & 0o777).toBe(0o600);
  const all = await at(path).select({ all: true, archived: true });
  expect(all.map(({ id }) => id)).toEqual([next, ...gone.toReversed(), open, live]);
  expect(all.slice(1)).toEqual(before);
  expect(await at(path).verify()).toEqual([]);
  expect(await at(path).count()).toBe(9);
});

test("below the size limit nothing moves", async () => {
  const path = journalPath();
  await addRefused(at(path, 1e9), 2);
  await add(at(path, 20_000), { fingerprint: "next" });
  expect(existsSync(archiveOf(path))).toBe(false);
});

test("an archived entry is found by its id, its prefix, its children and its key", async () => {
  const path = journalPath();
  const journal = at(path, 1e9);
  const { lease } = await journal.admit(intent({ fingerprint: "key" }), { key: "by hand" });
  await lease.record({ state: "refused" });
  await lease.release();
  const { id } = lease.entry;
  const child = await add(journal, { parent: id, fingerprint: "child" }, { state: "refused" });
  await addRefused(journal);
  await add(at(path), { fingerprint: "next" });
  expect(await idsOf(at(path), { all: true })).not.toContain(id);
  expect((await at(path).find(id)).state).toBe("refused");
  expect((await at(path).find(id.slice(0, 9))).id).toBe(id);
  expect((await at(path).history(id)).map(({ state }) => state)).toEqual(["open", "refused"]);
  expect(await idsOf(at(path), { all: true, ids: [id] })).toEqual([id]);
  expect(await idsOf(at(path), { all: true, parent: id })).toEqual([child]);
  await expect(at(path).admit(intent({ fingerprint: "another" }), { key: "by hand" })).rejects.toMatchObject({
    kind: "conflict",
    details: { entry: id },
  });
  expect(await at(path).admit(intent({ fingerprint: "key" }), { key: "by hand" })).toMatchObject({ kind: "same_key" });
});

test("an archived entry that is resumed returns with all its records", async () => {
  const path = journalPath();
  const [id = ""] = await addRefused(at(path, 1e9));
  await add(at(path), { fingerprint: "next" });
  const lease = await at(path).lease(id);
  await lease.record({ state: "abandoned" });
  await lease.release();
  expect(await idsOf(at(path), { all: true })).toContain(id);
  expect((await at(path).history(id)).map(({ state }) => state)).toEqual(["open", "refused", "abandoned"]);
  expect(await at(path).verify()).toEqual([]);
  const others: string[] = await addRefused(at(path, 1e9));
  await add(at(path), { fingerprint: "next 2" });
  expect(await idsOf(at(path), { all: true })).not.toContain(id);
  expect((await at(path).history(id)).map(({ state }) => state)).toEqual(["open", "refused", "abandoned"]);
  expect(await at(path).verify()).toEqual([]);
  expect(others.length).toBe(6);
});

test("a new id is above every archived id, even though the clock was set back", async () => {
  const path = journalPath();
  const late = fileJournal(path, { now: clock(Date.UTC(2030, 0, 1)), actor: ada, archiveBytes: 1e9 });
  const gone = await addRefused(late);
  await add(fileJournal(path, { now: shared, actor: ada, archiveBytes: 3000 }), { fingerprint: "next" });
  const [newest = ""] = await idsOf(at(path), {});
  const again = await add(at(path), { fingerprint: "again" });
  expect(recordsIn(archiveOf(path))).toBe(12);
  for (const id of gone) expect([newest > id, again > id]).toEqual([true, true]);
});

test("a revoked client's entry moves with its revocation; entries from which a policy's item finds its client stay", async () => {
  const path = journalPath();
  const journal = at(path, 1e9);
  const rotation = { operation: "oauth_client.rotate", idempotent: false } as const;
  const policy = { id: "pol_web", item: "web" };
  const first = await add(journal, { policy }, { state: "done", resource_id: "oc_1" });
  const second = await add(
    journal,
    { ...rotation, fingerprint: "1", detail: { old_client: "oc_1" } },
    { state: "done", resource_id: "oc_2" },
  );
  const third = await add(
    journal,
    { ...rotation, fingerprint: "2", detail: { old_client: "oc_2" } },
    { state: "done", resource_id: "oc_3" },
  );
  const alone = await add(journal, { fingerprint: "alone" }, { state: "done", resource_id: "oc_9" });
  const revocation = { operation: "oauth_client.revoke", idempotent: false, fingerprint: "r" } as const;
  const by = await add(journal, revocation, { state: "done", resource_id: "oc_9" });
  await addRefused(journal);
  await add(at(path), { fingerprint: "next" });
  const here = await idsOf(at(path), { all: true });
  expect(here).toEqual(expect.arrayContaining([first, second, third]));
  expect(here).not.toContain(alone);
  expect(here).not.toContain(by);
  // The new rotation names the item, so the earlier entries are no longer needed.
  const named = await add(
    at(path, 1e9),
    { ...rotation, fingerprint: "3", policy, detail: { old_client: "oc_3" } },
    { state: "done", resource_id: "oc_4" },
  );
  await addRefused(at(path, 1e9));
  await add(at(path), { fingerprint: "next 2" });
  const later = await idsOf(at(path), { all: true });
  expect(later).toContain(named);
  for (const id of [first, second, third]) expect(later).not.toContain(id);
});

test.each(["journal", "archive"])("nothing moves while the %s is damaged", async (which) => {
  const path = journalPath();
  await addRefused(at(path, 1e9));
  if (which === "archive") {
    await add(at(path), { fingerprint: "next" });
    await addRefused(at(path, 1e9));
  }
  const file = which === "journal" ? path : archiveOf(path);
  appendFileSync(file, '{"sum":"0000000000000000","v":3}\n');
  await add(at(path, 1e9), { fingerprint: "last" });
  const before = readFileSync(archiveOf(path), { flag: "a+" });
  const count = (await idsOf(at(path), { all: true })).length;
  await add(at(path), { fingerprint: "after" });
  expect(readFileSync(archiveOf(path), { flag: "a+" })).toEqual(before);
  expect(await idsOf(at(path), { all: true })).toHaveLength(count + 1);
});

test.each(["journal", "archive"])("only prune rewrites damaged files: the %s", async (which) => {
  const [path, other] = [journalPath(), at(journalPath())];
  const [id] = await addRefused(at(path));
  await add(at(path), { fingerprint: "next" });
  await add(other, { fingerprint: "of another" });
  const file = which === "journal" ? path : archiveOf(path);
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, lines.toSpliced(1, which === "journal" ? 0 : 1).join("\n"));
  if (which === "journal") appendFileSync(file, '{"sum":"0000000000000000","v":3}\n');
  const before = [readFileSync(path), readFileSync(archiveOf(path))];
  const refusal = { kind: "usage", message: `The journal ${path} is damaged, and is not written again.` };
  await expect(at(path).merge(other.records())).rejects.toMatchObject(refusal);
  const seen = await at(path).recordsOf([id!]);
  await expect(at(path).trust(seen)).rejects.toMatchObject(refusal);
  await expect(at(path).markMoved({ to: "elsewhere", isUnfinished: true })).rejects.toMatchObject(refusal);
  expect([readFileSync(path), readFileSync(archiveOf(path))]).toEqual(before);
  await at(path).prune(1e9);
  expect(await at(path).merge(other.records())).toMatchObject({ added: 1 });
});

test("prune removes old archived entries; export and move include the archive", async () => {
  const path = journalPath();
  const gone = await addRefused(at(path, 1e9));
  await add(at(path), { fingerprint: "next" });
  const carried = [];
  for await (const { id } of at(path).records()) carried.push(id);
  expect(carried).toEqual(expect.arrayContaining(gone));
  const target = at(join(folder(), "journal.ndjson"));
  expect(await target.merge(at(path).records())).toMatchObject({ added: 7 });
  expect(await at(path).merge(target.records())).toMatchObject({ unchanged: 7 });
  const later = fileJournal(path, { now: () => Date.UTC(2031, 0, 1), actor: ada });
  expect(await later.prune(0)).toMatchObject({ removed: 6 });
  expect(recordsIn(archiveOf(path))).toBe(0);
  expect(await at(path).count()).toBe(1);
  expect(await at(path).verify()).toEqual([]);
});

test("if an entry is in both files, the journal's copy counts", async () => {
  const path = journalPath();
  const ids = await addRefused(at(path, 1e9));
  const journal = readFileSync(path);
  await add(at(path), { fingerprint: "next" });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n").slice(1);
  // A crash after the archive was written, and before the journal was rewritten, leaves the entries in both.
  writeFileSync(path, journal);
  rmSync(`${path}.lock`, { force: true });
  expect(lines).toHaveLength(1);
  const lease = await at(path, 1e9).lease(ids[0]!);
  await lease.record({ state: "abandoned" });
  await lease.release();
  expect((await at(path).select({ all: true, archived: true })).map(({ id, state }) => [id, state])).toEqual(
    ids.toReversed().map((id) => [id, id === ids[0] ? "abandoned" : "refused"]),
  );
  expect(await at(path).verify()).toEqual([]);
  await add(at(path), { fingerprint: "again" });
  expect(await at(path).verify()).toEqual([]);
  expect((await at(path).find(ids[0]!)).state).toBe("abandoned");
});

test("for a long archive, list, export and verify keep offsets in memory, not records", async () => {
  const path = journalPath();
  const count = 300;
  writeJournal(archiveOf(path), longJournal(count, { isSettled: true, padding: "x".repeat(100_000) }));
  writeJournal(path, longJournal(1).slice(0, 1));
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const bufferBytes = async (): Promise<number> => {
    // Waits, because a buffer's memory is freed a moment after its collection.
    for (let round = 0; round < 3; round += 1) {
      collect();
      await new Promise((done) => setTimeout(done, 5));
    }
    return process.memoryUsage().arrayBuffers;
  };
  const before = await bufferBytes();
  const journal = at(path);
  for (const walk of [() => journal.each({ all: true, archived: true }), () => journal.records()]) {
    let entries = 0;
    for await (const _ of walk()) {
      entries += 1;
      if (entries % 100 === 0) expect((await bufferBytes()) - before).toBeLessThan(6_000_000);
    }
    expect(entries).toBe(count);
  }
  expect((await journal.verify()).filter(({ severity }) => severity === "problem")).toEqual([]);
  expect((await bufferBytes()) - before).toBeLessThan(6_000_000);
});
