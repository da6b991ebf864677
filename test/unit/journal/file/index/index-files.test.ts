// The index by itself: what it says of records that it does not hold, after it was written, read, extended and harmed.
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { Fold } from "../../../../../src/journal/fold.ts";
import { IndexFiles } from "../../../../../src/journal/file/index/index-files.ts";
import { JournalIndex, takeFacts } from "../../../../../src/journal/file/index/journal-index.ts";
import { rowsIn } from "../../../../../src/journal/file/index/rows.ts";
import { factsOf, type PieceFacts } from "../../../../../src/journal/file/piece-facts.ts";
import { scanBytes } from "../../../../../src/journal/file/scan.ts";
import { namesOf } from "../../../../../src/journal/lookup.ts";
import { recordContent, seal, sumIn } from "../../../../../src/journal/record.ts";
import { idAt, longJournal } from "../../../../support/long-journal.ts";
import { diskError, onDisk } from "../../../../support/disk-calls.ts";
import { ada, folder } from "../../intent.ts";

/** A journal of so many entries; a place of it is damaged, and one record stands twice. */
function linesOf(entries: number): string[] {
  const lines = longJournal(entries);
  return lines.toSpliced(20, 0, '{"sum":"0000000000000000","v":2}\n', lines[5]!);
}

interface Made {
  readonly path: string;
  readonly fd: number;
  readonly files: IndexFiles;
  readonly bytes: Buffer;
}

function journalOf(lines: readonly string[]): Made {
  const path = join(folder(), "journal.ndjson");
  writeFileSync(path, lines.join(""));
  const fd = openSync(path, "r");
  onTestFinished(() => closeSync(fd));
  return { path, fd, files: new IndexFiles(path), bytes: readFileSync(path) };
}

function foldOf(bytes: Buffer, from = { offset: 0, line: 1 }, earlier?: JournalIndex): Fold {
  const fold = new Fold(earlier);
  fold.add(scanBytes(bytes, from));
  return fold;
}

const headOf = ({ bytes }: Pick<Made, "bytes">): Buffer => bytes.subarray(0, 256);

/** Where the last line before that place stands. */
function anchorBefore({ bytes }: Pick<Made, "bytes">, end: number): { offset: number; line: number; bytes: Buffer } {
  const offset = bytes.lastIndexOf(10, end - 2) + 1;
  const line = bytes.subarray(0, offset).filter((byte) => byte === 10).length + 1;
  return { offset, line, bytes: bytes.subarray(offset, end - 1) };
}

/** Saves an index of the journal up to there, behind one that is known. */
function saved(made: Made, end = made.bytes.length, before?: JournalIndex, from = 0): JournalIndex {
  const line = made.bytes.subarray(0, from).filter((byte) => byte === 10).length + 1;
  const fold = foldOf(made.bytes.subarray(from, end), { offset: from, line }, before);
  const index = JournalIndex.of(fold, { fd: made.fd, end }, before);
  return made.files.save(index, { head: headOf(made), anchor: anchorBefore(made, end) });
}

const loaded = (made: Made): JournalIndex | undefined => made.files.load({ fd: made.fd, head: headOf(made) })?.index;

/** Everything that a fold, or a fold behind an index of all that is before, is asked. */
function answers(fold: Fold): unknown {
  const entries = [...fold.entries()];
  const names = [...new Set(entries.slice(0, 40).flatMap(namesOf))];
  const someSince = entries.map(({ updated_at }) => updated_at).filter((_, at) => at % 97 === 0);
  return {
    format: fold.format,
    isJournal: fold.isJournal,
    lastSum: fold.lastSum,
    gaps: [...fold.gaps],
    damage: fold.damage.map(({ offset, line, bytes, reason }) => ({ offset, line, bytes: String(bytes), reason })),
    misplaced: [...fold.misplaced],
    count: fold.count(),
    newest: fold.newest(),
    ids: [...fold.ids()],
    entries,
    unsettled: fold.unsettled().map(({ id }) => id),
    offsets: entries.map(({ id }) => fold.records(id).map(({ offset }) => offset)),
    hashes: entries.map(({ id }) => fold.newestHash(id)),
    none: [fold.get("zzzzzzzzzz"), fold.get("NONE"), fold.records("0000000000")],
    named: names.map((name) => [...fold.named(name)].filter((one) => namesOf(one).includes(name)).map(({ id }) => id)),
    // What an index leaves out of these does not fit.
    since: someSince.map((since) =>
      [...fold.since(since)].filter(({ updated_at }) => updated_at >= since).map(({ id }) => id),
    ),
    beginning: ["", "0", "01bm", "zz", "!", entries[3]!.id.slice(0, 7), entries[0]!.id].map((start) =>
      fold.beginning(start),
    ),
  };
}

const beside = ({ path }: Made): string[] =>
  readdirSync(join(path, ".."))
    .filter((name) => name.startsWith("journal.ndjson.index"))
    .sort();
const at = ({ path }: Made, name: string): string => join(path, "..", name);

function lineEnd({ bytes }: Made, part: number): number {
  return bytes.indexOf(10, Math.floor(part * bytes.length)) + 1;
}

test.each([12, 150])("an index of %i entries, written and read, says what the records say", (entries) => {
  const made = journalOf(linesOf(entries));
  const truth = answers(foldOf(made.bytes));
  expect(answers(new Fold(saved(made)))).toEqual(truth);
  expect(answers(new Fold(loaded(made)))).toEqual(truth);
  expect(beside(made)).toEqual([
    "journal.ndjson.index",
    expect.stringMatching(/^journal\.ndjson\.index-[0-9a-f]{16}$/),
  ]);
  for (const name of beside(made)) expect(statSync(at(made, name)).mode & 0o777).toBe(0o600);
  expect(made.files.load({ fd: made.fd, head: headOf(made) })?.anchor).toEqual(anchorBefore(made, made.bytes.length));
  expect(loaded(made)?.isMended).toBe(false);
});

test.each([
  ["a little", 0.9, 2],
  ["as much again", 0.5, 1],
  ["much more", 0.1, 1],
])("an index that grows by %s says the same, in few files", (_what, part, segments) => {
  const made = journalOf(linesOf(150));
  const truth = answers(foldOf(made.bytes));
  const end = lineEnd(made, part);
  saved(made, end);
  const [, first] = beside(made);
  writeFileSync(at(made, "journal.ndjson.index.new-0123456789ab"), "of a killed process");
  saved(made, made.bytes.length, loaded(made), end);
  expect(answers(new Fold(loaded(made)))).toEqual(truth);
  expect(beside(made)).toHaveLength(1 + segments);
  expect(beside(made).includes(first!)).toBe(segments === 2);
  // A reader that has the part before is behind it as well.
  const rest = foldOf(made.bytes.subarray(end), { offset: end, line: 1 }, saved(made, end));
  expect((answers(rest) as { entries: unknown }).entries).toEqual((truth as { entries: unknown }).entries);
});

test("what was touched last is found since then, whenever its entry began", () => {
  const lines = longJournal(40);
  const entry = foldOf(Buffer.from(lines.join(""))).get(idAt(3))!;
  const late = { ...entry, sequence: entry.sequence + 1, updated_at: "2027-01-01T00:00:00.000Z" };
  const made = journalOf([...lines, seal(recordContent(late, { by: ada }), sumIn(lines.at(-1)!))]);
  saved(made);
  for (const since of ["2027-01-01T00:00:00.000Z", "2026-12-01"])
    expect([...new Fold(loaded(made)).since(since)].map(({ id }) => id)).toContain(idAt(3));
  expect([...new Fold(loaded(made)).since("2027-01-02")]).toEqual([]);
});

test("a list is closed once it is read, and an index that does not fit is closed", async () => {
  const made = journalOf(linesOf(30));
  saved(made);
  expect((await onDisk(() => loaded(made))).open).toEqual(["journal.ndjson.index-*"]);
  truncateSync(at(made, beside(made)[1]!), 10);
  expect(await onDisk(() => loaded(made))).toMatchObject({ open: [], value: undefined, error: undefined });
});

test("an index is saved again as it is where nothing is new", () => {
  const made = journalOf(linesOf(30));
  saved(made);
  const before = beside(made);
  made.files.save(loaded(made)!, { head: headOf(made), anchor: anchorBefore(made, made.bytes.length) });
  expect(beside(made)).toEqual(before);
});

describe("an index that does not fit counts as absent", () => {
  const list = (made: Made): string => at(made, beside(made)[0]!);
  const segment = (made: Made): string => at(made, beside(made)[1]!);
  it.each<[string, (made: Made) => void]>([
    ["no list", (made) => rmSync(list(made))],
    ["an empty list", (made) => truncateSync(list(made))],
    [
      "a list with another byte",
      (made) => writeFileSync(list(made), readFileSync(list(made), "utf8").replace('"count":', '"count": ')),
    ],
    ["no segment", (made) => rmSync(segment(made))],
    ["a longer segment", (made) => appendFileSync(segment(made), "x")],
    ["a segment that others can write", (made) => chmodSync(segment(made), 0o620)],
    ["a list that others can write", (made) => chmodSync(list(made), 0o602)],
    [
      "a folder for a segment",
      (made) => {
        const path = segment(made);
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])("%s", (_what, harm) => {
    const made = journalOf(linesOf(30));
    saved(made);
    expect(loaded(made)).toBeDefined();
    harm(made);
    expect(loaded(made)).toBeUndefined();
  });

  it("is of a file that begins otherwise, is shorter, or has another record where it ends", () => {
    const made = journalOf(linesOf(30));
    saved(made);
    const load = (bytes: Buffer, head = bytes.subarray(0, 256)): unknown => {
      const other = journalOf([String(bytes)]);
      return made.files.load({ fd: other.fd, head });
    };
    expect(load(made.bytes)).toBeDefined();
    expect(load(Buffer.concat([made.bytes, Buffer.from("more\n")]))).toBeDefined();
    expect(load(made.bytes, made.bytes.subarray(0, 255))).toBeUndefined();
    expect(load(made.bytes, Buffer.from(`x${String(made.bytes.subarray(1, 256))}`))).toBeUndefined();
    expect(load(made.bytes.subarray(0, made.bytes.length - 3))).toBeUndefined();
    const edited = Buffer.from(made.bytes);
    edited[edited.length - 30]! ^= 1;
    expect(load(edited)).toBeUndefined();
  });

  it("is a file of another user, whatever the system lets one read", async () => {
    const made = journalOf(linesOf(30));
    saved(made);
    const user = vi.spyOn(process, "geteuid" as "uptime").mockReturnValue(12_345);
    try {
      expect(loaded(made)).toBeUndefined();
    } finally {
      user.mockRestore();
    }
    expect(loaded(made)).toBeDefined();
    for (const call of ["open", "read", "fstat"])
      expect([
        call,
        (
          await onDisk(
            () => loaded(made),
            (one) => (one.call === call ? diskError("EIO", call) : undefined),
          )
        ).value,
      ]).toEqual([call, undefined]);
  });
});

test("a page that is wrong, of another place or cannot be read is found out, and what it said is read from the journal", async () => {
  const made = journalOf(linesOf(120));
  const truth = answers(foldOf(made.bytes));
  saved(made);
  const file = at(made, beside(made)[1]!);
  const whole = readFileSync(file);
  for (let page = 0; page < whole.length / 4096; page += 1) {
    const bytes = Buffer.from(whole);
    bytes[page * 4096 + 8 + ((page * 511) % 4080)]! ^= 1;
    writeFileSync(file, bytes);
    const index = loaded(made)!;
    expect([page, answers(new Fold(index))]).toEqual([page, truth]);
    expect([page, index.isMended]).toEqual([page, true]);
  }
  const page = (number: number): Buffer => whole.subarray(number * 4096, (number + 1) * 4096);
  writeFileSync(file, Buffer.concat([page(1), page(0), whole.subarray(2 * 4096)]));
  expect(answers(new Fold(loaded(made)))).toEqual(truth);
  writeFileSync(file, whole);
  const failing = await onDisk(
    () => answers(new Fold(loaded(made))),
    ({ call, file }) => (call === "read" && /index-/.test(file) ? diskError("EIO", "read") : undefined),
  );
  expect([failing.error, failing.value]).toEqual([undefined, truth]);
});

test("an index whose journal changed under it says what the journal says, or that it does not fit", () => {
  const made = journalOf(linesOf(30));
  saved(made);
  const [, id] = [...loaded(made)!.ids()];
  const { offset } = loaded(made)!.records(id!).at(-1)!;
  const index = loaded(made)!;
  const bytes = Buffer.from(made.bytes);
  bytes[offset + 40]! ^= 1;
  writeFileSync(made.path, bytes);
  const fold = new Fold(index);
  expect(fold.get(id!)).toEqual(foldOf(bytes).get(id!));
  expect(index.isMended).toBe(true);
});

test.each([
  ["open", /index-/, 1],
  ["write", /index-/, 1],
  ["write", /index-/, 2],
  ["open", /index\.new-/, 1],
  ["write", /index\.new-/, 1],
  ["rename", /index\.new-/, 1],
] as const)("an index whose %s of %s fails (%i) leaves the one before", async (wanted, name, time) => {
  const made = journalOf(linesOf(60));
  const end = lineEnd(made, 0.5);
  saved(made, end);
  const before = beside(made);
  const part = loaded(made)!;
  let times = 0;
  const { error, open } = await onDisk(
    () => saved(made, made.bytes.length, part, end),
    ({ call, file }) =>
      call === wanted && name.test(file) && (times += 1) === time ? diskError("ENOSPC", call) : undefined,
  );
  expect([times, error]).toEqual([time, expect.objectContaining({ code: "ENOSPC" })]);
  const isSegment = String(name) === "/index-/";
  if (isSegment) expect([open, beside(made)]).toEqual([[], before]);
  expect(beside(made).some((one) => one.includes(".new-"))).toBe(false);
  expect(loaded(made)?.count).toBe(part.count);
  saved(made, made.bytes.length, part, end);
  expect([beside(made).length, loaded(made)?.count]).toEqual([2, foldOf(made.bytes).count()]);
});

test("an index is removed with all of its files; what the disk does not let go is not used", async () => {
  const made = journalOf(linesOf(30));
  saved(made);
  writeFileSync(at(made, "journal.ndjson.index.new-0123456789ab"), "");
  writeFileSync(at(made, "journal.ndjson.indexes"), "");
  made.files.remove();
  expect(beside(made)).toEqual(["journal.ndjson.indexes"]);
  const { error } = await onDisk(
    () => made.files.remove(),
    ({ call }) => (call === "readdir" ? diskError("EIO", "scandir") : undefined),
  );
  expect(error).toBeUndefined();
});

describe("what pieces say of themselves, behind an index", () => {
  const made = (): { journal: Made; end: number; fold: Fold } => {
    const journal = journalOf(longJournal(200));
    const end = lineEnd(journal, 0.4);
    return { journal, end, fold: new Fold(saved(journal, end)) };
  };
  const said = (bytes: Buffer, offset: number): PieceFacts => {
    const facts = factsOf(bytes, { offset, isVerified: false })!;
    return { ...facts, table: rowsIn(facts.table), names: rowsIn(facts.names) };
  };

  it("is the same as if each record had been taken in", () => {
    const { journal, end, fold } = made();
    const middle = lineEnd(journal, 0.7);
    let known = fold;
    for (const [from, to] of [
      [end, middle],
      [middle, journal.bytes.length],
    ] as const) {
      const start = { offset: from, line: journal.bytes.subarray(0, from).filter((byte) => byte === 10).length + 1 };
      const facts = said(journal.bytes.subarray(from, to), from);
      const taken = takeFacts(known, { facts, start }, { fd: journal.fd, watcher: undefined })!;
      expect(taken.anchor).toEqual({ ...anchorBefore(journal, to), isChained: true });
      known = taken.fold;
    }
    expect(answers(known)).toEqual(answers(foldOf(journal.bytes)));
    expect(fold.count()).toBeLessThan(known.count());
  });

  it("is read instead if it has an entry that is known, a fold has records of its own, or no index is before it", () => {
    const { journal, end, fold } = made();
    const rest = journal.bytes.subarray(end);
    const take = (known: Fold, facts: PieceFacts | undefined): unknown =>
      takeFacts(known, { facts, start: { offset: end, line: 1 } }, { fd: journal.fd, watcher: undefined });
    expect(take(fold, said(rest, end))).toBeDefined();
    expect(take(fold, undefined)).toBeUndefined();
    const again = journal.bytes.subarray(journal.bytes.indexOf(10) + 1, end);
    expect(take(fold, said(again, end))).toBeUndefined();
    expect(take(new Fold(), said(rest, end))).toBeUndefined();
    const own = new Fold(saved(journal, end));
    own.add(scanBytes(rest.subarray(0, rest.indexOf(10) + 1), { offset: end, line: 1 }));
    expect(take(own, said(rest, end))).toBeUndefined();
    const watcher = { add: () => {}, addFacts: () => {}, takes: () => false };
    const facts = said(rest, end);
    const start = { offset: end, line: 1 };
    expect(takeFacts(fold, { facts, start }, { fd: journal.fd, watcher })).toBeUndefined();
  });
});
