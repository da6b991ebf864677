import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { type Damage, type FoundRecord, linesOf, readBytes, scanBytes } from "../../../../src/journal/file/scan.ts";
import { longJournal } from "../../../support/long-journal.ts";
import { onDisk } from "../../../support/disk-calls.ts";
import { folder } from "../intent.ts";

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

describe("bytes are split into records and damage", () => {
  const bad = '{"sum":"0000000000000000","v":2}\n';
  const [damaged, changed, torn] = [
    "its checksum does not match",
    "the byte that ended a line was changed",
    "an incomplete append",
  ];

  /** Each part is a valid record, or has the reason why it is invalid. */
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
      "damage that resembles records",
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
      "a changed newline after damage",
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
      "a torn end that is not a record",
      ([a]) => [
        [a!, "sound"],
        ["{", torn],
      ],
    ],
    [
      "a torn end after a lost newline",
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
    const scan = { found: [] as FoundRecord[], damage: [] as Damage[], torn: undefined as Damage | undefined };
    scanBytes(bytes, { offset: 1000, line: 7 }, scan);
    let [offset, line] = [1000, 7];
    const expected: unknown[] = [];
    for (const [text, is] of parts) {
      if (is !== "") expected.push({ is, offset, line, text: text.trimEnd() });
      offset += Buffer.byteLength(text);
      line += text.split("\n").length - 1;
    }
    const found = scan.found.map(({ offset, line, length }) => ({
      is: "sound",
      offset,
      line,
      text: bytes.toString("utf8", offset - 1000, offset - 1000 + length),
    }));
    const rest = [...scan.damage, ...(scan.torn ? [scan.torn] : [])];
    const places = rest.map(({ offset, line, bytes, reason }) => ({ is: reason, offset, line, text: String(bytes) }));
    expect([...found, ...places].toSorted((a, b) => a.offset - b.offset)).toEqual(expected);
    expect(scan.torn?.reason).toBe(parts.at(-1)![1] === torn ? torn : undefined);
  });
});

test("bytes are read to the end of the file, in as many reads as necessary", async () => {
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

test("a file is read in pieces, and no line is split, however long it is", () => {
  const lines = [700_000, 500_000, 3_000_000, 10, 900_000].map((length) => "x".repeat(length));
  for (const end of ["", "\n"]) {
    const text = `${lines.join("\n")}${end}`;
    const pieces = Array.from(linesOf(opened(text), 0, text.length), ({ bytes }) => String(bytes));
    expect(pieces.join("")).toBe(text);
    expect(pieces.slice(0, -1).every((piece) => piece.endsWith("\n"))).toBe(true);
    expect(pieces.length).toBeGreaterThan(2);
  }
});
