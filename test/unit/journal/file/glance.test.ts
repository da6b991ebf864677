// What a Tab sees of a journal: the same as the journal itself says, or nothing where only the journal can say.
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { glanceAt, type GlancedEntry } from "../../../../src/journal/file/glance.ts";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import { headerLine } from "../../../../src/journal/record.ts";
import { longJournal, writeJournal } from "../../../support/long-journal.ts";
import { onDisk, diskError } from "../../../support/disk-calls.ts";
import { ada, intent, journalPath } from "../intent.ts";

const filters: readonly EntryFilter[] = [
  { all: true, limit: 200 },
  { all: true, limit: 3 },
  {},
  { states: ["undelivered"] },
  { states: ["secret_lost", "unknown"] },
  { states: ["done"], all: true },
];

function made(lines: readonly string[]): string {
  const path = journalPath();
  writeJournal(path, lines);
  return path;
}

const seenOf = (entries: readonly GlancedEntry[]): readonly GlancedEntry[] =>
  entries.map(({ id, state, resource_id, profile, operation, request_text, created_at }) => ({
    id,
    state,
    resource_id,
    profile,
    operation,
    request_text,
    created_at,
  }));

function shown(path: string, filter: EntryFilter): readonly GlancedEntry[] | undefined {
  const entries = glanceAt(path, filter);
  return entries && seenOf(entries);
}

async function said(path: string, filter: EntryFilter): Promise<readonly GlancedEntry[]> {
  return seenOf(await new FileJournal(path, { now: Date.now, actor: ada }).select(filter));
}

describe("a journal", () => {
  it.each([0, 1, 12, 60, 110])("of %i entries is seen as a whole", async (entries) => {
    const path = made(longJournal(entries));
    for (const filter of filters) expect([filter, shown(path, filter)]).toEqual([filter, await said(path, filter)]);
  });

  it("that is longer is seen from its end, where all are wanted", async () => {
    const path = made(longJournal(600));
    const all = await said(path, { all: true });
    const seen = shown(path, { all: true })!;
    expect(seen.length).toBeGreaterThan(80);
    expect(seen.slice(0, 80)).toEqual(all.slice(0, 80));
    for (const one of seen) expect(all).toContainEqual(one);
    expect(shown(path, { all: true, limit: 5 })).toEqual(all.slice(0, 5));
    for (const filter of [{}, { states: ["done"] }, { states: ["done"], all: true }] as const)
      expect(glanceAt(path, filter)).toBeUndefined();
  });
});

describe("a long journal with its index", () => {
  const unfinished: readonly EntryFilter[] = [
    {},
    { limit: 7 },
    { states: ["undelivered"] },
    { states: ["unknown", "open"] },
  ];

  /** As a change leaves it: the index is older than the last lines. */
  async function indexed(entries: number): Promise<{ readonly path: string; readonly segment: string }> {
    const path = made(longJournal(entries));
    const journal = new FileJournal(path, { now: () => Date.UTC(2027, 0, 1), actor: ada });
    const { lease: first } = await journal.admit(intent({ fingerprint: "the first" }));
    await first.release();
    const old = (await journal.unsettled()).filter(({ id }) => id !== first.entry.id);
    for (const [entry, state] of [
      [old[0]!, "done"],
      [old.at(-1)!, "undelivered"],
    ] as const) {
      const lease = await journal.lease(entry.id);
      await lease.record({ state });
      await lease.release();
    }
    for (const number of [1, 2]) await (await journal.admit(intent({ fingerprint: `${number}` }))).lease.release();
    const segment = readdirSync(dirname(path)).find((name) => name.startsWith(`${basename(path)}.index-`))!;
    return { path, segment: join(dirname(path), segment) };
  }

  it.each([700, 1500])("of %i entries shows what is unfinished", async (entries) => {
    const { path } = await indexed(entries);
    for (const filter of unfinished) expect([filter, shown(path, filter)]).toEqual([filter, await said(path, filter)]);
    expect(shown(path, {})!.length).toBeGreaterThan(20);
    expect(glanceAt(path, { states: ["done"], all: true })).toBeUndefined();
  });

  it("is left to the journal where the index is missing, damaged, of another version, of another file or behind", async () => {
    const cut = (file: string): void => truncateSync(file, 0);
    const ways: readonly ((at: { path: string; list: string; segment: string }) => unknown)[] = [
      ({ list }) => rmSync(list),
      ({ list }) => cut(list),
      ({ list }) => writeFileSync(list, `x\n${readFileSync(list, "utf8").split("\n")[1]!.replace('"v":3', '"v":4')}`),
      ({ segment }) => rmSync(segment),
      ({ segment }) => cut(segment),
      ({ segment }) => writeFileSync(segment, Buffer.alloc(readFileSync(segment).length, 7)),
      ({ path }) => writeJournal(path, longJournal(700, { padding: "another" })),
      ({ path }) => writeFileSync(path, longJournal(600).slice(1).join(""), { flag: "a" }),
    ];
    for (const [number, spoil] of ways.entries()) {
      const at = await indexed(700);
      spoil({ ...at, list: `${at.path}.index` });
      expect([number, glanceAt(at.path, {})]).toEqual([number, undefined]);
    }
  });

  it("closes what it opened, whichever call fails", async () => {
    const { path } = await indexed(700);
    const all = await onDisk(() => glanceAt(path, {}));
    expect([all.value!.length > 20, all.open]).toEqual([true, []]);
    for (const [number, { call }] of all.calls.entries()) {
      const { open, error } = await onDisk(
        () => glanceAt(path, {}),
        (_, at) => (at === number && call !== "close" ? diskError("EIO", call) : undefined),
      );
      expect([number, call, open, error]).toEqual([number, call, [], undefined]);
    }
  });
});

describe("only the journal can say", () => {
  const lines = longJournal(3);
  it.each<[string, readonly string[]]>([
    ["what a line is that is damaged", lines.with(2, "{\n")],
    ["what a line is that is no object", lines.with(2, "3\n")],
    ["what a newer version wrote", lines.with(2, lines[2]!.replace('"v":2', '"v":9'))],
    ["what an earlier version wrote", lines.with(2, lines[2]!.replace('"v":2', '"v":1'))],
    ["what has no id", lines.with(2, lines[2]!.replace('"id":', '"di":'))],
    ["what has no state", lines.with(2, lines[2]!.replace('"state":', '"etats":'))],
    [
      "where what was moved is",
      [headerLine({ file: "f", createdAt: "2026", moved: { to: "x", isUnfinished: false } })],
    ],
    ["what an append that is under way adds", [...lines, lines[1]!.slice(0, 50)]],
  ])("%s", (_what, all) => {
    expect(glanceAt(made(all), { all: true })).toBeUndefined();
  });

  it("what is no file, or cannot be read", async () => {
    const path = made(lines);
    expect(glanceAt(dirname(path), { all: true })).toBeUndefined();
    expect(glanceAt(`${path}.none`, { all: true })).toEqual([]);
    symlinkSync(path, `${path}.link`);
    linkSync(path, `${path}.name`);
    expect(glanceAt(`${path}.link`, { all: true })).toBeUndefined();
    expect(glanceAt(`${path}.name`, { all: true })).toHaveLength(3);
    for (const call of ["open", "fstat", "read"]) {
      const { value, open } = await onDisk(
        () => glanceAt(path, { all: true }),
        (one) => (one.call === call ? diskError("EIO", call) : undefined),
      );
      expect([call, value, open]).toEqual([call, undefined, []]);
    }
    expect((await onDisk(() => glanceAt(path, { all: true }))).open).toEqual([]);
    truncateSync(path);
    expect(glanceAt(path, { all: true })).toEqual([]);
    rmSync(path);
    mkdirSync(path);
    expect(glanceAt(path, {})).toBeUndefined();
    writeFileSync(`${path}.blank`, "\n\n");
    expect(glanceAt(`${path}.blank`, {})).toEqual([]);
  });
});
