import { linkSync, mkdirSync, readFileSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { onDisk } from "../../../support/disk-calls.ts";
import { ada, clock, folder, intent, journalAt } from "../intent.ts";

const withoutKernel = { means: () => ({ self: identify(process.pid), kernel: undefined }), waitMs: 60 };

test("a journal with a second name is neither read nor changed, and both names stay", async () => {
  const path = join(folder(), "journal.ndjson");
  const { lease } = await journalAt(path).admit(intent());
  await lease.release();
  const second = join(folder(), "journal.ndjson");
  linkSync(path, second);
  const before = readFileSync(path);
  const refusal = { kind: "usage", message: expect.stringContaining("has a second name") };
  for (const journal of [journalAt(path), journalAt(second)]) {
    await expect(journal.admit(intent(), { fresh: true })).rejects.toMatchObject(refusal);
    await expect(journal.lease(lease.entry.id)).rejects.toMatchObject(refusal);
    await expect(journal.entries()).rejects.toMatchObject(refusal);
    await expect(journal.prune(-1e9)).rejects.toMatchObject(refusal);
  }
  expect(readFileSync(path)).toEqual(before);
  unlinkSync(second);
  expect((await journalAt(path).admit(intent())).kind).toBe("resumed");
});

test("a journal that is mounted by itself is not changed, whatever its name", async () => {
  const path = join(folder(), "a b\\c.ndjson");
  const { lease } = await journalAt(path).admit(intent());
  await lease.release();
  const admission = (line: string) =>
    onDisk(
      () => journalAt(path).admit(intent()),
      ({ call, args }) => (call === "readFile" && args[0] === "/proc/self/mountinfo" ? () => line : undefined),
    );
  const escaped = path.replaceAll("\\", "\\134").replaceAll(" ", "\\040");
  const { error } = await admission(`1 2 0:3 / / rw\n36 35 98:0 /x ${escaped} rw`);
  expect(error).toMatchObject({ kind: "usage", message: expect.stringContaining("a mount of the single file") });
  expect((await admission(`36 35 98:0 ${escaped} /x rw`)).value).toMatchObject({ kind: "resumed" });
});

test("through a symbolic link to its folder it is the same journal, with and without kernel locks", async () => {
  for (const locks of [undefined, withoutKernel]) {
    const at = folder();
    const link = join(folder(), "link");
    mkdirSync(join(at, "state"), { mode: 0o700 });
    symlinkSync(join(at, "state"), link);
    const journal = (path: string): Journal =>
      locks ? fileJournal(path, { now: clock(), actor: ada, locks }) : journalAt(path);
    const { lease } = await journal(join(at, "state", "journal.ndjson")).admit(intent());
    expect(await journal(join(link, "journal.ndjson")).tryLease(lease.entry.id)).toBeNull();
    await lease.release();
  }
});

test("a rewritten journal does not keep the old file open", async () => {
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
