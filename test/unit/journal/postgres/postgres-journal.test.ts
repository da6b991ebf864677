// What a team's journal asks its server, and what it makes of the answers.
import { describe, expect, it } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { entryColumns, fingerprintOf } from "../../../../src/journal/postgres/columns.ts";
import type { Server } from "../../../../src/journal/postgres/connect.ts";
import { PostgresJournal } from "../../../../src/journal/postgres/postgres-journal.ts";
import type { Row } from "../../../../src/journal/postgres/session.ts";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { recordContent, recordHash } from "../../../../src/journal/record.ts";
import { ada, intent } from "../intent.ts";
import { anEntry, ASession, entryRow, heldRow, partsOf, type Responses } from "./a-session.ts";

function journalWith(responses: Responses, about: Partial<Server> = {}) {
  const server = new ASession(responses, about);
  return { server, journal: new PostgresJournal({ ...partsOf(server), waitMs: 0 }) };
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

const limitOf = ({ text }: { readonly text: string }): string | undefined => /LIMIT (\d+)$/.exec(text)?.[1];
const numbered = (from: number, count: number, changes: Partial<Entry> = {}): Row[] =>
  Array.from({ length: count }, (_, at) =>
    entryRow(anEntry({ id: `1rs${String(from - at).padStart(7, "0")}`, ...changes })),
  );
const idsOf = (rows: readonly Row[]): unknown[] => rows.map(({ id }) => id);

const { profile, profile_id, organization_id, region, base_url } = intent();
const account = { profile, profile_id, organization_id, region, base_url, principal: undefined };

describe("a list", () => {
  it.each<[EntryFilter, string | undefined]>([
    [{ all: true }, undefined],
    [{}, undefined],
    [{ all: true, limit: 1500 }, "1500"],
    [{ all: true, account }, undefined],
  ])("of %j is one question", async (filter, limit) => {
    const rows = numbered(9, 3);
    const { journal, server } = journalWith([rows]);
    expect((await journal.select(filter)).map(({ id }) => id)).toEqual(idsOf(rows));
    expect(server.asked.map(limitOf)).toEqual([limit]);
  });

  it("that goes on and on is read a thousand at a time, each below the last one", async () => {
    const pages = [numbered(5000, 1000), numbered(4000, 1000), numbered(3000, 2)];
    const { journal, server } = journalWith([...pages]);
    const found: string[] = [];
    for await (const { id } of journal.each({ all: true })) found.push(id);
    expect(found).toEqual(pages.flatMap(idsOf));
    expect(server.asked.map(({ values }) => values)).toEqual([[], ["1rs0004001"], ["1rs0003001"]]);
    expect(server.asked.map(limitOf)).toEqual(["1000", "1000", "1000"]);
  });

  it.each<[string, EntryFilter, readonly Row[][], string[], number]>([
    ["of the newest one", { limit: 1 }, [numbered(9, 1)], ["1"], 1],
    ["of more than there are", { limit: 5 }, [numbered(9, 3)], ["5"], 3],
    ["of more than a page", { limit: 1001 }, [numbered(5000, 1000), numbered(4000, 1)], ["1000", "1"], 1001],
    ["of none", { limit: 0 }, [], [], 0],
  ])("%s asks for no more of them", async (_what, filter, pages, limits, count) => {
    const { journal, server } = journalWith([...pages]);
    let found = 0;
    for await (const _ of journal.each({ all: true, ...filter })) found += 1;
    expect([found, server.asked.map(limitOf)]).toEqual([count, limits]);
  });

  it("of so many of an account asks for whole pages, and shows so many", async () => {
    const other = { organization_id: "00000000-0000-4000-8000-000000000009" };
    const pages = [[...numbered(5000, 998, other), ...numbered(4002, 2)], numbered(4000, 1000)];
    const { journal, server } = journalWith([...pages]);
    const found = await journal.select({ all: true, account, limit: 3 });
    expect(found.map(({ id }) => id)).toEqual(["1rs0004002", "1rs0004001", "1rs0004000"]);
    expect(server.asked.map(limitOf)).toEqual(["1000", "1000"]);
    expect(server.asked.map(({ values }) => values)).toEqual([[base_url], [base_url, "1rs0004001"]]);
  });
});

describe("an id", () => {
  it("is looked for by its beginning", async () => {
    const entry = anEntry();
    const { journal, server } = journalWith([[entryRow(entry)]]);
    expect(await journal.find(" 1RS6 ")).toEqual(entry);
    expect(server.asked.map(({ values }) => values)).toEqual([["1rs6"]]);
  });

  it.each(["a_b", "1rs6%", "é", ""])("that no entry can have is not looked for: %j", async (typed) => {
    const { journal, server } = journalWith([[entryRow(anEntry())]]);
    const failure = await failureOf(journal.find(typed));
    expect([failure.kind, failure.message]).toEqual(["not_found", `Journal entry ${JSON.stringify(typed)} not found.`]);
    expect(server.asked).toEqual([]);
  });
});

/** Answers of a journal that is here: nothing says that it was moved. */
const here: readonly Row[] = [];
const admitted: readonly Row[] = [{ entry: "new" }];

describe("an intent", () => {
  it("that is new is there with its first record, all at once", async () => {
    const { journal, server } = journalWith([here, [], admitted]);
    const { kind, lease, alongside } = await journal.admit(intent());
    expect([kind, alongside]).toEqual(["new", []]);
    expect(server.asked).toHaveLength(3);
    const { entry } = lease;
    expect(server.asked[1]!.values).toEqual([fingerprintOf(entry), base_url, null]);
    const content = recordContent(entry, { by: ada });
    const columns = entryColumns(entry);
    expect(server.asked[2]!.values).toEqual([
      entry.id,
      columns.operation,
      "open",
      false,
      "prod",
      base_url,
      entry.idempotency_key,
      columns.fingerprint,
      null,
      null,
      columns.resources,
      "2026-11-21T02:00:00.000Z",
      content,
      recordHash(content),
      expect.stringContaining('"user":"ada","host":"desk"'),
      45_000,
      "ada",
      "desk",
      null,
    ]);
    // A lost answer: it is there if its own row is.
    const settle = server.settled[0]!;
    expect(await settle(async () => [{ id: entry.id, hash: recordHash(content) }])).toHaveLength(1);
    expect(await settle(async () => [{ id: entry.id, hash: "x" }])).toBeUndefined();
    expect(await settle(async () => [])).toBeUndefined();
  });

  it("that another process was first with is looked for again", async () => {
    const entry = anEntry();
    const taken = Object.assign(new Error("twice"), { code: "23505", severity: "ERROR" });
    const row = entryRow(entry, { found: "same" });
    const { journal, server } = journalWith([here, [], [], here, [], taken, here, [row], here, [row]]);
    const { kind, lease } = await journal.admit(intent());
    expect([kind, lease.entry]).toEqual(["resumed", entry]);
    expect(server.asked).toHaveLength(10);
  });

  it("stands beside those of the same request that others work on now", async () => {
    const [busy, free, other] = [
      anEntry({ id: "1rs0000001", state: "waiting" }),
      anEntry({ id: "1rs0000002", state: "waiting" }),
      anEntry({ id: "1rs0000003", parent: "1rs0000009" }),
    ];
    const rows = [
      entryRow(busy, { ...heldRow(), found: "same" }),
      entryRow(free, { ...heldRow({ is_held: false }), found: "same" }),
      entryRow(other, { ...heldRow(), found: "same" }),
    ];
    const { journal } = journalWith([here, rows, admitted]);
    const { kind, alongside } = await journal.admit(intent(), { fresh: true });
    const holder = { user: "bob", host: "farm", pid: 4711, since: heldRow().since, until: heldRow().until };
    expect([kind, alongside]).toEqual(["new", [{ entry: busy.id, holder }]]);
  });

  it("with a key is that of the key, whatever else is unfinished", async () => {
    const [keyed, same] = [anEntry({ id: "1rs0000001", state: "done" }), anEntry({ id: "1rs0000002" })];
    const found = [entryRow(keyed, { found: "key" }), entryRow(same, { found: "same" })];
    const { journal, server } = journalWith([here, found, here, [entryRow(keyed)]]);
    const { kind, lease } = await journal.admit(intent(), { key: "k1" });
    expect([kind, lease.entry]).toEqual(["same_key", keyed]);
    expect(server.asked[1]!.values).toEqual([fingerprintOf(intent() as never), base_url, "k1"]);
    expect(server.asked[3]!.values[0]).toBe(keyed.id);
  });

  it("goes on with what the same client began on another machine", async () => {
    const entry = anEntry({ principal: "client-1" });
    const { journal } = journalWith([[entryRow(entry, { found: "same" })], here, [entryRow(entry)]]);
    const came = await journal.resume(intent({ profile_id: "prf_2", principal: "client-1" }));
    expect([came?.kind, came?.lease.entry]).toEqual(["resumed", entry]);
  });

  it("is new if what was unfinished is done by the time it is taken", async () => {
    const entry = anEntry();
    const done = entryRow({ ...entry, state: "done" });
    const { journal, server } = journalWith([[entryRow(entry, { found: "same" })], here, [done], [], []]);
    expect(await journal.resume(intent())).toBeUndefined();
    // It was given back, and looked for again.
    expect(server.asked[3]!.values).toEqual([entry.id, "1"]);
    expect(server.asked).toHaveLength(5);
  });

  it.each<[string, Row[], Partial<Server>, object]>([
    [
      "whose entries are elsewhere",
      [{ key: "moved_to", value: "/there" }],
      {},
      {
        kind: "usage",
        message: expect.stringContaining("postgresql://h/d"),
        details: { hint: "Set INTEG_JOURNAL, or --journal of the profile, to /there." },
      },
    ],
    [
      "whose entries are on their way",
      [
        { key: "is_unfinished", value: "true" },
        { key: "moved_to", value: "/there" },
      ],
      {},
      { kind: "usage", details: { nextCommand: "integ journal move --to /there" } },
    ],
    [
      "of a read-only server",
      [],
      { isReadOnly: true },
      {
        kind: "unreachable",
        message: "The server of the journal postgresql://h/d is read-only.",
        details: {
          meaning: "Nothing was sent and nothing changed.",
          hint: "Use the primary: several hosts with target_session_attrs=read-write find it.",
        },
      },
    ],
  ])("is not admitted to a journal %s", async (_what, moved, about, expected) => {
    const { journal, server } = journalWith([moved], about);
    expect(await failureOf(journal.admit(intent()))).toMatchObject(expected);
    expect(server.asked).toHaveLength(1);
  });
});

describe("the journal", () => {
  it("is never damaged as a file is", async () => {
    const { journal, server } = journalWith([]);
    expect(await journal.condition()).toEqual({ damagedPlaces: 0, isEmptied: false });
    expect([journal.path, journal.isShared, server.asked]).toEqual(["postgresql://h/d", true, []]);
  });

  it("names who holds its entries now", async () => {
    const rows = [
      { id: "a", ...heldRow() },
      { id: "b", ...heldRow({ holder: null }) },
    ];
    const { journal } = journalWith([rows]);
    const holder = { user: "bob", host: "farm", pid: 4711, since: heldRow().since, until: heldRow().until };
    expect([...(await journal.holders())]).toEqual([["a", holder]]);
  });

  it("has an entry that nobody holds, and says so of one that somebody does", async () => {
    const entry = anEntry();
    const found = [entryRow(entry)];
    const free = journalWith([found, here, found]);
    expect((await free.journal.tryLease(entry.id))?.entry).toEqual(entry);
    const held = journalWith([found, here, [], [heldRow()]]);
    expect(await held.journal.tryLease(entry.id)).toBeNull();
    const waited = journalWith([found, here, [], [heldRow()]]);
    expect(await failureOf(waited.journal.lease(entry.id))).toMatchObject({ kind: "outcome_unknown" });
  });

  it.each<[string, (journal: PostgresJournal) => Promise<unknown>, string | undefined]>([
    ["reads", (journal) => journal.count(), undefined],
    ["verifies", (journal) => journal.verify(), undefined],
    ["takes in", (journal) => journal.merge([]), "Nothing was imported."],
    [
      "is marked as moved",
      (journal) => journal.markMoved({ to: "/x", isUnfinished: false }),
      "The journal is as it was.",
    ],
    ["forgets", (journal) => journal.prune(1), "The journal was not changed."],
    ["looks where it is", (journal) => journal.movedTo(), undefined],
    ["takes an entry away", (journal) => journal.takeAway("a", { pid: 1 } as never), undefined],
    ["admits", (journal) => journal.admit(intent()), undefined],
    ["resumes", (journal) => journal.resume(intent()), undefined],
    ["leases", (journal) => journal.lease("1rs6y1ys1e"), undefined],
    ["tries to lease", (journal) => journal.tryLease("1rs6y1ys1e"), undefined],
  ])(
    "%s, unless the server does not permit it",
    async (_what, work, meaning = "Nothing was sent and nothing changed.") => {
      const refused = Object.assign(new Error("no right"), { code: "42501", severity: "ERROR" });
      const failure = await failureOf(work(journalWith([refused]).journal));
      expect([failure.kind, failure.message, failure.details.meaning]).toEqual([
        "usage",
        "The server of the journal postgresql://h/d does not permit this to the role: no right (SQLSTATE 42501).",
        meaning,
      ]);
    },
  );
});
