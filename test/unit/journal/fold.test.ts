import { describe, expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { recordContent, seal } from "../../../src/journal/record.ts";
import { candidates, type Earlier, Fold } from "../../../src/journal/fold.ts";
import { scanBytes } from "../../../src/journal/file/scan.ts";
import type { EntryFilter } from "../../../src/journal/lookup.ts";
import { headerLine } from "../../../src/journal/record.ts";
import { idAt, longJournal } from "../../support/long-journal.ts";
import { readEntry } from "../../../src/journal/read-entry.ts";
import { ada, intent } from "./intent.ts";

const file = { kind: "file", path: "/s", as: "env", force: false } as const;
const store = { kind: "store", to: "keychain:s/a", facts: { server: "x" } } as const;
const earlier = { kind: "file", path: "/s", force: false, born: "1" } as const;

test.each([
  ["oauth_client.create", {}, { kind: "command" }],
  ["oauth_client.create", { client_id: null, secret_claimed: true, revoked: false, later: [1] }, { ...file, later: 1 }],
  ["oauth_client.rotate", { old_client: "oc_1", overlap_ms: 0, keep_old: false }, { kind: "stdout" }],
  ["oauth_client.revoke", {}, null],
  ["access_key.create", { base_name: "ci", marked: false, expiry: null, created_by: null }, { ...file, born: "1" }],
  [
    "access_key.rotate",
    { mode: "in_place", key_id: "k", in_flight: true },
    { kind: "profile", name: "p", profileId: "1" },
  ],
  ["access_key.rotate", { mode: "replacement", old_key: "k", bound_to: null }, null],
  ["access_key.revoke", { key_id: "k" }, null],
  ["an.operation.to.come", { old_client: "x" }, null],
])(
  "%s: what earlier versions wrote of its work is read, and unknown keys are kept",
  (operation, detail, destination) => {
    expect(reread({ operation, detail, destination })).toMatchObject({ operation, detail, destination });
  },
);

test.each([
  [{ detail: [] }],
  [{ detail: { client_id: 1 } }],
  [{ detail: { secret_claimed: "yes" } }],
  [{ detail: { overlap_ms: "10" } }],
  [{ detail: { key_id: null } }],
  [{ operation: "oauth_client.rotate", detail: {} }],
  [{ operation: "access_key.rotate", detail: { key_id: "k" } }],
  [{ operation: "access_key.rotate", detail: { mode: "in_place" } }],
  [{ operation: "access_key.rotate", detail: { mode: "replacement", key_id: "k" } }],
  [{ operation: "access_key.revoke", detail: {} }],
  [{ destination: "stdout" }],
  [{ destination: {} }],
  [{ destination: { kind: "moon" } }],
  [{ destination: { kind: "command", mark: 1 } }],
  [{ destination: { kind: "profile", name: "p" } }],
  [{ destination: { ...file, as: "xml" } }],
  [{ destination: { ...file, force: "no" } }],
  [{ destination: { ...file, inode: 1 } }],
  [{ destination: { ...earlier, format: "template:{secret}x", as: 1 } }],
  [{ destination: { ...file, proof: { entry: "e" } } }],
  [{ destination: { kind: "store", to: "keychain:s/a" } }],
  [{ destination: { ...store, facts: { server: 1 } } }],
  [{ destination: { ...store, proof: "p" } }],
  [{ destination: { kind: "several", places: {} } }],
  [{ destination: { kind: "several", places: [file] } }],
  [{ destination: { kind: "several", places: [{ state: "lost", at: file }] } }],
  [{ destination: { kind: "several", places: [{ state: "failed", at: { kind: "several", places: [] } }] } }],
])("%j is damage", (changes) => {
  expect(reread(changes)).toBeUndefined();
});

test.each<[object, object?]>([
  [
    { ...earlier, format: "raw" },
    { ...earlier, as: "line" },
  ],
  [
    { ...earlier, format: "json", later: 1 },
    { ...earlier, as: "json", later: 1 },
  ],
  [
    { ...file, as: "raw" },
    { ...file, as: "raw" },
  ],
  [{ ...file, as: "template:{secret}", proof: { entry: "e", digest: "d" } }],
  [{ ...file, as: "env:A=secret" }],
  [{ ...store, proof: { entry: "e", digest: "d" } }],
  [
    {
      kind: "several",
      places: [
        { state: "delivered", at: file },
        { state: "failed", at: store },
      ],
    },
    undefined,
  ],
  [
    { kind: "several", places: [{ state: "pending", at: { ...earlier, format: "env" } }] },
    {
      kind: "several",
      places: [{ state: "pending", at: { ...earlier, as: "env" } }],
    },
  ],
])("the destination %j is read as its version meant it", (destination, expected = destination) => {
  expect(reread({ destination })?.destination).toEqual(expected);
});

/** An entry with parts that its type would not let in, written and read. */
function reread(changes: object): Entry | undefined {
  const entry = newEntry(intent(), { id: "1rs6rsqksj", key: "k", at: "2026-11-21T00:00:00.000Z" });
  const bytes = Buffer.from(seal(recordContent({ ...entry, ...changes }, { by: ada })));
  return readEntry({ bytes, start: 0, end: bytes.length - 1 }, { record: 1, entry: 1 });
}

function foldOf(lines: readonly string[]): Fold {
  const fold = new Fold();
  fold.add(scanBytes(Buffer.from(lines.join("")), { offset: 0, line: 1 }));
  return fold;
}

const long = longJournal(60);
const numbers = Array.from({ length: 60 }, (_, number) => number);
/** Every tenth has its last step a hundred entries later. */
const unfinished = [0, 7, 8, 10, 20, 30, 40, 50, 57, 58];
const newestFirst = (some: readonly number[]): string[] => some.toSorted((a, b) => b - a).map(idAt);

test.each<[string, EntryFilter, readonly number[]]>([
  ["all", { all: true }, numbers],
  ["by id", { all: true, ids: [idAt(3), idAt(50), idAt(3), "0000000000"] }, [3, 50]],
  ["by a name", { all: true, resource: "oac_12" }, [12]],
  ["of another", { all: true, parent: idAt(21) }, [23]],
  ["unfinished", {}, unfinished],
  ["in unfinished states", { states: ["secret_lost"] }, unfinished],
  ["in other states too", { states: ["secret_lost", "done"] }, numbers],
  ["behind one", { all: true, after: idAt(55) }, [56, 57, 58, 59]],
])("entries that may fit are as few as possible: %s", (_what, filter, expected) => {
  expect([...candidates(foldOf(long), filter)].map(({ id }) => id)).toEqual(newestFirst(expected));
});

test("what contradicts or repeats an earlier record is told, and changes nothing", () => {
  const of = (number: number): string[] => long.filter((line) => line.includes(`"key-${number}"`));
  const [first, second, third] = of(12);
  const other = seal(recordContent({ ...foldOf(long).get(idAt(12))!, method: "PUT", sequence: 4 }, { by: ada }));
  const header = headerLine({ file: "x", createdAt: "2026", kept: { records: 1, digest: "d", gaps: ["a"] } });
  const fold = foldOf([header, first!, second!, third!, second!, other, header]);
  expect(fold.damage.map(({ line, reason }) => [line, reason])).toEqual([
    [6, `it contradicts an earlier record of entry ${idAt(12)}`],
  ]);
  expect(fold.damage[0]!.bytes.toString()).toBe(other.trimEnd());
  expect(fold.misplaced).toEqual([
    { id: idAt(12), line: 5 },
    { id: undefined, line: 7 },
  ]);
  expect([fold.count(), fold.newest(), [...fold.gaps], fold.isJournal, fold.hasOwn]).toEqual([
    1,
    idAt(12),
    ["a"],
    true,
    true,
  ]);
  expect(fold.get(idAt(12))).toEqual(foldOf(long).get(idAt(12)));
  expect(fold.records(idAt(12))).toHaveLength(3);
  expect([new Fold().hasOwn, new Fold().isJournal, new Fold().format, new Fold().newest()]).toEqual([
    false,
    false,
    0,
    undefined,
  ]);
});

test("an entry whose newest record is none is as before it, and its number goes on", () => {
  const [first, second] = long.filter((line) => line.includes('"key-12"'));
  const content = recordContent({ ...foldOf(long).get(idAt(12))!, sequence: 5 }, { by: ada });
  const bad = seal(content.replace('"attempts":', '"attempt":'));
  const fold = foldOf([first!, second!, bad]);
  expect(fold.get(idAt(12))).toMatchObject({ state: "unknown", sequence: 5 });
  expect(foldOf([bad]).get(idAt(12))).toBeUndefined();
  expect([...foldOf([bad]).entries()]).toEqual([]);
});

test("a step of a newer program makes its entry one that is only shown", () => {
  const [first, second] = long.filter((line) => line.includes('"key-12"'));
  const content = recordContent({ ...foldOf(long).get(idAt(12))!, sequence: 3 }, { by: ada });
  const newer = seal(content.replace('"v":2', '"v":9'));
  const fold = foldOf([first!, second!, newer]);
  expect(fold.get(idAt(12))!.format).toBe(9);
  expect(fold.isNewer).toBe(false);
  const file = foldOf([
    headerLine({ file: "x", createdAt: "2026" }).replace(/.*/, (line) =>
      seal(line.slice(line.indexOf('"v":'), -1).replace('"v":2', '"v":9')).trimEnd(),
    ),
    first!,
  ]);
  expect([file.isNewer, file.format]).toEqual([true, 9]);
});

test("a fold goes on where the part before it ended", () => {
  const before = foldOf(long.slice(0, 90));
  const damage = [{ offset: 1, line: 2, bytes: Buffer.from("x"), reason: "bad" }];
  const misplaced = [{ id: "0", line: 3 }];
  const all = () => before.ids();
  const changes = { damage, misplaced, gaps: new Set(["g"]), idsSince: all, named: all };
  const { fold, earlier } = partOf(long.slice(0, 90), changes);
  const { format, isJournal, lastSum, hasOwn } = fold;
  expect({ format, isJournal, lastSum, hasOwn }).toEqual({
    format: 2,
    isJournal: true,
    lastSum: before.lastSum,
    hasOwn: false,
  });
  expect([fold.damage, fold.misplaced, [...fold.gaps], fold.newest()]).toEqual([
    damage,
    misplaced,
    ["g"],
    before.newest(),
  ]);
  const asked = (of: Fold): unknown => ({
    entries: [...of.entries()],
    unsettled: of.unsettled(),
    count: of.count(),
    newest: of.newest(),
    beginning: of.beginning(""),
    hashes: numbers.map((number) => of.newestHash(idAt(number))),
    histories: numbers.map((number) => of.history(idAt(number))),
    since: [...of.since("2026")],
    lastSum: of.lastSum,
  });
  expect(asked(fold)).toEqual(asked(before));
  // Steps of entries that are before it, and entries of its own between them.
  fold.add(scanBytes(Buffer.from(long.slice(90).join("")), { offset: 0, line: 91 }));
  expect(asked(fold)).toEqual(asked(foldOf(long)));
  const again = new Fold(earlier);
  again.unsettled();
  again.add(scanBytes(Buffer.from(long.slice(5, 9).join("")), { offset: 0, line: 91 }));
  expect([again.misplaced.length, again.count(), asked(again)]).toEqual([
    5,
    before.count(),
    { ...(asked(before) as object), lastSum: again.lastSum },
  ]);
  expect([...again.touched()]).toEqual([]);
});

/** A step of an entry of few words, in a format. */
function step(id: string, changes: Partial<Entry> = {}, format = 2): string {
  const made = { ...newEntry(intent(), { id, key: null, at: "2026-11-21T00:00:00.000Z" }), ...changes };
  const content = recordContent(made, { by: ada }).replace('"v":2', `"v":${format}`);
  // Earlier versions did not count.
  return seal(format === 1 ? content.replace(/,"n":\d+$/, "") : content);
}

/** A part that is asked for what it has, and writes down the ids whose records were asked for. */
function partOf(lines: readonly string[], changes: Partial<Earlier> = {}) {
  const before = foldOf(lines);
  const asked: string[] = [];
  const ids = [...before.ids()];
  const earlier: Earlier = {
    format: before.format,
    isJournal: true,
    damage: [],
    misplaced: [],
    lastSum: before.lastSum,
    gaps: new Set(),
    count: ids.length,
    newest: before.newest(),
    unsettled: before.unsettled().map(({ id }) => id),
    records: (id) => {
      asked.push(`all of ${id}`);
      return [...before.records(id)];
    },
    newestRecord: (id) => {
      asked.push(`newest of ${id}`);
      return before.records(id).at(-1)?.record;
    },
    ids: () => ids,
    idsSince: () => ids.slice(0, 1),
    named: () => ids.slice(0, 1),
    beginning: (start) => ids.filter((id) => id.startsWith(start)),
    ...changes,
  };
  const fold = new Fold(earlier);
  const add = (...more: readonly string[]): Fold => {
    fold.add(scanBytes(Buffer.from(more.join("")), { offset: 0, line: 9 }));
    return fold;
  };
  return { fold, earlier, asked, add };
}

const idsOf = (entries: Iterable<Entry>): string[] => [...entries].map(({ id }) => id);
const [a, b, c, d, e] = ["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee"] as const;

test("the newest entry has the highest id, wherever it stands", () => {
  expect(foldOf([step(b), step(a)]).newest()).toBe(b);
  expect(foldOf([step(a), step(b)]).newest()).toBe(b);
  expect(
    partOf([step(c)])
      .add(step(b))
      .newest(),
  ).toBe(c);
  expect(
    partOf([step(c)])
      .add(step(d))
      .newest(),
  ).toBe(d);
});

describe("an entry of the part before", () => {
  test("is its newest record: no other one is asked for", () => {
    const { fold, asked } = partOf([step(a), step(a, { sequence: 2, state: "unknown", attempts: 1 })]);
    expect(fold.get(a)).toMatchObject({ id: a, state: "unknown", attempts: 1, sequence: 2, format: 2 });
    expect(asked).toEqual([`newest of ${a}`]);
    expect(fold.get(b)).toBeUndefined();
    expect(asked.slice(1)).toEqual([`newest of ${b}`]);
  });

  test.each<[string, string[], object | undefined, number]>([
    ["that no one counted", [step(a, {}, 1), step(a, { state: "unknown" }, 1)], { state: "unknown", format: 1 }, 0],
    ["that an earlier version began", [step(a, {}, 1), step(a, { sequence: 2, state: "done" })], { state: "done" }, 2],
    ["that a newer program went on with", [step(a), step(a, { state: "done" }, 9)], { state: "done", format: 9 }, 1],
    [
      "whose newest record is none",
      [step(a), step(a, { sequence: 2, attempts: 0.5 })],
      { state: "open", format: 2 },
      2,
    ],
    ["without a sound record", [step(a, { attempts: 0.5 })], undefined, 0],
  ])("%s is as its records say", (_what, lines, expected, sequence) => {
    const entry = partOf(lines).fold.get(a);
    if (expected === undefined) expect(entry).toBeUndefined();
    else expect(entry).toMatchObject({ ...expected, id: a, sequence });
    expect(entry).toEqual(foldOf(lines).get(a));
  });

  test("is only shown in a file of a newer program", () => {
    expect(partOf([step(a)], { format: 9 }).fold.get(a)?.format).toBe(9);
    expect(partOf([step(a)], { format: 1 }).fold.get(a)?.format).toBe(2);
  });

  test("that is unfinished is asked for once, until it goes on here", () => {
    const { fold, asked, add } = partOf([step(a), step(b, { state: "done" }), step(c, { state: "unknown" })]);
    expect(idsOf(fold.unsettled())).toEqual([c, a]);
    expect(asked).toEqual([`newest of ${c}`, `newest of ${a}`]);
    expect([fold.get(a)?.state, fold.get(c)?.state, asked.length]).toEqual(["open", "unknown", 2]);
    add(step(a, { sequence: 2, state: "pending" }), step(c, { sequence: 2, state: "done" }));
    expect([idsOf(fold.unsettled()), fold.get(a)?.state, fold.get(c)?.state]).toEqual([[a], "pending", "done"]);
  });

  test("that is not unfinished, or not there, is not one of the unfinished", () => {
    const { fold } = partOf([step(a), step(b, { state: "done" })], { unsettled: [a, b, c] });
    expect(idsOf(fold.unsettled())).toEqual([a]);
  });
});

test.each<[string, string[], string[], string[]]>([
  ["between those before", [a, c, e], [b, d], [e, d, c, b, a]],
  ["above them", [a, b], [c, d], [d, c, b, a]],
  ["below them", [c, d], [a, b], [d, c, b, a]],
  ["with a step of theirs", [a, c], [c, b], [c, b, a]],
  ["alone", [], [b, a], [b, a]],
])("the ids of its own are %s, in their order", (_what, before, own, expected) => {
  const { fold, add } = partOf(before.map((id) => step(id)));
  add(...own.map((id) => step(id, { sequence: 2 })));
  expect([[...fold.ids()], fold.count(), idsOf(fold.entries())]).toEqual([expected, expected.length, expected]);
});

test("an id whose records the part before has no longer is told once", () => {
  const { fold, add } = partOf([], { newest: e, ids: () => [e, c, a] });
  add(step(b), step(c), step(d));
  expect([...fold.ids()]).toEqual([e, d, c, b, a]);
});

test("what was taken in is told entry by entry, with its newest state", () => {
  const { fold, add } = partOf([step(a), step(b)]);
  add(step(a, { sequence: 2, state: "done" }), step(c), step(c, { sequence: 2, state: "done" }), step(d), step(b));
  const told = [...fold.touched()].map(({ added, entry, ...rest }) => ({
    ...rest,
    added: added.length,
    is: entry?.state,
  }));
  expect(told).toEqual([
    { id: a, isNew: false, isUnsettled: false, added: 1, is: "done" },
    { id: c, isNew: true, isUnsettled: false, added: 2, is: "done" },
    { id: d, isNew: true, isUnsettled: true, added: 1, is: "open" },
  ]);
});

test.each<[EntryFilter, string[]]>([
  [{ all: true, since: "2026" }, [d, c]],
  [{ all: true, after: a, since: "2026" }, [d, c, b]],
  [{ all: true }, [d, c, b, a]],
  [{ all: true, resource: "oac_1" }, [c]],
  [{ all: true, ids: [a, d] }, [d, a]],
  [{ since: "2026" }, [d, a]],
])("of the part before as few as possible are looked at for %j", (filter, expected) => {
  const done = { state: "done" } as const;
  const { add } = partOf([step(a), step(b, done), step(c, done)]);
  expect(idsOf(candidates(add(step(d)), filter))).toEqual(expected);
});
