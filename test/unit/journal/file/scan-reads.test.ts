// Which reads a file is cut by, and that each of them ends: whatever asks without end is stopped.
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  anchorAt,
  drained,
  drainedSlowly,
  NearReader,
  PieceBuffer,
  readBytes,
  readPiece,
  readPieces,
  readSome,
  scanBytes,
} from "../../../../src/journal/file/scan.ts";
import { longJournal } from "../../../support/long-journal.ts";
import { type DiskCall, onDisk } from "../../../support/disk-calls.ts";
import { folder } from "../intent.ts";
import { someOf } from "./index/small-journal.ts";

const megabyte = 1024 * 1024;
const spare = 64 * 1024;
const block = 64 * 1024;

function opened(text: string): number {
  const path = join(folder(), "f");
  writeFileSync(path, text);
  const fd = openSync(path, "r");
  onTestFinished(() => closeSync(fd));
  return fd;
}

/** The reads of a work: where, and how much was asked for. */
async function readsOf<T>(work: () => T): Promise<{ value: T; reads: unknown[] }> {
  let count = 0;
  const { value, error, calls } = await onDisk(work, ({ call }) =>
    call === "read" && (count += 1) > 200 ? new Error("reads without end") : undefined,
  );
  if (error !== undefined) throw error;
  const isRead = ({ call }: DiskCall): boolean => call === "read";
  return { value: value!, reads: calls.filter(isRead).map(({ args }) => [args[4], args[3]]) };
}

/** Bytes that may be searched so often. */
function searched(text: string, most = 50): Buffer {
  const bytes = Buffer.from(text);
  let count = 0;
  const indexOf = bytes.indexOf.bind(bytes) as (...args: unknown[]) => number;
  return Object.assign(bytes, {
    indexOf: (...args: unknown[]) => {
      if ((count += 1) > most) throw new Error("searched without end");
      return indexOf(...args);
    },
  });
}

describe("lines", () => {
  const [, a = "", b = ""] = longJournal(3);
  it.each<[string, string, readonly number[], number, string | undefined]>([
    ["none", "", [], 0, undefined],
    ["blank ones", "\n\n", [], 2, undefined],
    ["two", a + b, [0, a.length], 2, undefined],
    ["without the last newline", a + b.trimEnd(), [0, a.length], 2, undefined],
    ["two on one", a.trimEnd() + b, [0, a.length - 1], 1, undefined],
    ["one that is torn", `${a}{"sum":"0`, [0], 2, '{"sum":"0'],
    ["one that is torn, behind a blank one", `${a}\n\n{"sum"`, [0], 4, '{"sum"'],
    ["with the start of a record in one that is torn", `${a}x{"sum":"1{"sum":"2`, [0], 2, '{"sum":"2'],
  ])("are counted, and each is looked at once: %s", (_what, text, offsets, lines, torn) => {
    const scan = scanBytes(searched(text), { offset: 1000, line: 3 });
    expect(scan.found.map(({ offset }) => offset - 1000)).toEqual(offsets);
    expect([scan.lines, scan.torn && String(scan.torn.bytes)]).toEqual([lines, torn]);
    for (const one of scan.found) expect(anchorAt(one).isChained).toBe(true);
  });

  it("that begin where the next record does are damaged up to there", () => {
    const bad = '{"sum":"0000000000000000","v":2}';
    const scan = scanBytes(searched(`${bad}${a}`), { offset: 0, line: 1 });
    expect(scan.damage.map(({ offset, bytes }) => [offset, String(bytes)])).toEqual([[0, bad]]);
    expect(scan.found.map(({ offset }) => offset)).toEqual([bad.length]);
    const [header = ""] = longJournal(1);
    expect(anchorAt(scanBytes(Buffer.from(header), { offset: 0, line: 1 }).found[0]!).isChained).toBe(false);
  });

  it("at the very end of the bytes begin no record behind them", () => {
    const whole = Buffer.from(`x\n{"sum":"`);
    const scan = scanBytes(whole.subarray(0, 1), { offset: 0, line: 1 });
    expect([scan.found, scan.damage, String(scan.torn?.bytes)]).toEqual([[], [], "x"]);
    const behind = Buffer.from(`bad{"sum":"0000000000000000"`);
    expect(scanBytes(behind.subarray(0, 3), { offset: 0, line: 1 }).torn).toMatchObject({ offset: 0 });
  });
});

describe("bytes", () => {
  it("are read until there are no more", async () => {
    const fd = opened("0123456789");
    for (const [offset, length, text, reads] of [
      [2, 3, "234", [[2, 3]]],
      [
        8,
        5,
        "89",
        [
          [8, 5],
          [10, 3],
        ],
      ],
      [20, 1, "", [[20, 1]]],
      [0, 0, "", []],
      [0, -1, "", []],
    ] as const) {
      const { value, reads: seen } = await readsOf(() => String(readBytes(fd, offset, length)));
      expect([value, seen]).toEqual([text, reads]);
    }
  });

  it("that are near are read with those around, up to a block away", async () => {
    const text = "0123456789abcdef".repeat(megabyte / 16);
    const fd = opened(text);
    const near = new NearReader();
    const at = 300_000;
    for (const [offset, length, reads] of [
      [at, 10, [[at, 10]]],
      [at + block, 10, [[at + block, 10]]],
      [at + block + block - 1, 10, [[at + 2 * block - 1, block]]],
      // At the end of the block that is known, and a byte behind it.
      [at + 3 * block - 1 - 10, 10, []],
      [at + 3 * block - 1 - 9, 10, [[at + 3 * block - 10, block]]],
      // Before it: what is around is read up to its end.
      [at + 3 * block - 20, 10, [[at + 2 * block - 10, block]]],
      [at + 3 * block - 20, block, [[at + 3 * block - 20, block]]],
      [at + 3 * block - 20, block - 1, [[at + 3 * block - 20, block]]],
    ] as const) {
      const { value, reads: seen } = await readsOf(() => String(near.read(fd, offset, length)));
      expect([offset, value === text.slice(offset, offset + length), seen]).toEqual([offset, true, reads]);
    }
    const first = new NearReader();
    first.read(fd, 100, 10);
    expect((await readsOf(() => first.read(fd, 50, 10))).reads).toEqual([[0, block]]);
    expect((await readsOf(() => first.read(fd, 50, 10))).reads).toEqual([]);
  });
});

describe("a buffer for pieces", () => {
  it("is the same as long as it is large enough, and keeps what it is told to", () => {
    const buffer = new PieceBuffer();
    const first = buffer.ofLength(10, 0);
    first.write("0123456789");
    expect(buffer.ofLength(10, 10)).toBe(first);
    expect(buffer.ofLength(5, 0)).toBe(first);
    const larger = buffer.ofLength(20, 4);
    expect([larger === first, larger.length, larger.toString("latin1", 0, 4)]).toEqual([false, 20, "0123"]);
  });
});

describe("a piece", () => {
  /** Lines of these lengths. */
  const linesOf = (...lengths: number[]): string => lengths.map((length) => `${"x".repeat(length - 1)}\n`).join("");
  class Counted extends PieceBuffer {
    #count = 0;
    override ofLength(length: number, kept: number): Buffer {
      if ((this.#count += 1) > 20) throw new Error("read without end");
      return super.ofLength(length, kept);
    }
  }
  const long = megabyte + 3 * spare;
  it.each<[string, string, number, number, readonly unknown[], readonly [number, number, boolean]]>([
    ["of a short file", "x\n", 0, 0, [[0, 2]], [0, 2, true]],
    ["of no file", "", 0, 0, [], [0, 0, true]],
    ["that is the first of two", linesOf(megabyte, 100), 0, 0, [[0, megabyte + 100]], [0, megabyte, false]],
    ["that is the second of two", linesOf(megabyte, 100), 0, 1, [[megabyte - 1, 101]], [megabyte, 100, true]],
    ["behind the end", linesOf(100), 0, 3, [], [3 * megabyte - 1, 0, true]],
    ["from a place in the file", linesOf(10, megabyte, 100), 10, 1, [[megabyte + 9, 101]], [megabyte + 10, 100, true]],
    [
      "with a line that is longer than what is spare",
      linesOf(long, 10, megabyte),
      0,
      0,
      [
        [0, megabyte - 1 + spare],
        [megabyte - 1 + spare, 3 * spare],
      ],
      [0, long, false],
    ],
    [
      "in the middle of such a line",
      linesOf(long, 10, megabyte),
      0,
      1,
      [
        [megabyte - 1, megabyte + spare],
        [2 * megabyte - 1 + spare, 2 * spare + 11],
      ],
      [long, 10 + megabyte, true],
    ],
    ["whose end is torn", `${linesOf(10)}xyz`, 0, 0, [[0, 13]], [0, 13, true]],
    [
      "in the middle of one line",
      "x".repeat(3 * megabyte),
      0,
      1,
      [
        [megabyte - 1, megabyte + spare],
        [2 * megabyte - 1 + spare, 3 * spare],
        [2 * megabyte - 1 + 4 * spare, 12 * spare],
        [3 * megabyte - 1, 1],
      ],
      [3 * megabyte, 0, true],
    ],
  ])(
    "%s is read once, and where a line is longer again",
    async (_what, text, from, number, reads, [offset, length, isLast]) => {
      const fd = opened(text);
      const part = { fd, from, size: text.length };
      const { value, reads: seen } = await readsOf(() => readPiece(part, number, new Counted()));
      expect(seen).toEqual(reads);
      expect([value.offset, value.bytes.length, value.isLast]).toEqual([offset, length, isLast]);
      expect(value.bytes.toString("latin1") === text.slice(offset, offset + length)).toBe(true);
    },
  );

  it("is one of as many as there are, from any place", () => {
    const text = linesOf(...Array.from({ length: 30 }, () => 100_000));
    const fd = opened(text);
    for (const [from, count] of [
      [0, 3],
      [1_000_000, 2],
      [2_900_000, 1],
      [3_000_000, 1],
    ] as const) {
      const asked: unknown[] = [];
      const summarize = (part: unknown, about: unknown): undefined => void asked.push([part, about]);
      const pieces = someOf(readPieces(fd, { offset: from, line: 7 }, { size: text.length, summarize }), 10);
      expect(asked).toEqual([
        [
          { fd, from, size: text.length },
          { count, isVerified: false },
        ],
      ]);
      expect(pieces.length).toBeLessThanOrEqual(count);
      const last = pieces.at(-1)!.scan();
      expect([last.end, last.isLast]).toEqual([text.length, true]);
      const lines = pieces.reduce((sum, piece) => sum + piece.scan().lines, 0);
      expect(lines).toBe((text.length - from) / 100_000);
    }
  });

  it("that is summarized is not read, the last one is", () => {
    const text = linesOf(...Array.from({ length: 40 }, () => 100_000));
    const fd = opened(text);
    const facts = { bytes: 1_000_000, lines: 10 } as never;
    const asked: number[] = [];
    const summarize = () => ({
      get: (number: number) => (asked.push(number), number === 1 ? facts : undefined),
      end: () => {},
    });
    const pieces = someOf(readPieces(fd, { offset: 0, line: 1 }, { size: text.length, summarize }), 10);
    expect(pieces.map(({ facts: known }) => known !== undefined)).toEqual([false, true, false, false]);
    expect(pieces.map(({ start }) => start.offset)).toEqual(
      [0, 1_100_000, 2_100_000, 3_200_000].slice(0, pieces.length),
    );
    expect(asked).toEqual([1, 2, 3]);
  });
});

describe("reading in turns", () => {
  function* pieces(count: number, seen: string[] = []): Generator<number, string> {
    try {
      for (let at = 1; at <= count; at += 1) {
        if (seen.push(`${at}`) > 500) throw new Error("read without end");
        yield at / count;
      }
      return "all";
    } finally {
      seen.push("closed");
    }
  }

  it.each([0, 1, 15, 16, 17, 40])("of %i pieces comes to the end", (count) => {
    const seen: string[] = [];
    expect(drained(pieces(count, seen))).toBe("all");
    expect(seen).toHaveLength(count + 1);
  });

  it.each([
    [0, 0, true],
    [15, 15, true],
    [16, 16, false],
    [40, 16, false],
  ])("of %i pieces reads %i at a time", (count, read, done) => {
    const seen: string[] = [];
    const next = readSome(pieces(count, seen));
    expect([next.done, seen.filter((one) => one !== "closed").length]).toEqual([done, read]);
    expect(next.value).toBe(done ? "all" : 16 / count);
  });

  it("pauses between them, and reads nothing more where that is refused", async () => {
    const shares: number[] = [];
    const seen: string[] = [];
    expect(await drainedSlowly(pieces(40, seen), async (share) => void shares.push(share))).toBe("all");
    expect(shares).toEqual([16 / 40, 32 / 40]);
    expect(await drainedSlowly(pieces(3))).toBe("all");
    const refused = new Error("interrupted");
    const left: string[] = [];
    await expect(drainedSlowly(pieces(40, left), () => Promise.reject(refused))).rejects.toBe(refused);
    expect(left.slice(-2)).toEqual(["16", "closed"]);
  });
});
