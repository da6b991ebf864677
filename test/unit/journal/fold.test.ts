import { expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { recordContent, seal } from "../../../src/journal/record.ts";
import { candidates, Fold } from "../../../src/journal/fold.ts";
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
  const records = (id: string) => [...before.records(id)];
  const earlier = {
    format: 2,
    isJournal: true,
    damage,
    misplaced,
    lastSum: before.lastSum,
    gaps: new Set(["g"]),
    count: before.count(),
    newest: before.newest(),
    unsettled: before.unsettled().map(({ id }) => id),
    records,
    newestRecord: (id: string) => records(id).at(-1)?.record,
    ids: () => before.ids(),
    idsSince: () => before.ids(),
    named: () => before.ids(),
    beginning: (start: string) => before.beginning(start),
  };
  const fold = new Fold(earlier);
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
