import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { identify, type LockOwner, newOwner } from "../../../../src/disk/lock-owner.ts";
import { Failure } from "../../../../src/errors.ts";
import { JournalLocks } from "../../../../src/journal/file/locks.ts";
import { Busy, nothingSent, waitUntilFree } from "../../../../src/journal/store.ts";
import { folder } from "../intent.ts";

const self = identify(process.pid);
const owner = (changes: Partial<LockOwner> = {}): LockOwner => ({ ...newOwner(self, false), pid: 4242, ...changes });

function locksAt(path: string): JournalLocks {
  return new JournalLocks(path, () => ({ self, kernel: undefined }));
}

const refused = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { kind: error.kind, message: error.message, ...error.details };
  }
};

const busyOf = (path: string, entry?: string): Busy => {
  const locks = locksAt(path);
  const attempt = entry === undefined ? locks.tryLock() : locks.tryLock(entry);
  if (!(attempt instanceof Busy)) throw new Error("it is free");
  return attempt;
};

function lockedBy(text: string, entry?: string): Busy {
  const path = join(folder(), "journal.ndjson");
  writeFileSync(entry === undefined ? `${path}.lock` : `${path}.entry-${entry}.lock`, text);
  return busyOf(path, entry);
}

describe("waiting", () => {
  it.each([1, 100, 150, 1000])("ends after %i ms, with longer and longer pauses", async (waitMs) => {
    const busy = lockedBy(JSON.stringify({ ...newOwner(self, false) }));
    let tries = 0;
    const started = performance.now();
    const error = await refused(() => waitUntilFree(() => (++tries, busy), { waitMs, meaning: "Nothing of it." }));
    expect(performance.now() - started).toBeGreaterThanOrEqual(waitMs - 1);
    expect(tries).toBeGreaterThan(1);
    expect(error).toEqual({
      kind: "failed",
      message: `The journal is in use by process ${process.pid}; integ waited ${Math.round(waitMs / 100) / 10} s.`,
      meaning: "Nothing of it.",
      hint: "Wait for that process, or end it, then run the command again.",
    });
  });

  it("is skipped if no one holds the lock, and ends when it is released", async () => {
    expect(await waitUntilFree(() => "immediately", { waitMs: 0 })).toBe("immediately");
    const busy = lockedBy(JSON.stringify({ ...newOwner(self, false) }));
    const answers = [busy, busy];
    expect(await waitUntilFree(async () => answers.shift() ?? "later", { waitMs: 1000 })).toBe("later");
  });
});

describe("the message about a lock holder", () => {
  const wait = { meaning: nothingSent, hint: "Wait for that process, or end it, then run the command again." };
  const release = {
    meaning: nothingSent,
    hint: "Wait for that process, or take the entry from it if it has ended.",
    nextCommand: "integ journal release 0123456789",
    entry: "0123456789",
  };
  const far = owner({ host: "far", boot: null });
  const here = JSON.stringify(newOwner(self, false));
  it.each<[string, () => Busy, string, object]>([
    [
      "an entry, by a process here",
      () => lockedBy(here, "0123456789"),
      `Journal entry 0123456789 is in use by process ${process.pid}`,
      wait,
    ],
    [
      "an entry, by one of another machine",
      () => lockedBy(JSON.stringify(far), "0123456789"),
      "Journal entry 0123456789 is in use by process 4242 on far",
      release,
    ],
    [
      "an entry, by one without a name",
      () => lockedBy("", "0123456789"),
      "Journal entry 0123456789 is in use by a process that left no name",
      release,
    ],
    [
      "the file, by one of another machine",
      () => lockedBy(JSON.stringify(far)),
      "The journal is in use by process 4242 on far",
      wait,
    ],
    [
      "the file, by one without a name",
      () => lockedBy(""),
      "The journal is in use by a process that left no name",
      wait,
    ],
  ])("%s", (_what, busy, message, details) => {
    const { kind, message: is, details: said } = busy().failure(0);
    expect({ kind, message: is, ...said }).toEqual({
      kind: "failed",
      message: `${message}; integ waited 0 s.`,
      ...details,
    });
  });
});

describe("an entry's lock that is taken over", () => {
  const id = "0123456789";
  const now = Date.UTC(2026, 10, 23);
  const minutes = 60_000;
  const refusal = (what: string): unknown => ({
    kind: "conflict",
    message: `${what} was in use until a moment ago.`,
    meaning: "Nothing changed: a request may be under way.",
    hint: "Wait ten minutes after its last step.",
  });
  const locked = (which: "file" | "entry", ageMs: number): { path: string; lock: string } => {
    const path = join(folder(), "journal.ndjson");
    const lock = which === "file" ? `${path}.lock` : `${path}.entry-${id}.lock`;
    writeFileSync(lock, JSON.stringify(owner({ host: "far", boot: null })));
    utimesSync(lock, (now - ageMs) / 1000, (now - ageMs) / 1000);
    return { path, lock };
  };

  it.each(["file", "entry"] as const)("(%s) is taken over after ten minutes, and not before", async (which) => {
    const what = which === "file" ? "The journal" : `Journal entry ${id}`;
    for (const [lockAge, entryAge, said] of [
      [10 * minutes, 10 * minutes, undefined],
      [10 * minutes - 1, 10 * minutes, refusal(what)],
      [10 * minutes, 10 * minutes - 1, refusal(what)],
      [0, 99 * minutes, refusal(what)],
      [99 * minutes, 0, refusal(what)],
      [99 * minutes, 99 * minutes, undefined],
      // A time in the future, after the clock was set back, does not prevent a takeover.
      [-1, 99 * minutes, undefined],
      [99 * minutes, -1, undefined],
    ] as const) {
      const { path, lock } = locked(which, lockAge);
      const at = { now, touchedAt: now - entryAge };
      const label = `${lockAge} ${entryAge}`;
      expect([label, await refused(() => locksAt(path).takeAway(id, at))]).toEqual([label, said]);
      expect([label, readdirSync(join(path, "..")).includes(lock.replace(/^.*\//, ""))]).toEqual([
        label,
        said !== undefined,
      ]);
    }
  });

  it.each(["file", "entry"] as const)("(%s) stays with a process that runs", async (which) => {
    const { path, lock } = locked(which, 99 * minutes);
    writeFileSync(lock, JSON.stringify({ ...newOwner(self, false) }));
    utimesSync(lock, (now - 99 * minutes) / 1000, (now - 99 * minutes) / 1000);
    expect(await refused(() => locksAt(path).takeAway(id, { now, touchedAt: 0 }))).toEqual({
      kind: "conflict",
      message: `${which === "file" ? "The journal" : `Journal entry ${id}`} is in use by a process that runs.`,
      meaning: "Nothing changed.",
      hint: "Wait for that process, or end it.",
    });
  });
});

describe("files of ended processes", () => {
  it("are removed; those of running processes are identified by their entry", () => {
    const path = join(folder(), "journal.ndjson");
    const dead = owner({ pid: 2 ** 22 + 1 });
    for (const name of ["entry-0123456789.lock", "entry-abcdefghjk.lock"])
      writeFileSync(`${path}.${name}`, JSON.stringify(name.includes("0123") ? dead : newOwner(self, false)));
    for (const name of ["entry-zzzzzzzzzz.lock-more", "entry-yyyyyyyyyy", "other-0123456780.lock"])
      writeFileSync(`${path}.${name}`, "");
    mkdirSync(`${path}.folder`);
    const locks = locksAt(path);
    expect([...locks.leased()].toSorted()).toEqual(["0123456789", "abcdefghjk"]);
    locks.sweep();
    expect([...locks.leased()]).toEqual(["abcdefghjk"]);
  });
});
