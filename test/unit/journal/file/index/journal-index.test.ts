// What an index of a few records says: of pieces behind it, of entries in several segments, and after it was wrong.
import { writeFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { Fold } from "../../../../../src/journal/fold.ts";
import {
  indexBehind,
  type JournalIndex,
  type Segment,
  takeFacts,
  Unfit,
} from "../../../../../src/journal/file/index/journal-index.ts";
import { type Rows, rowsIn } from "../../../../../src/journal/file/index/rows.ts";
import { factsOf, type PieceFacts } from "../../../../../src/journal/file/piece-facts.ts";
import { idOf } from "../../../../../src/journal/lookup.ts";
import { headerLine, recordContent, seal, sumIn } from "../../../../../src/journal/record.ts";
import { onDisk } from "../../../../support/disk-calls.ts";
import { ada } from "../../intent.ts";
import { atOf, entryOf, idsOf, SmallJournal, someOf, type Step } from "./small-journal.ts";

function facts(piece: { readonly bytes: Buffer; readonly offset: number }): PieceFacts {
  const sent = factsOf(piece.bytes, { offset: piece.offset, isVerified: false })!;
  return { ...sent, table: rowsIn(sent.table), names: rowsIn(sent.names) };
}

function saysOf(index: JournalIndex): unknown {
  const ids = someOf(index.ids());
  return {
    ids,
    count: index.count,
    newest: index.newest,
    unsettled: index.unsettled,
    records: ids.map((id) => index.records(id).map(({ record }) => record.sequence)),
  };
}

const done = (...numbers: readonly number[]): Step[] =>
  numbers.flatMap((number): Step[] => [
    [number, 1],
    [number, 2],
  ]);

describe("a piece behind an index of the entries 10 and 20", () => {
  it.each<[string, readonly Step[], readonly number[], readonly number[]]>([
    ["later ones", done(30, 40), [40, 30, 20, 10], []],
    ["one that is open", [[30, 1]], [30, 20, 10], [30]],
    ["one between them", done(15), [20, 15, 10], []],
    ["on all sides", done(5, 15, 25), [25, 20, 15, 10, 5], []],
    ["before all", [[5, 1]], [20, 10, 5], [5]],
  ])("%s", (_what, steps, numbers, open) => {
    const journal = new SmallJournal();
    journal.add(...done(10, 20));
    const index = journal.index();
    const more = index.extended(facts(journal.add(...steps)), journal.end)!;
    expect(saysOf(more)).toEqual({
      ids: idsOf(...numbers),
      count: numbers.length,
      newest: idOf(numbers[0]!),
      unsettled: idsOf(...open),
      records: numbers.map((number) => (open.includes(number) ? [1] : [1, 2])),
    });
    expect(more.segments).toHaveLength(2);
    expect(index.segments).toHaveLength(1);
    expect(more.lastSum).toBe(journal.fold().lastSum);
  });

  it.each<[string, readonly Step[]]>([
    ["the newest again", [[20, 1]]],
    ["an earlier one again", [[10, 1]]],
    [
      "as the first of two",
      [
        [10, 1],
        [15, 1],
      ],
    ],
    [
      "as the last of two",
      [
        [5, 1],
        [10, 1],
      ],
    ],
    ["with its steps", done(10)],
  ])("is none that it can take: %s", (_what, steps) => {
    const journal = new SmallJournal();
    journal.add([10, 1], [20, 1]);
    const index = journal.index();
    expect(index.extended(facts(journal.add(...steps)), journal.end)).toBeUndefined();
    expect(someOf(index.ids())).toEqual(idsOf(20, 10));
  });

  it("with steps of theirs alone adds none", () => {
    const journal = new SmallJournal();
    journal.add([10, 1], [20, 1]);
    const index = journal.index();
    const piece = facts(journal.add([10, 2]));
    expect([piece.count, piece.strays.length]).toEqual([0, 1]);
    const more = index.extended(piece, journal.end)!;
    expect([more.count, more.newest, more.segments.length]).toEqual([2, idOf(20), 1]);
    expect(more.unsettled).toEqual(idsOf(10, 20));
    expect(more.lastSum).toBe(journal.fold().lastSum);
  });

  it("leaves what was made of the same index before as it was", () => {
    const journal = new SmallJournal();
    journal.add(...done(10, 20));
    const index = journal.index();
    const [thirty, forty, fifty] = [30, 40, 50].map((number) => ({
      piece: journal.add([number, 1]),
      end: journal.end,
    }));
    const one = index.extended(facts(thirty!.piece), thirty!.end)!;
    const other = index.extended(facts(forty!.piece), forty!.end)!;
    const behind = one.extended(facts(fifty!.piece), fifty!.end)!;
    expect([index, one, other, behind].map((each) => someOf(each.ids()))).toEqual([
      idsOf(20, 10),
      idsOf(30, 20, 10),
      idsOf(40, 20, 10),
      idsOf(50, 30, 20, 10),
    ]);
    expect([index, one, other, behind].map(({ segments }) => segments.length)).toEqual([1, 2, 2, 3]);
  });
});

test("behind a journal without entries the first is the newest", () => {
  const journal = new SmallJournal();
  const index = journal.index();
  expect([index.count, index.newest, index.segments, someOf(index.ids())]).toEqual([0, undefined, [], []]);
  const more = index.extended(facts(journal.add([7, 1])), journal.end)!;
  expect([more.count, more.newest, more.unsettled]).toEqual([1, idOf(7), idsOf(7)]);
});

describe("what an index is of", () => {
  it("is one record, if there is no more", () => {
    const journal = new SmallJournal();
    journal.add([7, 1]);
    expect(journal.index().segments).toMatchObject([{ first: 7, last: 7, updated: atOf(7) }]);
  });

  it("is settled by a later step, and opened by none", () => {
    const journal = new SmallJournal();
    journal.add([10, 1], [20, 1], ...done(30));
    const index = journal.index();
    expect(index.unsettled).toEqual(idsOf(10, 20));
    const behind = journal.indexBehind(index, journal.add([10, 2], [20, 2, { state: "unknown" }], [40, 1], [30, 3]));
    expect(behind.unsettled).toEqual(idsOf(20, 40));
    expect(saysOf(behind)).toMatchObject({
      ids: idsOf(40, 30, 20, 10),
      count: 4,
      records: [[1], [1, 2, 3], [1, 2], [1, 2]],
    });
    expect(index.unsettled).toEqual(idsOf(10, 20));
  });

  it("names the last time that one of its entries was touched", () => {
    const journal = new SmallJournal();
    journal.add([10, 1, { updated_at: atOf(900) }], [20, 1, { updated_at: atOf(500) }]);
    expect(journal.index().segments).toMatchObject([{ first: 10, last: 20, updated: atOf(900) }]);
    expect(someOf(journal.index().idsSince(atOf(900)))).toEqual(idsOf(20, 10));
    expect(someOf(journal.index().idsSince(atOf(901)))).toEqual([]);
  });

  it("has a record that is no entry, without its names", () => {
    const journal = new SmallJournal();
    const content = recordContent(entryOf(10), { by: ada }).replace('"attempts":', '"attempt":');
    journal.addLine(seal(content, sumIn(headerLine({ file: "small", createdAt: atOf(0) }))));
    const index = journal.index();
    expect([someOf(index.ids()), index.unsettled]).toEqual([idsOf(10), idsOf(10)]);
    expect(index.segments[0]!.names.count).toBe(0);
  });

  it("is nothing where an id is no number, and no defect is taken for that", () => {
    const journal = new SmallJournal();
    journal.add([10, 1, { id: "UPPERCASE1" }]);
    const part = { fd: journal.fd, end: journal.end };
    expect(indexBehind(journal.fold(), part)).toBeUndefined();
    const fold = journal.fold();
    const broken = new TypeError("a defect");
    Object.assign(fold, {
      touched: () => {
        throw broken;
      },
    });
    expect(() => indexBehind(fold, part)).toThrow(broken);
  });

  it("is nothing behind a part that another kind of index is of", () => {
    const journal = new SmallJournal();
    journal.add([10, 1]);
    const index = journal.index();
    const other = { ...saysNothing, count: index.count, newest: index.newest };
    expect(indexBehind(new Fold(other), { fd: journal.fd, end: journal.end })).toBeUndefined();
    expect(indexBehind(new Fold(index), { fd: journal.fd, end: journal.end })?.count).toBe(1);
  });
});

const saysNothing = {
  format: 2,
  isJournal: true,
  damage: [],
  misplaced: [],
  lastSum: undefined,
  gaps: new Set<string>(),
  unsettled: [],
  records: () => [],
  newestRecord: () => undefined,
  ids: () => [],
  idsSince: () => [],
  named: () => [],
  beginning: () => [],
};

describe("entries in several segments", () => {
  const made = (): { journal: SmallJournal; index: JournalIndex } => {
    const journal = new SmallJournal();
    journal.add([10, 1], [30, 1], [50, 1]);
    const first = journal.index();
    const second = journal.indexBehind(first, journal.add([20, 1], [30, 2], [40, 1]));
    return { journal, index: journal.indexBehind(second, journal.add([10, 2], [30, 3], [60, 1])) };
  };

  it("come from the highest to the lowest, each once", () => {
    const { index } = made();
    expect(index.segments).toHaveLength(3);
    expect(saysOf(index)).toEqual({
      ids: idsOf(60, 50, 40, 30, 20, 10),
      count: 6,
      newest: idOf(60),
      unsettled: idsOf(50, 20, 40, 60),
      records: [[1], [1], [1], [1, 2, 3], [1], [1, 2]],
    });
    expect(index.newestRecord(idOf(30))?.sequence).toBe(3);
    expect(index.newestRecord(idOf(70))).toBeUndefined();
  });

  it("are found by the beginning of an id, each once", () => {
    const { index } = made();
    const found = (start: string): string[] => index.beginning(start).toSorted();
    expect(found("")).toEqual(idsOf(10, 20, 30, 40, 50, 60));
    expect(found("00000000")).toEqual(idsOf(10, 20, 30, 40, 50, 60));
    expect(found("000000000")).toEqual(idsOf(10, 20, 30));
    expect(found("0000000001")).toEqual(idsOf(40, 50, 60).filter((id) => id.startsWith("0000000001")));
    expect(found(idOf(30))).toEqual(idsOf(30));
    expect(found("1")).toEqual([]);
    expect(found("!")).toEqual([]);
    expect(found("00000000000")).toEqual([]);
  });

  it("are looked for only where they can be", () => {
    const { index } = made();
    const never: Rows = {
      count: 1,
      page: () => {
        throw new Error("looked at");
      },
    };
    const elsewhere = index.with([
      { records: never, names: never, first: 100, last: 200, updated: "" },
      { records: never, names: never, first: 1, last: 5, updated: "" },
    ]);
    expect(elsewhere.records(idOf(50))).toEqual([]);
    for (const number of [1, 5, 100, 200]) expect(() => elsewhere.records(idOf(number))).toThrow("looked at");
    expect(elsewhere.records("5")).toEqual([]);
    expect(elsewhere.newestRecord("UPPERCASE1")).toBeUndefined();
  });

  it("are not an id that is spelt otherwise", () => {
    const journal = new SmallJournal();
    journal.add([5, 1]);
    expect(journal.index().records("5")).toEqual([]);
    expect(journal.index().records(idOf(5))).toHaveLength(1);
  });
});

describe("a record is read where it stands", () => {
  const reads = async (index: JournalIndex, number: number): Promise<unknown> => {
    const { calls, value } = await onDisk(() => index.records(idOf(number)).map(({ record }) => record.sequence));
    return { value, lengths: calls.filter(({ call }) => call === "read").map(({ args }) => args[3]) };
  };

  it.each([
    [100, [2048]],
    // What is near the last place is read together with what is around it.
    [3000, [2048, 65_536]],
    [9000, [2048, 65_536]],
  ])("with %i characters more in it", async (length, lengths) => {
    const journal = new SmallJournal();
    journal.add([10, 1, { detail: { differs: "x".repeat(length) } }]);
    for (let number = 1000; number < 1150; number += 1) journal.add([number, 1]);
    const index = journal.index();
    expect(await reads(index, 10)).toEqual({ value: [1], lengths });
    expect(index.isMended).toBe(false);
  });

  it("at the end of a file whose last newline is gone", () => {
    const journal = new SmallJournal();
    journal.add([10, 1], [20, 1]);
    const index = journal.index();
    writeFileSync(journal.path, journal.bytes.subarray(0, -1));
    expect(index.records(idOf(20))).toHaveLength(1);
    expect(index.records(idOf(10))).toHaveLength(1);
    expect(index.isMended).toBe(false);
  });
});

describe("an index that is wrong", () => {
  /** Pages that do not fit from the `good`th look on. */
  const unfit = (segment: Segment, good = 0, error: Error = new Unfit("a page")): Segment => {
    let looks = 0;
    const page = (number: number): Float64Array => {
      if ((looks += 1) > good) throw error;
      return segment.records.page(number);
    };
    return { ...segment, records: { count: segment.records.count, page } };
  };
  const made = (): { journal: SmallJournal; index: JournalIndex } => {
    const journal = new SmallJournal();
    journal.add([10, 1], [20, 1], [30, 1], [40, 1]);
    journal.addLine('{"sum":"0000000000000000","v":2}\n');
    journal.addLine(journal.bytes.toString().split("\n")[1]! + "\n");
    journal.add([50, 1]);
    return { journal, index: journal.index() };
  };

  it("is made again of the same part of the file", () => {
    const { journal, index } = made();
    const wrong = index.with(index.segments.map((segment) => unfit(segment)));
    journal.add([60, 1]);
    expect(saysOf(wrong)).toEqual(saysOf(index));
    expect(someOf(wrong.ids())).toEqual(idsOf(50, 40, 30, 20, 10));
    expect([wrong.isMended, wrong.count, wrong.segments.length]).toEqual([true, 5, 1]);
    expect([wrong.damage, wrong.misplaced]).toEqual([index.damage, index.misplaced]);
    expect([wrong.damage[0]!.line, wrong.misplaced[0]!.line, wrong.format]).toEqual([6, 7, 2]);
  });

  it("continues behind what it gave out, where a part of it is found to be wrong later", () => {
    const { journal } = made();
    const whole = journal.index();
    const behind = journal.indexBehind(
      whole,
      journal.add(...Array.from({ length: 300 }, (_, at): Step => [100 + 2 * at, 1])),
    );
    const wrong = behind.with([behind.segments[0]!, unfit(behind.segments[1]!, 1)]);
    expect(someOf(wrong.ids(), 1000)).toEqual(someOf(behind.ids(), 1000));
    expect([wrong.isMended, wrong.count]).toEqual([true, 305]);
  });

  it("is not made again for a defect, nor twice", () => {
    const { journal, index } = made();
    const broken = new TypeError("a defect");
    const wrong = index.with([unfit(index.segments[0]!, 0, broken)]);
    expect(() => someOf(wrong.ids())).toThrow(broken);
    expect(() => wrong.records(idOf(10))).toThrow(broken);
    expect(wrong.isMended).toBe(false);
    const twice = index.with([unfit(index.segments[0]!)]);
    expect(twice.records(idOf(10))).toHaveLength(1);
    writeFileSync(journal.path, "x".repeat(journal.end));
    expect(() => twice.records(idOf(10))).toThrow(Unfit);
  });

  it("stays wrong where the file can have no index any more", () => {
    const { index, journal } = made();
    const wrong = index.with([unfit(index.segments[0]!)]);
    const text = journal.bytes.toString();
    const content = recordContent(entryOf(10, { id: "UPPERCASE1" }), { by: ada });
    writeFileSync(journal.path, (seal(content) + "x".repeat(text.length)).slice(0, text.length));
    expect(() => wrong.records(idOf(10))).toThrow(Unfit);
  });

  it("is none of what follows a part that can have none", () => {
    const journal = new SmallJournal();
    const detail = { differs: "x".repeat(900_000) };
    journal.add([10, 1, { detail }], [20, 1, { detail }]);
    const index = journal.index();
    const wrong = index.with([unfit(index.segments[0]!)]);
    const second = journal.bytes.toString().split("\n")[2]!;
    const first = seal(recordContent(entryOf(10, { id: "UPPERCASE1" }), { by: ada })).trimEnd();
    const room = journal.end - second.length - first.length - 3;
    writeFileSync(journal.path, `${first}\n${"x".repeat(room)}\n${second}\n`);
    expect(() => wrong.records(idOf(20))).toThrow(Unfit);
  });
});

describe("what a piece says of itself", () => {
  const made = (): { journal: SmallJournal; fold: Fold } => {
    const journal = new SmallJournal();
    journal.add([10, 1], ...done(20));
    return { journal, fold: new Fold(journal.index()) };
  };
  const watcher = (isEnough: boolean) => {
    const calls: unknown[] = [];
    return {
      calls,
      add: () => void calls.push("add"),
      takes: (piece: PieceFacts) => (calls.push(["takes", piece.count]), isEnough),
      addFacts: (...args: unknown[]) => void calls.push(args),
    };
  };

  it("is taken with a watcher that it is enough for, and not with another", () => {
    const { journal, fold } = made();
    const piece = journal.add([30, 1], [30, 2]);
    const start = { offset: piece.offset, line: piece.line };
    const about = { facts: facts(piece), start };
    const [enough, not] = [watcher(true), watcher(false)];
    const taken = takeFacts(fold, about, { fd: journal.fd, watcher: enough })!;
    expect(enough.calls).toEqual([
      ["takes", 1],
      [about.facts, start, undefined],
    ]);
    expect(takeFacts(fold, about, { fd: journal.fd, watcher: not })).toBeUndefined();
    expect(not.calls).toEqual([["takes", 1]]);
    expect(takeFacts(fold, { facts: undefined, start }, { fd: journal.fd, watcher: watcher(true) })).toBeUndefined();
    expect(taken.anchor).toEqual({
      offset: journal.bytes.lastIndexOf(10, -2) + 1,
      line: journal.nextLine - 1,
      bytes: journal.bytes.subarray(journal.bytes.lastIndexOf(10, -2) + 1, -1),
      isChained: true,
    });
    expect([someOf(taken.fold.ids()), taken.fold.hasOwn]).toEqual([idsOf(30, 20, 10), false]);
  });

  it("ends where the piece does: what comes behind is not in its index", () => {
    const { journal, fold } = made();
    const piece = journal.add([30, 1]);
    const about = { facts: facts(piece), start: { offset: piece.offset, line: piece.line } };
    const index = takeFacts(fold, about, { fd: journal.fd, watcher: undefined })!.fold.earlier as JournalIndex;
    journal.add([40, 1]);
    const never: Rows = {
      count: 1,
      page: () => {
        throw new Unfit("a page");
      },
    };
    const wrong = index.with(index.segments.map((segment) => ({ ...segment, records: never })));
    expect(someOf(wrong.ids())).toEqual(idsOf(30, 20, 10));
    expect(wrong.count).toBe(3);
  });

  it("with steps of earlier entries says what became of them, and on which line one is that is old", () => {
    const { journal, fold } = made();
    const piece = journal.add([30, 1], [10, 2], [20, 2]);
    const about = { facts: facts(piece), start: { offset: piece.offset, line: piece.line } };
    expect(about.facts.strays).toHaveLength(2);
    const watching = watcher(true);
    const taken = takeFacts(fold, about, { fd: journal.fd, watcher: watching })!;
    const [, [, , strays]] = watching.calls as [unknown, [unknown, unknown, Fold]];
    expect(someOf(strays.touched()).map(({ id, isUnsettled }) => [id, isUnsettled])).toEqual([[idOf(10), false]]);
    expect(taken.fold.misplaced).toEqual([{ id: idOf(20), line: piece.line + 2 }]);
    expect(taken.fold.unsettled().map(({ id }) => id)).toEqual(idsOf(30));
    expect([taken.fold.count(), taken.fold.lastSum]).toEqual([3, journal.fold().lastSum]);
    expect(someOf(taken.fold.ids())).toEqual(idsOf(30, 20, 10));
  });

  it("is read instead where the file was changed meanwhile", () => {
    const { journal, fold } = made();
    const piece = journal.add([30, 1], [10, 2]);
    const about = { facts: facts(piece), start: { offset: piece.offset, line: piece.line } };
    writeFileSync(journal.path, journal.bytes.toString().replaceAll('"done"', '"d0ne"'));
    expect(takeFacts(fold, about, { fd: journal.fd, watcher: undefined })).toBeUndefined();
  });
});
