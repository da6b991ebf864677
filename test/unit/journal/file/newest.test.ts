// Completion reads the newest entries from the end of the file, and finds the same entries as the journal.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import { newestIn } from "../../../../src/journal/file/newest.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { ada } from "../intent.ts";

function written(lines: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "integ-newest-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "state", "journal.ndjson");
  writeJournal(path, lines);
  return path;
}

const filters: EntryFilter[] = [{}, { all: true }, { states: ["secret_lost"] }, { all: true, profile: "p1" }];

test.each(filters)("the newest entries for %j are those of the journal, in the same order", async (filter) => {
  const path = written(longJournal(300));
  const whole = await fileJournal(path, { now: Date.now, actor: ada }).select(filter);
  expect(whole.length).toBeGreaterThan(2);
  expect(newestIn(path, { ...filter, limit: 1000 })).toEqual(whole);
});

test("the newest entries are at most the requested number", () => {
  expect(newestIn(written(longJournal(50, { isSettled: true })), { all: true, limit: 2 }).map(({ id }) => id)).toEqual([
    idAt(49),
    idAt(48),
  ]);
});

test("an entry whose last record is truncated or damaged is read from the record before", () => {
  const lines = longJournal(2, { isSettled: true });
  const last = lines.at(-1)!;
  for (const bad of [last.slice(0, -30), last.replace('"now"', '"n0w"')]) {
    const [newest] = newestIn(written([...lines.slice(0, -1), bad]), { all: true, limit: 9 });
    expect(newest).toMatchObject({ id: idAt(1), state: "unknown" });
  }
});

test("no entry is read from a journal of another format", () => {
  const lines = longJournal(2).map((line) => line.replace('"v":3', '"v":4'));
  expect(newestIn(written(lines), { all: true, limit: 9 })).toEqual([]);
});
