import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it, test } from "vitest";
import { identify, newOwner } from "../../../../src/disk/lock-owner.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { Failure } from "../../../../src/errors.ts";
import { type DiskCall, diskError, onDisk, wordsOf } from "../../../support/disk-calls.ts";
import { writeJournal } from "../../../support/long-journal.ts";
import { isFull } from "../../../support/sample.ts";
import { ada, clock, intent, journalPath } from "../intent.ts";

const locks = { means: () => ({ self: identify(process.pid), kernel: undefined }), waitMs: 20 };
const at = (path: string): Journal => fileJournal(path, { now: clock(), actor: ada, locks });
async function thenClosed<T>(journal: Journal, work: (journal: Journal) => T): Promise<Awaited<T>> {
  try {
    return await work(journal);
  } finally {
    journal.close();
  }
}

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

async function unfinished(path: string): Promise<void> {
  const { lease } = await at(path).admit(intent());
  await lease.record({ state: "unknown", attempts: 1 });
  await lease.release();
}

async function settled(path: string): Promise<void> {
  await unfinished(path);
  const { lease } = await at(path).admit(intent({ fingerprint: "settled" }));
  await lease.record({ state: "refused" });
  await lease.release();
}

async function torn(path: string): Promise<void> {
  await unfinished(path);
  writeFileSync(path, `${textOf(path)}{"sum":"00`);
}

async function damaged(path: string): Promise<void> {
  await unfinished(path);
  writeFileSync(path, `${textOf(path)}{"sum":"0000000000000000","v":2}\n`);
}

async function admitted(journal: Journal): Promise<void> {
  const { lease } = await journal.admit(intent({ fingerprint: "another" }));
  await lease.release();
}

async function resumed(journal: Journal): Promise<void> {
  const { lease } = await journal.admit(intent());
  try {
    await lease.record({ state: "done", resource_id: "oac_1" });
  } finally {
    await lease.release();
  }
}

interface Scene {
  readonly before?: (path: string) => Promise<void>;
  readonly work: (journal: Journal) => Promise<unknown>;
  readonly lasting: readonly string[];
}

/** Calls on the journal's file that must not fail silently. */
const needed = ["open", "read", "write", "fsync", "ftruncate", "fstat"];
const appending = ["write journal.ndjson", "fsync journal.ndjson"];
const named = ["fsync state", "fsync integ-journal-*"];

const rewriting = [
  "write journal.ndjson.new-*",
  "fsync journal.ndjson.new-*",
  "rename journal.ndjson.new-*",
  "fsync state",
];

const scenes: Readonly<Record<string, Scene>> = {
  "a first entry": { work: admitted, lasting: ["fsync integ-journal-*", ...appending, ...named] },
  "another entry": { before: unfinished, work: admitted, lasting: [...appending, ...named] },
  "two steps": { before: unfinished, work: resumed, lasting: [...appending, ...named] },
  "an entry after a torn end": {
    before: torn,
    work: admitted,
    lasting: ["write", "fsync", "fsync state", "ftruncate journal.ndjson", ...appending, ...named],
  },
  "an entry after damage": {
    before: damaged,
    work: admitted,
    lasting: ["write", "fsync", "fsync state", ...appending, ...named],
  },
  "a prune": {
    before: settled,
    work: (journal) => journal.prune(-1e9),
    lasting: rewriting,
  },
  "a prune of a damaged journal": {
    before: async (path) => {
      await settled(path);
      writeFileSync(path, `${textOf(path)}{"sum":"0000000000000000","v":2}\n{"sum":"00`);
    },
    work: (journal) => journal.prune(-1e9),
    lasting: ["write", "fsync", "fsync state", "write", "fsync", "fsync state", ...rewriting],
  },
  "a list": { before: damaged, work: (journal) => journal.entries(), lasting: [] },
  "a check": { before: damaged, work: (journal) => journal.verify(), lasting: ["write", "fsync", "fsync state"] },
};

function lasting(calls: readonly DiskCall[]): string[] {
  return wordsOf(
    calls.filter(({ file }) => !/\.lock/.test(file)),
    ["write", "fsync", "ftruncate", "rename"],
  ).map((words) => words.replace(/ journal\.ndjson\.(?:torn|damaged)\S+$/, "").replace(/(integ-journal-)\w+/, "$1*"));
}

describe.each(Object.entries(scenes))("%s", (name, { before, work, lasting: expected }) => {
  let made: string | undefined;
  const prepared = async (): Promise<string> => {
    const path = journalPath();
    if (before === undefined) return path;
    if (made === undefined) {
      await onDisk(() => before(path));
      made = textOf(path);
    } else writeJournal(path, [made]);
    return path;
  };

  it("makes its calls in this order", async () => {
    const path = await prepared();
    const { calls, error, open } = await onDisk(() => thenClosed(at(path), work));
    expect([error, open, lasting(calls)]).toEqual([undefined, [], expected]);
  });

  it("reports each failing call, and leaves valid records, no lock and no open file", async () => {
    const first = await prepared();
    const { calls } = await onDisk(() => work(at(first)));
    const seen = new Map<string, number>();
    for (const [number, { call, file }] of calls.entries()) {
      const words = `${call} ${file.replaceAll(/[-.\w]{20,}/g, (name) => name.slice(0, 20))}`;
      seen.set(words, (seen.get(words) ?? 0) + 1);
      if (seen.get(words)! > (isFull ? 3 : 1)) continue;
      // In a sample, calls of locks and every second call that only reads fail in one scene only.
      const isLook = /^(?:lstat|stat|fstat|read|readFile|readdir|realpath|close)$/.test(call);
      if (!isFull && name !== "another entry" && (/\.lock/.test(file) || (isLook && number % 2 === 0))) continue;
      const path = await prepared();
      const [earlier, journal] = [textOf(path), at(path)];
      const { error, open } = await onDisk(
        () => thenClosed(journal, work),
        (_, place) => (place === number ? diskError("EIO", call) : undefined),
      );
      const what = `${number}: ${words}`;
      // A lock that cannot be removed stays held until this process ends.
      const isLocked = /\.lock/.test(file) && ["unlink", "lstat", "fstat"].includes(call);
      expect([what, open]).toEqual([what, []]);
      if (error !== undefined) {
        expect([what, error]).toEqual([what, expect.any(Failure)]);
        expect([what, error]).toEqual([what, expect.objectContaining({ kind: "failed" })]);
        if (!isLocked) expect((error as Failure).message).toContain("(EIO)");
      }
      if (file === "journal.ndjson" && needed.includes(call))
        expect([what, error]).toEqual([what, expect.any(Failure)]);
      // The file's records are valid and the old ones stay, except for a torn end.
      const lines = earlier.split("\n").filter((line) => line.length > 20);
      if (!name.startsWith("a prune"))
        for (const line of lines) expect([what, textOf(path)]).toEqual([what, expect.stringContaining(line)]);
      const { value: findings = [] } = await onDisk(() => at(path).verify());
      const problems = findings.filter(({ severity, message }) => severity === "problem" && !/checksum/.test(message));
      expect([what, problems]).toEqual([what, []]);
      if (isLocked) continue;
      const again = await onDisk(() => admitted(journal));
      if (call === "fsync")
        expect([what, again.error]).toEqual([
          what,
          expect.objectContaining({
            kind: "failed",
            message: `The journal ${path} could not be synced to the disk before.`,
            details: expect.objectContaining({ nextCommand: "integ journal verify" }),
          }),
        ]);
      else expect([what, again.error]).toEqual([what, undefined]);
      if (call !== "unlink" && call !== "close")
        expect([what, readdirSync(dirname(path)).filter((one) => /lock|new-/.test(one))]).toEqual([what, []]);
    }
  });
});

test("concurrent admissions whose sync fails leave no entries and no locks", async () => {
  const path = journalPath();
  await unfinished(path);
  const before = textOf(path);
  const journal = at(path);
  const { value, open } = await onDisk(
    () =>
      thenClosed(journal, () =>
        Promise.allSettled(["one", "two"].map((fingerprint) => journal.admit(intent({ fingerprint })))),
      ),
    ({ call, file }) => (call === "fsync" && file === "journal.ndjson" ? diskError("EIO", call) : undefined),
  );
  expect(value?.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([textOf(path), open, readdirSync(dirname(path))]).toEqual([before, [], ["journal.ndjson"]]);
});

describe("a journal in use by another process", () => {
  it.each([
    ["runs", {}, "Wait for that process, or end it, then run the command again."],
    ["is elsewhere", { space: "pid:[1]" }, "Wait for that process, or end it, then run the command again."],
  ])("is waited for, then the process is named: %s", async (_what, changed, hint) => {
    const path = journalPath();
    await unfinished(path);
    writeFileSync(`${path}.lock`, JSON.stringify({ ...newOwner(identify(process.pid), false), ...changed }));
    const { error } = await onDisk(() => admitted(at(path)));
    expect(error).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/^The journal is in use by process \d+.*; integ waited 0 s\.$/),
      details: { hint },
    });
    expect((error as Failure).details.nextCommand).toBeUndefined();
  });
});

test("a rewrite removes the leftover of a killed rewrite", async () => {
  const path = journalPath();
  await settled(path);
  writeFileSync(`${path}.new-0123456789ab`, "cut");
  await at(path).prune(-1e9);
  expect(readdirSync(dirname(path))).toEqual(["journal.ndjson"]);
  expect(textOf(path).trim().split("\n")).toHaveLength(3);
});

test("a journal that others can write to is not read", async () => {
  const path = journalPath();
  await unfinished(path);
  chmodSync(path, 0o622);
  for (const work of [() => at(path).entries(), () => at(path).count(), () => at(path).admit(intent())])
    await expect(work()).rejects.toMatchObject({
      kind: "usage",
      message: expect.stringContaining("can be written by others"),
    });
});

test("a reader does not fail if a change at the same time cannot be synced", async () => {
  const path = journalPath();
  await unfinished(path);
  const journal = at(path);
  const id = (await journal.entries())[0]!.id;
  const { lease } = await journal.admit(intent({ fingerprint: "another" }));
  const { value } = await onDisk(
    () => Promise.allSettled([lease.record({ state: "unknown" }), journal.lease(id)]),
    ({ call, file }) => (call === "fsync" && file === "journal.ndjson" ? diskError("EIO", call) : undefined),
  );
  expect(value?.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
});
