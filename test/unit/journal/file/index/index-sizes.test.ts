// How an index is kept on disk: in how many segments and pages, which of them are read, and what is done where that fails.
import { chmodSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { hash } from "node:crypto";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import type { Fold } from "../../../../../src/journal/fold.ts";
import { IndexFiles, type LoadedIndex } from "../../../../../src/journal/file/index/index-files.ts";
import { type JournalIndex, Unfit } from "../../../../../src/journal/file/index/journal-index.ts";
import { type Rows, rowsIn, rowsOfPage } from "../../../../../src/journal/file/index/rows.ts";
import { idOf } from "../../../../../src/journal/lookup.ts";
import { diskError, onDisk } from "../../../../support/disk-calls.ts";
import { atOf, idsOf, SmallJournal, someOf, type Step } from "./small-journal.ts";

interface Kept {
  readonly journal: SmallJournal;
  readonly files: IndexFiles;
  readonly load: () => LoadedIndex | undefined;
  readonly save: (index: JournalIndex) => JournalIndex;
  readonly names: () => string[];
}

function kept(): Kept {
  const journal = new SmallJournal();
  const files = new IndexFiles(journal.path);
  const anchor = (): { offset: number; line: number; bytes: Buffer } => {
    const offset = journal.bytes.lastIndexOf(10, -2) + 1;
    return { offset, line: journal.nextLine - 1, bytes: journal.bytes.subarray(offset, -1) };
  };
  const head = (): Buffer => journal.bytes.subarray(0, 100);
  return {
    journal,
    files,
    load: () => files.load({ fd: journal.fd, head: head() }),
    save: (index) => files.save(index, { head: head(), anchor: anchor() }),
    names: () =>
      readdirSync(dirname(journal.path))
        .filter((name) => name.includes(".index"))
        .sort(),
  };
}

const open = (...numbers: readonly number[]): Step[] => numbers.map((number): Step => [number, 1]);
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);

/** Each entry of one record has three rows: the record, its key and its service account. */
describe("segments", () => {
  it.each([
    [[4, 1], 1],
    [[5, 1], 2],
    [[8, 1, 1], 1],
    [[9, 1, 1], 2],
    [[1, 4], 1],
    [[30, 6, 1], 3],
  ])("of %j entries one after the other are %i files", (counts, segments) => {
    const { journal, save, load, names } = kept();
    let from = 100;
    let index: JournalIndex | undefined;
    for (const count of counts) {
      const added = journal.add(...open(...range(from, count)));
      from += count;
      index = save(index === undefined ? journal.index() : journal.indexBehind(load()!.index, added));
    }
    expect(index!.segments).toHaveLength(segments);
    expect(names()).toHaveLength(1 + segments);
    expect(someOf(load()!.index.ids())).toEqual(idsOf(...range(100, from - 100).toReversed()));
    expect(load()!.index.unsettled).toHaveLength(from - 100);
  });

  it("that become one know when the last of them was touched, whichever it was", () => {
    for (const [first, second] of [
      [900, 500],
      [500, 900],
    ] as const) {
      const { journal, save, load } = kept();
      journal.add([10, 1, { updated_at: atOf(first) }]);
      save(journal.index());
      save(journal.indexBehind(load()!.index, journal.add([20, 1, { updated_at: atOf(second) }])));
      const { index } = load()!;
      expect(index.segments).toMatchObject([{ first: 10, last: 20, updated: atOf(900) }]);
      expect([someOf(index.idsSince(atOf(900))), someOf(index.idsSince(atOf(901)))]).toEqual([idsOf(20, 10), []]);
    }
  });
});

describe("pages", () => {
  it.each([1, rowsOfPage - 1, rowsOfPage, rowsOfPage + 1, 2 * rowsOfPage])(
    "of %i records are as many as they need",
    (count) => {
      const { journal, save, load, names } = kept();
      journal.add(...open(...range(100, count)));
      save(journal.index());
      const { size } = statSync(journal.path.replace("journal.ndjson", names()[1]!));
      const of = (rows: number): number => Math.ceil(rows / rowsOfPage);
      expect(size).toBe(4096 * (of(count) + of(2 * count)));
      const { index } = load()!;
      expect([index.segments[0]!.records.count, index.segments[0]!.names.count]).toEqual([count, 2 * count]);
      expect(someOf(index.ids(), 1000)).toEqual(idsOf(...range(100, count).toReversed()));
      expect(index.records(idOf(100 + count - 1))).toHaveLength(1);
      expect(index.isMended).toBe(false);
    },
  );

  it("of many records are written a few at a time, and each is what it was", () => {
    const { journal, save, load } = kept();
    journal.add([10, 1]);
    const rows = (count: number, by: number): Float64Array<ArrayBuffer> =>
      Float64Array.from({ length: 2 * count }, (_, cell) => (cell % 2 === 0 ? by * (cell >> 1) : 2 ** 40 + cell));
    const [records, names] = [rows(150 * rowsOfPage + 7, 3), rows(70 * rowsOfPage, 5)];
    const segment = { records: rowsIn(records), names: rowsIn(names), first: 0, last: 2 ** 40, updated: "" };
    save(journal.index().with([segment]));
    const [read] = load()!.index.segments;
    expect([read!.records.count, read!.names.count]).toEqual([records.length / 2, names.length / 2]);
    const cellsOf = (all: Rows): number[] =>
      Array.from({ length: Math.ceil(all.count / rowsOfPage) }, (_, page) => [...all.page(page)])
        .flat()
        .slice(0, 2 * all.count);
    expect(Float64Array.from(cellsOf(read!.records))).toEqual(records);
    expect(Float64Array.from(cellsOf(read!.names))).toEqual(names);
  });

  it("are read once, as long as they are asked for", async () => {
    const { journal, save, load } = kept();
    journal.add(...open(...range(100, rowsOfPage + 1)));
    save(journal.index());
    const { index } = load()!;
    const [segment] = index.segments;
    const reads = async (work: () => unknown): Promise<number> =>
      (await onDisk(work)).calls.filter(({ call }) => call === "read").length;
    const [records, names] = [segment!.records, segment!.names];
    expect(await reads(() => [records.page(0), records.page(1), names.page(0), records.page(0)])).toBe(3);
    expect(await reads(() => [records.page(1), names.page(0), records.page(0)])).toBe(0);
    expect(records.page(0)).toHaveLength(2 * rowsOfPage);
    expect(records.page(0)[0]).toBe(100);
  });
});

describe("a list", () => {
  const write = (path: string, text: string): void =>
    writeFileSync(path, `${hash("sha256", text, "hex")}\n${text}`, { mode: 0o600 });
  const saved = (): Kept & { readonly list: string } => {
    const made = kept();
    made.journal.add([10, 1]);
    made.save(made.journal.index());
    return { ...made, list: `${made.journal.path}.index` };
  };

  it.each<[string, (text: string) => string]>([
    ["of another version", (text) => text.replace('"v":3', '"v":2')],
    ["of no version", (text) => text.replace('"v":3,', "")],
    ["that is a text", () => '"v"'],
    ["that is nothing", () => "null"],
    ["that is a row", () => "[3]"],
  ])("%s counts as absent", (_what, change) => {
    const { list, load } = saved();
    const text = readFileSync(list, "utf8");
    const content = text.slice(text.indexOf("\n") + 1);
    write(list, content);
    expect(load()).toBeDefined();
    write(list, change(content));
    expect(load()).toBeUndefined();
  });

  it("that a link leads to counts as absent, and one that others may enter does not", async () => {
    const { list, load } = saved();
    for (const [mode, is] of [
      [0o601, true],
      [0o644, true],
      [0o620, false],
      [0o602, false],
    ] as const) {
      chmodSync(list, mode);
      const { value, open } = await onDisk(load);
      expect([mode, value !== undefined, open.length]).toEqual([mode, is, is ? 1 : 0]);
    }
    chmodSync(list, 0o600);
    renameSync(list, `${list}.elsewhere`);
    symlinkSync(`${list}.elsewhere`, list);
    expect(load()).toBeUndefined();
  });

  it.each(["fstat", "read"])(
    "that cannot be looked at counts as absent where %s fails, and hides no defect",
    async (call) => {
      const { load } = saved();
      const failing = (error: Error) => onDisk(load, (one) => (one.call === call ? error : undefined));
      expect(await failing(diskError("EIO", call))).toMatchObject({ value: undefined, error: undefined });
      const broken = new TypeError("a defect");
      expect((await failing(broken)).error).toBe(broken);
    },
  );

  it("is removed with its segments, and hides no defect", async () => {
    const { files, names } = saved();
    const failing = (error: Error) =>
      onDisk(
        () => files.remove(),
        ({ call }) => (call === "readdir" ? error : undefined),
      );
    const broken = new TypeError("a defect");
    expect((await failing(broken)).error).toBe(broken);
    expect(names()).toHaveLength(1);
    expect((await failing(diskError("EIO", "scandir"))).error).toBeUndefined();
    files.remove();
    expect(names()).toEqual([]);
  });

  const stubborn = (error: Error): Fold =>
    ({
      earlier: undefined,
      touched: () => {
        throw error;
      },
    }) as never;
  it.each([
    ["that does not fit is removed", new Unfit("a page"), 0],
    ["of which the disk gives nothing stays", diskError("EIO", "read"), 2],
  ])("%s, where the next is made", (_what, error, left) => {
    const { files, names, journal } = saved();
    const anchor = { offset: 0, line: 1, bytes: Buffer.from("x"), isChained: true };
    expect(files.keep({ fold: stubborn(error), head: Buffer.alloc(0), anchor }, journal.fd)).toBeUndefined();
    expect(names()).toHaveLength(left);
  });

  it("is made of no defect", () => {
    const { files, journal } = saved();
    const broken = new TypeError("a defect");
    const anchor = { offset: 0, line: 1, bytes: Buffer.from("x"), isChained: true };
    const keep = (): unknown => files.keep({ fold: stubborn(broken), head: Buffer.alloc(0), anchor }, journal.fd);
    expect(keep).toThrow(broken);
  });

  it("is of all up to its anchor's end", () => {
    const { files, journal } = kept();
    journal.add([10, 1], [20, 1]);
    const offset = journal.bytes.lastIndexOf(10, -2) + 1;
    const anchor = { offset, line: 3, bytes: journal.bytes.subarray(offset, -1), isChained: true };
    const index = files.keep({ fold: journal.fold(), head: journal.bytes.subarray(0, 50), anchor }, journal.fd)!;
    journal.add([30, 1]);
    const never = {
      count: 1,
      page: (): never => {
        throw new Unfit("a page");
      },
    };
    const wrong = index.with(index.segments.map((segment) => ({ ...segment, records: never })));
    expect(someOf(wrong.ids())).toEqual(idsOf(20, 10));
    // Of a journal that can have none nothing is kept.
    const other = kept();
    other.journal.add([10, 1, { id: "UPPERCASE1" }]);
    expect(
      other.files.keep({ fold: other.journal.fold(), head: Buffer.alloc(0), anchor }, other.journal.fd),
    ).toBeUndefined();
    expect(other.names()).toEqual([]);
  });
});
