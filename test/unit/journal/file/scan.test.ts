// How a file is cut: into pieces, whatever the lengths of its lines, and each piece into sound records and damage.
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import type { PieceFacts } from "../../../../src/journal/file/piece-facts.ts";
import {
  NearReader,
  PieceBuffer,
  readBytes,
  readPiece,
  readPieces,
  scanBytes,
  type Summarize,
} from "../../../../src/journal/file/scan.ts";
import { longJournal } from "../../../support/long-journal.ts";
import { onDisk } from "../../../support/disk-calls.ts";
import { folder } from "../intent.ts";

const megabyte = 1024 * 1024;
let sound: string[] = [];

beforeAll(() => {
  sound = longJournal(6);
});

function opened(text: string): number {
  const path = join(folder(), "f");
  writeFileSync(path, text);
  const fd = openSync(path, "r");
  onTestFinished(() => closeSync(fd));
  return fd;
}

describe("bytes are cut into records and damage", () => {
  const bad = '{"sum":"0000000000000000","v":2}\n';
  const [damaged, changed, torn] = [
    "its checksum does not match",
    "the byte that ended a line was changed",
    "an incomplete append",
  ];

  /** What each part is: a sound record, or the reason why it is none. */
  it.each<[string, (lines: string[]) => (readonly [text: string, is: string])[]]>([
    [
      "sound lines",
      ([a, b]) => [
        [a!, "sound"],
        [b!, "sound"],
      ],
    ],
    [
      "blank lines",
      ([a, b]) => [
        ["\n\n", ""],
        [a!, "sound"],
        ["\n", ""],
        [b!, "sound"],
      ],
    ],
    [
      "damage between",
      ([a, b]) => [
        [a!, "sound"],
        [bad, damaged],
        [b!, "sound"],
      ],
    ],
    [
      "damage that looks like none",
      ([a]) => [
        ["no record\n", damaged],
        [a!, "sound"],
      ],
    ],
    [
      "two on one line",
      ([a, b]) => [
        [a!.trimEnd(), "sound"],
        [b!, "sound"],
      ],
    ],
    [
      "a newline that was changed",
      ([a, b]) => [
        [a!.trimEnd(), "sound"],
        ["x", changed],
        [b!, "sound"],
      ],
    ],
    [
      "a newline that was changed behind damage",
      ([a]) => [
        [bad.trimEnd(), damaged],
        [a!, "sound"],
      ],
    ],
    [
      "an end without a newline",
      ([a, b]) => [
        [a!, "sound"],
        [b!.trimEnd(), "sound"],
      ],
    ],
    [
      "a torn end",
      ([a, b]) => [
        [a!, "sound"],
        [b!.slice(0, 40), torn],
      ],
    ],
    [
      "a torn end of no record",
      ([a]) => [
        [a!, "sound"],
        ["{", torn],
      ],
    ],
    [
      "a torn end behind a lost newline",
      ([a, b]) => [
        [a!.trimEnd(), "sound"],
        [b!.slice(0, 40), torn],
      ],
    ],
    [
      "damage with a newline at the end",
      ([a, b]) => [
        [a!, "sound"],
        [`${b!.slice(0, 40)}\n`, damaged],
      ],
    ],
  ])("%s", (_what, made) => {
    const parts = made(sound.slice(1));
    const bytes = Buffer.from(parts.map(([text]) => text).join(""));
    const scan = scanBytes(bytes, { offset: 1000, line: 7 });
    let [offset, line] = [1000, 7];
    const expected: unknown[] = [];
    for (const [text, is] of parts) {
      if (is !== "") expected.push({ is, offset, line, text: text.trimEnd() });
      offset += Buffer.byteLength(text);
      line += text.split("\n").length - 1;
    }
    const found = scan.found.map(({ offset, line, text }) => ({
      is: "sound",
      offset,
      line,
      text: text.bytes.toString("utf8", text.start, text.end),
    }));
    const rest = [...scan.damage, ...(scan.torn ? [scan.torn] : [])];
    const places = rest.map(({ offset, line, bytes, reason }) => ({ is: reason, offset, line, text: String(bytes) }));
    expect([...found, ...places].toSorted((a, b) => a.offset - b.offset)).toEqual(expected);
    expect(scan.torn?.reason).toBe(parts.at(-1)![1] === torn ? torn : undefined);
    expect(scan.lines).toBe(
      bytes
        .toString()
        .split("\n")
        .filter((one, at, all) => at < all.length - 1 || one !== "").length,
    );
  });
});

/** Lines of these lengths, each with its number. */
function linesOf(lengths: readonly number[]): string {
  return lengths.map((length, number) => `${`${number} `.padEnd(length - 1, "x")}\n`).join("");
}

const files: readonly (readonly [string, string])[] = [
  ["nothing", ""],
  ["one line", "x\n"],
  ["an end without a newline", "x\ny"],
  ["a piece to the byte", linesOf([megabyte])],
  ["two pieces to the byte", linesOf([megabyte, megabyte])],
  ["a line that ends a byte behind a piece", linesOf([megabyte + 1, 10, megabyte])],
  ["a line that ends a byte before one", linesOf([megabyte - 1, 10, megabyte])],
  ["a line that is longer than a piece", linesOf([10, 2.5 * megabyte, 10, 10])],
  ["a line that is longer, at the end", linesOf([megabyte - 3, 2.5 * megabyte])],
  ["short lines", linesOf(Array.from({ length: 2500 }, (_, at) => 1000 + (at % 7)))],
  ["an end far behind", `${linesOf([megabyte / 2, megabyte])}${"y".repeat(megabyte)}`],
];

describe.each(files)("a file of %s", (_what, text) => {
  it.each([0, 2])("is what its pieces are, from %i", (from) => {
    const fd = opened(text);
    const start = from === 0 ? 0 : text.indexOf("\n") + 1;
    const part = { fd, from: start, size: text.length };
    const into = new PieceBuffer();
    let at = start;
    for (let number = 0; ; number += 1) {
      const { offset, bytes, isLast } = readPiece(part, number, into);
      if (bytes.length > 0) expect([number, offset]).toEqual([number, at]);
      expect(bytes.toString("latin1") === text.slice(at, at + bytes.length)).toBe(true);
      // Its lines begin in its span.
      const lastLine = text.lastIndexOf("\n", at + bytes.length - 2) + 1;
      if (bytes.length > 0) {
        expect(at - start).toBeGreaterThanOrEqual(number * megabyte);
        expect(lastLine - start).toBeLessThan((number + 1) * megabyte);
      }
      at += bytes.length;
      expect([number, isLast]).toEqual([number, at === text.length]);
      if (isLast) break;
    }
  });

  it("is read in pieces that know their lines, until the end that it had", () => {
    const fd = opened(`${text}more\n`);
    let [offset, line] = [0, 1];
    const ends: boolean[] = [];
    for (const piece of readPieces(fd, { offset, line }, { size: text.length })) {
      const scanned = piece.scan();
      expect([piece.start, piece.facts, piece.scan() === scanned]).toEqual([{ offset, line }, undefined, true]);
      offset = scanned.end;
      line += scanned.lines;
      ends.push(scanned.isLast);
    }
    expect([offset, ends.indexOf(true)]).toEqual([text.length, ends.length - 1]);
  });
});

test("pieces that are summarized are not read, and the summaries are told of the end", () => {
  const text = linesOf(Array.from({ length: 40 }, () => megabyte / 8));
  const fd = opened(text);
  const asked: unknown[] = [];
  const summarize: Summarize = (part, about) => {
    asked.push([part, about]);
    return {
      get: (number) => {
        asked.push(number);
        return number < 3 ? ({ bytes: megabyte, lines: 8 } as PieceFacts) : undefined;
      },
      end: () => asked.push("end"),
    };
  };
  const options = { size: text.length, isVerified: true, summarize };
  const starts = [...readPieces(fd, { offset: 0, line: 1 }, options)].map(({ start, facts }) => [start, facts?.lines]);
  expect(starts).toEqual(
    [0, 1, 2, 3, 4].map((at) => [{ offset: at * megabyte, line: 1 + 8 * at }, at === 1 || at === 2 ? 8 : undefined]),
  );
  expect(asked).toEqual([
    [
      { fd, from: 0, size: text.length },
      { count: 5, isVerified: true },
    ],
    1,
    2,
    3,
    4,
    "end",
  ]);
  asked.length = 0;
  for (const _ of readPieces(fd, { offset: 0, line: 1 }, { size: 1, summarize })) break;
  expect(asked).toEqual([
    [
      { fd, from: 0, size: 1 },
      { count: 1, isVerified: false },
    ],
    "end",
  ]);
});

test("bytes are read up to the end of the file, in as many reads as it takes", async () => {
  const fd = opened("0123456789");
  for (const [offset, length, expected] of [
    [2, 3, "234"],
    [8, 9, "89"],
    [10, 1, ""],
    [3, 0, ""],
    [3, -1, ""],
  ] as const)
    expect(String(readBytes(fd, offset, length))).toBe(expected);
  const { readSync } = await import("node:fs");
  const { value } = await onDisk(
    () => String(readBytes(fd, 2, 6)),
    ({ call }) =>
      call === "read"
        ? (from: number, to: Buffer, at: number, _length: number, offset: number) => readSync(from, to, at, 1, offset)
        : undefined,
  );
  expect(value).toBe("234567");
});

test("what was read near another place stays as it was", () => {
  const text = Array.from({ length: 50_000 }, (_, number) => `${number}\n`.padStart(8)).join("");
  const fd = opened(text);
  const near = new NearReader();
  const places = [0, 1000, 60_000, 80_000, 140_000, 200_000];
  const read = places.map((offset) => near.read(fd, offset, 300));
  expect(read.map(String)).toEqual(places.map((offset) => text.slice(offset, offset + 300)));
});

test.each(["at once", "half way"])("a read near another place that fails %s leaves nothing of it", async (fails) => {
  const text = Array.from({ length: 50_000 }, (_, number) => `${number}\n`.padStart(8)).join("");
  const fd = opened(text);
  const near = new NearReader();
  for (const offset of [200_000, 200_400, 260_000]) near.read(fd, offset, 300);
  const { readSync } = await import("node:fs");
  let count = 0;
  const { error } = await onDisk(
    () => near.read(fd, 320_000, 300),
    ({ call }) => {
      if (call !== "read") return undefined;
      count += 1;
      if (fails === "at once" || count === 2) return new Error("EIO");
      return (from: number, to: Buffer, at: number, _length: number, offset: number) =>
        readSync(from, to, at, 100, offset);
    },
  );
  expect(error).toBeDefined();
  for (const offset of [320_200, 260_050, 320_000])
    expect([offset, String(near.read(fd, offset, 300))]).toEqual([offset, text.slice(offset, offset + 300)]);
});

test("what is near is read at once, and is what is there", async () => {
  const text = linesOf(Array.from({ length: 400 }, () => 1000));
  const fd = opened(text);
  const places = [
    0, 1000, 2500, 60_000, 66_000, 70_000, 69_000, 64_000, 20_000, 300_000, 299_000, 298_000, 399_990, 200_000, 399_999,
  ];
  const near = new NearReader();
  const { calls, error } = await onDisk(() => {
    for (const offset of places)
      for (const length of [10, 700])
        expect(String(near.read(fd, offset, length))).toBe(text.slice(offset, offset + length));
    expect(String(near.read(fd, 200_000, 70_000))).toBe(text.slice(200_000, 270_000));
  });
  expect(error).toBeUndefined();
  expect(calls.length).toBeLessThan(places.length * 2);
  const walk = new NearReader();
  const forth = await onDisk(() => {
    for (let offset = 0; offset < 200_000; offset += 1000) walk.read(fd, offset, 900);
  });
  const back = await onDisk(() => {
    for (let offset = 199_000; offset > 0; offset -= 1000) walk.read(fd, offset, 900);
  });
  // One for the first, then a block of 64 KiB at a time.
  expect([forth.calls.length, back.calls.length]).toEqual([5, 3]);
});
