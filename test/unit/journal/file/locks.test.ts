// A lock belongs to the journal's file and not to the path that leads to it.
import { linkSync, mkdirSync, readFileSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { onDisk } from "../../../support/disk-calls.ts";
import { ada, clock, folder, intent, journalAt } from "../intent.ts";

const withoutKernel = { means: () => ({ self: identify(process.pid), kernel: undefined }), waitMs: 60 };

/** A journal with one unfinished entry, and another path that leads to its file. */
async function twoPaths(
  link: (to: string, path: string) => void,
): Promise<{ one: Journal; other: Journal; id: string; path: string }> {
  const path = join(folder(), "journal.ndjson");
  const one = journalAt(path);
  const { lease } = await one.admit(intent());
  await lease.release();
  const second = join(folder(), "journal.ndjson");
  link(path, second);
  return { one, other: journalAt(second), id: lease.entry.id, path: second };
}

describe.runIf(loadKernelLock()?.hasRanges)("a journal with a second name in another folder", () => {
  test("an entry has one holder, whichever path it came by", async () => {
    const { one, other, id } = await twoPaths(linkSync);
    const lease = await one.lease(id);
    expect(await other.tryLease(id)).toBeNull();
    await expect(other.lease(id)).rejects.toMatchObject({ message: expect.stringContaining("by another path") });
    await lease.record({ state: "unknown", attempts: 1 });
    await lease.release();
    const next = await other.lease(id);
    expect(next.entry).toMatchObject({ state: "unknown", attempts: 1 });
    expect(await one.tryLease(id)).toBeNull();
    await next.release();
  });

  test("a new entry is held from the start, also in a file that did not exist", async () => {
    const path = join(folder(), "journal.ndjson");
    const { lease } = await journalAt(path).admit(intent());
    const second = join(folder(), "journal.ndjson");
    linkSync(path, second);
    expect(await journalAt(second).tryLease(lease.entry.id)).toBeNull();
    const again = await journalAt(second).admit(intent());
    expect([again.kind, again.lease.entry.id === lease.entry.id]).toEqual(["new", false]);
  });

  test("admissions by both paths wait for each other", async () => {
    const { one, other } = await twoPaths(linkSync);
    const all = await Promise.all(
      [one, other, one, other].map(async (journal) => (await journal.admit(intent(), { fresh: true })).lease.entry.id),
    );
    expect(new Set(all).size).toBe(4);
    expect(await one.verify()).toEqual([]);
  });

  test("it is not written anew as another file", async () => {
    const { one, path } = await twoPaths(linkSync);
    const lease = (await one.admit(intent(), { fresh: true })).lease;
    await lease.record({ state: "refused" });
    await lease.release();
    const before = readFileSync(path);
    await expect(one.prune(-1e9)).rejects.toMatchObject({
      kind: "usage",
      message: expect.stringContaining("another path"),
    });
    expect(readFileSync(path)).toEqual(before);
    unlinkSync(path);
    expect(await one.prune(-1e9)).toMatchObject({ removed: 1 });
  });
});

test("prune waits for nobody who holds an entry by a path that it cannot see", async () => {
  const { one, other, id, path } = await twoPaths(linkSync);
  const settled = (await one.admit(intent(), { fresh: true })).lease;
  await settled.record({ state: "refused" });
  await settled.release();
  const lease = await other.lease(id);
  unlinkSync(path); // as a mount in another namespace, which has no name here
  await expect(one.prune(-1e9)).rejects.toMatchObject({ message: expect.stringContaining("by another path") });
  await lease.release();
  expect(await one.prune(-1e9)).toMatchObject({ removed: 1 });
});

test("through a symbolic link to its folder it is the same journal, with the kernel's locks and without", async () => {
  for (const locks of [undefined, withoutKernel]) {
    const at = folder();
    const link = join(folder(), "link");
    mkdirSync(join(at, "state"), { mode: 0o700 });
    symlinkSync(join(at, "state"), link);
    const journal = (path: string): Journal =>
      locks ? new FileJournal(path, { now: clock(), actor: ada, locks }) : journalAt(path);
    const { lease } = await journal(join(at, "state", "journal.ndjson")).admit(intent());
    expect(await journal(join(link, "journal.ndjson")).tryLease(lease.entry.id)).toBeNull();
    await lease.release();
  }
});

test("without the kernel's locks a journal that has a second name is refused, and said why", async () => {
  const { path, id } = await twoPaths(linkSync);
  const journal = new FileJournal(path, { now: clock(), actor: ada, locks: withoutKernel });
  const refusal = { kind: "usage", message: expect.stringContaining("another path") };
  await expect(journal.admit(intent(), { fresh: true })).rejects.toMatchObject(refusal);
  await expect(journal.lease(id)).rejects.toMatchObject(refusal);
});

test("a journal that was written again holds nothing of the file before", async () => {
  const path = join(folder(), "journal.ndjson");
  const journal = journalAt(path);
  const kept = await journal.admit(intent());
  const { lease } = await journal.admit(intent({ fingerprint: "going" }));
  await lease.record({ state: "refused" });
  await lease.release();
  const { open, error, value } = await onDisk(() => journal.prune(-1e9));
  expect([error, value, open]).toEqual([undefined, expect.objectContaining({ removed: 1 }), []]);
  await kept.lease.release();
});

test("how long a process was waited for is told to a tenth of a second", async () => {
  const path = join(folder(), "journal.ndjson");
  const { lease } = await journalAt(path).admit(intent());
  await expect(journalAt(path, 150).lease(lease.entry.id)).rejects.toMatchObject({
    message: `Journal entry ${lease.entry.id} is in use by process ${process.pid}; integ waited 0.2 s.`,
  });
});
