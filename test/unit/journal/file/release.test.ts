import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { identify, newOwner, type ProcessIdentity } from "../../../../src/disk/lock-owner.ts";
import { Failure } from "../../../../src/errors.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { ada, intent } from "../intent.ts";

const self = identify(process.pid);
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const hour = 3_600_000;

interface Opened {
  readonly path: string;
  readonly journal: Journal;
  readonly lockOf: (id: string) => string;
}

/** A journal without kernel locks, whose clock is an hour ahead by default. */
function opened(path?: string, aheadMs = hour): Opened {
  const folder = mkdtempSync(join(tmpdir(), "integ-release-"));
  folders.push(folder);
  const at = path ?? join(folder, "journal.ndjson");
  const locks = { means: () => ({ self, kernel: undefined }), waitMs: 50 };

  const journal = fileJournal(at, { now: () => Date.now() + aheadMs, actor: ada, locks });
  return { path: at, journal, lockOf: (id) => `${at}.entry-${id}.lock` };
}

async function heldBy(owner: Partial<ProcessIdentity> | undefined): Promise<Opened & { id: string }> {
  const first = opened(undefined, -hour);
  const { lease } = await first.journal.admit(intent(), {});
  const { id } = lease.entry;
  await lease.release();
  const lock = first.lockOf(id);
  writeFileSync(lock, owner === undefined ? "" : JSON.stringify(newOwner({ ...self, ...owner }, false)));
  const old = (Date.now() - hour) / 1000;
  utimesSync(lock, old, old);
  return { ...opened(first.path), id };
}

async function refusal(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Failure)) throw new Error("it was not refused", { cause: error });
  return error;
}

describe("the lock of a process that cannot be checked from here", () => {
  test.each([
    ["another container", { space: "pid:[1] time:[1]", pid: 1 }, "process 1 of another container on this machine"],
    ["another machine", { host: "far", boot: null, pid: 1 }, "process 1 on far"],
    ["no name", undefined, "a process that left no name"],
  ] as const)("%s: is described as such, and taken over by a person", async (_what, owner, words) => {
    const { journal, id } = await heldBy(owner);
    const busy = await refusal(journal.lease(id));
    expect(busy.message).toContain(words);
    expect(busy.details.nextCommand).toBe(`integ journal release ${id}`);
    await journal.takeAway(id, undefined);
    const lease = await journal.lease(id);
    expect(lease.entry.id).toBe(id);
    await lease.release();
  });

  test("is not taken over before ten minutes, nor from a process that runs", async () => {
    const { journal, id, lockOf, path } = await heldBy({ space: "pid:[1] time:[1]" });
    const young = opened(path, 0).journal;
    const now = Date.now() / 1000;
    utimesSync(lockOf(id), now, now);
    expect((await refusal(young.takeAway(id, undefined))).message).toContain("a moment ago");
    rmSync(lockOf(id));
    const lease = await young.lease(id);
    expect((await refusal(journal.takeAway(id, undefined))).message).toContain("a process that runs");
    await lease.release();
  });

  test("no longer lets its owner record or send after a takeover", async () => {
    const { journal, path, lockOf } = opened(undefined, 0);
    const { lease } = await journal.admit(intent(), {});
    const { id } = lease.entry;
    expect(journal.holdsLeases()).toBe(true);
    const other = opened(path);
    const owner = JSON.parse(readFileSync(lockOf(id), "utf8")) as ProcessIdentity;
    writeFileSync(lockOf(id), JSON.stringify({ ...owner, host: "far", boot: null }));
    await other.journal.takeAway(id, undefined);
    const taken = await other.journal.lease(id);
    await taken.record({ attempts: 1 });
    expect(journal.holdsLeases()).toBe(false);
    expect((await refusal(lease.record({ state: "done" }))).message).toContain("was taken over");
    expect((await other.journal.find(id)).state).toBe("open");
    await lease.release();
    expect((await refusal(journal.lease(id))).message).toContain("in use");
    await taken.release();
  });
});
