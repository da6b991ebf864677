// What the server is asked where entries are forgotten, or carried into a journal and out of it.
import { describe, expect, it } from "vitest";
import type { Failure } from "../../../../src/errors.ts";
import { entryColumns } from "../../../../src/journal/postgres/columns.ts";
import { pruneTables } from "../../../../src/journal/postgres/prune.ts";
import type { Row } from "../../../../src/journal/postgres/session.ts";
import { markMovedIn, mergeInto, movedFrom, recordsIn } from "../../../../src/journal/postgres/transfer.ts";
import type { EntryRecords } from "../../../../src/journal/merge.ts";
import { recordContent, recordHash } from "../../../../src/journal/record.ts";
import { ada } from "../intent.ts";
import { anEntry, ASession, entryRow, partsOf, type Responses } from "./a-session.ts";

const meta = '"team".integ_meta';
const entries = '"team".integ_entries';
const records = '"team".integ_records';
const escrow = '"team".integ_escrow';
const lock = `LOCK TABLE ${entries} IN SHARE ROW EXCLUSIVE MODE`;
const marks = `SELECT key, value FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`;
const there: Row[] = [{ key: "moved_to", value: "/there" }];
const onTheWay: Row[] = [{ key: "is_unfinished", value: "true" }, ...there];

function asked(server: ASession): (string | readonly [string, readonly unknown[]])[] {
  return server.asked.map(({ text, values }) => (values.length === 0 ? text : [text, values]));
}

async function refusalOf(work: Promise<unknown>): Promise<Failure> {
  return work.then(
    () => Promise.reject(new Error("it was done")),
    (error: Failure) => error,
  );
}

describe("forgetting", () => {
  const all = `SELECT id, content, coalesce(lease_until > clock_timestamp(), false) AS is_held FROM ${entries} ORDER BY id DESC`;
  const choice = { before: "2026-11-21T01:30:00.000Z", includeLive: false, isTrial: false };
  const old = anEntry({ id: "1rs0000001", state: "refused" });
  const [live, held, young] = [
    anEntry({ id: "1rs0000002", state: "done", resource_id: "oac_1" }),
    anEntry({ id: "1rs0000003", state: "refused" }),
    anEntry({ id: "1rs0000004", state: "refused", updated_at: "2026-11-21T01:30:00.000Z" }),
  ];
  const rows = [young, held, live, old].map((entry) => entryRow(entry, { is_held: entry === held }));

  it("removes what is over with all that belongs to it, while nothing else is recorded", async () => {
    const server = new ASession([[], [], rows]);
    expect(await pruneTables(partsOf(server), choice)).toEqual({ removed: 1, live: [], keptLive: [live] });
    const ids = [[old.id]];
    expect(asked(server)).toEqual([
      lock,
      marks,
      all,
      [`DELETE FROM ${records} WHERE entry = ANY($1)`, ids],
      [`DELETE FROM ${escrow} WHERE entry = ANY($1)`, ids],
      [`DELETE FROM ${entries} WHERE id = ANY($1)`, ids],
    ]);
    expect(server.transactions).toEqual({ begun: 1, done: 1 });
  });

  it("removes what may still be live only if that is asked for", async () => {
    const server = new ASession([[], [], rows]);
    const pruned = await pruneTables(partsOf(server), { ...choice, includeLive: true });
    expect(pruned).toEqual({ removed: 2, live: [live], keptLive: [] });
    expect(server.asked.slice(3).map(({ values }) => values)).toEqual([1, 2, 3].map(() => [[live.id, old.id]]));
  });

  it("removes nothing and locks nothing in a trial", async () => {
    const server = new ASession([[], rows]);
    expect(await pruneTables(partsOf(server), { ...choice, isTrial: true })).toMatchObject({ removed: 1 });
    expect(asked(server)).toEqual([marks, all]);
  });

  it("asks for nothing to be removed where nothing is over", async () => {
    const server = new ASession([[], [], rows.slice(0, 2)]);
    expect(await pruneTables(partsOf(server), choice)).toEqual({ removed: 0, live: [], keptLive: [] });
    expect(asked(server)).toEqual([lock, marks, all]);
  });

  it.each([true, false])("is refused where the entries are elsewhere (trial: %s)", async (isTrial) => {
    const server = new ASession(isTrial ? [there, rows] : [[], there, rows]);
    const refused = await refusalOf(pruneTables(partsOf(server), { ...choice, isTrial }));
    expect(refused).toMatchObject({ kind: "usage", message: expect.stringContaining("/there") });
    expect(server.transactions).toEqual({ begun: 1, done: 0 });
  });
});

describe("the records of all entries", () => {
  it("are read five hundred entries at a time, each time after the last one", async () => {
    const pages: Row[][] = [
      [
        { entry: "a", contents: ["1", "2"] },
        { entry: "b", contents: ["3"] },
      ],
      [{ entry: "c", contents: ["4"] }],
    ];
    const server = new ASession([...pages]);
    const found: EntryRecords[] = [];
    for await (const one of recordsIn(partsOf(server))) found.push(one);
    expect(found).toEqual([
      { id: "a", contents: ["1", "2"] },
      { id: "b", contents: ["3"] },
      { id: "c", contents: ["4"] },
    ]);
    expect(server.asked.map(({ values }) => values)).toEqual([[""], ["b"], ["c"]]);
    expect(server.asked[0]!.text).toContain("ORDER BY id LIMIT 500)");
  });
});

describe("an import", () => {
  const [first, second] = [anEntry({ parent: "1rs0000008", replaces: "1rs0000009" }), anEntry({ sequence: 2 })];
  const one = recordContent(first, { by: ada });
  const two = recordContent(
    { ...first, sequence: 2, state: "done" },
    { by: { ...ada, run: "r" }, prev: recordHash(one) },
  );
  const coming = [{ id: first.id, contents: [one, two] }];

  it("appends what is new, each entry with the columns of its newest record", async () => {
    const server = new ASession([[], [], [{ entry: first.id, hashes: [recordHash(one)] }]]);
    const merged = await mergeInto(partsOf(server), coming, {});
    expect(merged).toEqual({ added: 0, extended: 1, unchanged: 0 });
    expect(server.asked.map(({ values }) => values)).toEqual([
      [],
      [],
      [[first.id]],
      [["k1"]],
      [[first.id]],
      [
        [first.id],
        ["oauth_client.create"],
        ["done"],
        [true],
        ["prod"],
        [first.base_url],
        ["k1"],
        [entryColumns(first).fingerprint],
        ["1rs0000008"],
        ["1rs0000009"],
        [JSON.stringify(entryColumns(first).resources)],
        [first.updated_at],
        [two],
        [recordHash(two)],
        [2],
      ],
      [[first.id], [2], [two], [recordHash(two)], ["ada"], ["desk"], ["r"]],
    ]);
    expect(asked(server).slice(0, 2)).toEqual([lock, marks]);
    expect(server.transactions).toEqual({ begun: 1, done: 1 });
  });

  it("of an entry that is not there appends all of its records", async () => {
    const server = new ASession();
    expect(await mergeInto(partsOf(server), coming, {})).toEqual({ added: 1, extended: 0, unchanged: 0 });
    // No record of it is there: nobody can hold it.
    expect(server.asked[4]!.values).toEqual([[]]);
    expect(server.asked[6]!.values.slice(0, 4)).toEqual([
      [first.id, first.id],
      [1, 2],
      [one, two],
      [recordHash(one), recordHash(two)],
    ]);
  });

  it("of what is there changes nothing", async () => {
    const server = new ASession([[], [], [{ entry: first.id, hashes: [recordHash(one), recordHash(two)] }]]);
    expect(await mergeInto(partsOf(server), coming, {})).toEqual({ added: 0, extended: 0, unchanged: 1 });
    expect(server.asked).toHaveLength(5);
  });

  it("of nothing is nothing", async () => {
    const server = new ASession();
    expect(await mergeInto(partsOf(server), [], {})).toEqual({ added: 0, extended: 0, unchanged: 0 });
    expect(asked(server)).toEqual([lock, marks]);
  });

  it("of many is one transaction of five hundred entries at a time", async () => {
    const many = Array.from({ length: 501 }, (_, at) => {
      const entry = anEntry({ id: `1rs${String(at).padStart(7, "0")}`, idempotency_key: null });
      return { id: entry.id, contents: [recordContent(entry, { by: ada })] };
    });
    const server = new ASession();
    expect(await mergeInto(partsOf(server), many, {})).toEqual({ added: 501, extended: 0, unchanged: 0 });
    const inserted = server.asked.filter(({ text }) => text.startsWith(`INSERT INTO ${entries}`));
    expect(inserted.map(({ values }) => (values[0] as unknown[]).length)).toEqual([500, 1]);
    expect(server.transactions).toEqual({ begun: 1, done: 1 });
  });

  it("comes back to a journal whose entries are elsewhere only as a move", async () => {
    const refused = await refusalOf(mergeInto(partsOf(new ASession([[], there])), coming, {}));
    expect(refused).toMatchObject({ kind: "usage", message: expect.stringContaining("/there") });
    const server = new ASession();
    expect(await mergeInto(partsOf(server), coming, { isMove: true })).toMatchObject({ added: 1 });
    expect(asked(server)).not.toContain(marks);
  });

  it("of an entry that somebody works on is refused", async () => {
    const hashes = [{ entry: first.id, hashes: [recordHash(one)] }];
    const refused = await refusalOf(
      mergeInto(partsOf(new ASession([[], [], hashes, [], [{ id: first.id }]])), coming, {}),
    );
    expect([refused.kind, refused.message, refused.details]).toEqual([
      "conflict",
      `The entry ${first.id} is in use, and the import has new records for it.`,
      { meaning: "Nothing was imported.", hint: "Wait until it is released, then run the command again." },
    ]);
  });

  it.each([
    ["key and address", {}, true],
    ["key at another address", { base_url: "https://us.example.com" }, false],
    ["address with another key", { idempotency_key: "k2" }, false],
  ])("is refused if another entry has its %s", async (_what, changes, isRefused) => {
    const { base_url, idempotency_key } = { ...second, ...changes };
    const server = new ASession([[], [], [], [{ id: "1rs0000007", base_url, idempotency_key }]]);
    const work = mergeInto(partsOf(server), coming, {});
    if (!isRefused) expect(await work).toMatchObject({ added: 1 });
    else
      expect((await refusalOf(work)).message).toBe(
        `The entry ${first.id} contradicts the one in the journal: entry 1rs0000007 has its idempotency key.`,
      );
  });
});

describe("the mark of a move", () => {
  it.each<[Row[], unknown]>([
    [[], undefined],
    [there, { to: "/there", isUnfinished: false }],
    [onTheWay, { to: "/there", isUnfinished: true }],
    [onTheWay.slice(0, 1), undefined],
  ])("of %j is %j", async (rows, moved) => {
    expect(await movedFrom(partsOf(new ASession([rows])))).toEqual(moved);
  });

  const clear = `DELETE FROM ${meta} WHERE key IN ('moved_to', 'is_unfinished')`;
  const held = `SELECT id FROM ${entries} WHERE lease_until > clock_timestamp() LIMIT 1`;
  const mark: [string, string[]] = [`INSERT INTO ${meta} (key, value) VALUES ('moved_to', $1)`, ["/there"]];
  const unfinished = `INSERT INTO ${meta} (key, value) VALUES ('is_unfinished', 'true')`;
  const endOfLeases = expect.stringContaining("SET epoch = epoch + 1");

  it.each<[string, Responses, { to: string; isUnfinished: boolean } | undefined, unknown[]]>([
    ["is set", [], { to: "/there", isUnfinished: false }, [held, endOfLeases, mark]],
    ["is set first", [], { to: "/there", isUnfinished: true }, [held, endOfLeases, mark, unfinished]],
    ["is set again", [[], onTheWay], { to: "/there", isUnfinished: false }, [held, endOfLeases, mark]],
    ["is taken away", [[], there], undefined, []],
  ])("%s", async (_what, responses, moved, expected) => {
    const server = new ASession(responses);
    await markMovedIn(partsOf(server), moved);
    expect(asked(server)).toEqual([lock, marks, clear, ...expected]);
    expect(server.transactions).toEqual({ begun: 1, done: 1 });
  });

  it("is not set over that of another move", async () => {
    const server = new ASession([[], there]);
    const refused = await refusalOf(markMovedIn(partsOf(server), { to: "/other", isUnfinished: true }));
    expect(refused).toMatchObject({ kind: "usage", message: expect.stringContaining("/there") });
    expect(asked(server)).toEqual([lock, marks]);
  });

  it("is not set while somebody works on an entry", async () => {
    const server = new ASession([[], [], [], [{ id: "1rs6y1ys1e" }]]);
    const refused = await refusalOf(markMovedIn(partsOf(server), { to: "/there", isUnfinished: true }));
    expect([refused.kind, refused.message, refused.details]).toEqual([
      "conflict",
      "The entry 1rs6y1ys1e is in use: the journal cannot be moved now.",
      { meaning: "The journal is as it was.", hint: "Wait until it is released, then run the command again." },
    ]);
    expect([asked(server).length, server.transactions]).toEqual([4, { begun: 1, done: 0 }]);
  });
});
