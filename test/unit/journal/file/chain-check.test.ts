// The chain of a file's records, piece by piece: read line by line or as facts of a whole piece, and mixed.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ChainCheck } from "../../../../src/journal/file/chain.ts";
import type { PieceFacts } from "../../../../src/journal/file/piece-facts.ts";
import { scanBytes } from "../../../../src/journal/file/scan.ts";
import { headerLine, type KeptPart, seal, sumIn } from "../../../../src/journal/record.ts";
import { longJournal } from "../../../support/long-journal.ts";

const entries = longJournal(4, { isSettled: true });

/** The records' contents, chained anew behind a header. */
function journal(count: number, kept?: KeptPart): string[] {
  const lines = [headerLine({ file: "f", createdAt: "2026-01-01T00:00:00.000Z", kept })];
  for (const line of entries.slice(1, count + 1)) {
    const content = line
      .trimEnd()
      .slice(line.indexOf('"v":'))
      .replace(/(,"after":"[0-9a-f]{16}")?\}$/, "");
    lines.push(seal(content, sumIn(lines.at(-1)!)));
  }
  return lines;
}

const sumsOf = (lines: readonly string[]): string => lines.map((line) => sumIn(line)).join("");

function keptOf(lines: readonly string[]): KeptPart {
  return { records: lines.length, digest: createHash("sha256").update(sumsOf(lines)).digest("hex"), gaps: [] };
}

class File {
  readonly check = new ChainCheck();
  #offset = 0;
  #line = 1;

  /** Lines as they are read one by one. */
  lines(...lines: string[]): this {
    const bytes = Buffer.from(lines.join(""));
    this.check.add(scanBytes(bytes, { offset: this.#offset, line: this.#line }));
    return this.#behind(lines);
  }

  /** The same as facts of a piece. @param before what its first record names as the one before it */
  facts(before: string, ...lines: string[]): this {
    const facts: Partial<PieceFacts> = {
      records: lines.length,
      sums: sumsOf(lines),
      after: sumIn(before),
      firstLine: 0,
      lastSum: sumIn(lines.at(-1)!),
      lastPlace: { offset: this.#offset, length: 1, line: lines.length - 1 },
      broken: [],
    };
    this.check.addFacts(facts as PieceFacts, { offset: this.#offset, line: this.#line });
    return this.#behind(lines);
  }

  takes(records: number): boolean {
    return this.check.takes({ records } as PieceFacts);
  }

  #behind(lines: readonly string[]): this {
    this.#offset += Buffer.byteLength(lines.join(""));
    this.#line += lines.length;
    return this;
  }

  get where(): string[] {
    return this.check.findings("journal").map(({ severity, where }) => `${severity}, ${where}`);
  }
}

const before = (line: number): string[] => [`problem, journal: before line ${line}`];
const damaged = "}{ not a record\n";

describe("of a file that was appended to,", () => {
  const [head, a, b, c, d] = journal(4) as [string, string, string, string, string];

  it.each<[string, (file: File) => File, string[]]>([
    ["nothing is wrong with nothing", (file) => file, []],
    ["lines in a row are sound", (file) => file.lines(head, a, b, c), []],
    ["so are they in two pieces", (file) => file.lines(head, a).lines(b, c), []],
    ["so are facts behind lines", (file) => file.lines(head, a).facts(a, b, c), []],
    ["and lines behind facts", (file) => file.lines(head, a).facts(a, b).lines(c, d), []],
    ["and facts behind facts", (file) => file.lines(head).facts(head, a, b).facts(b, c, d), []],
    ["a record that is gone is missed", (file) => file.lines(head, a, c), before(3)],
    ["also between pieces", (file) => file.lines(head, a).lines(c), before(3)],
    ["also before facts", (file) => file.lines(head, a).facts(b, c), before(3)],
    ["also behind facts", (file) => file.lines(head).facts(head, a).lines(c), before(3)],
    ["two that are gone are told each", (file) => file.lines(head, b, d), [...before(2), ...before(3)]],
    ["damage explains what is missing behind it", (file) => file.lines(head, a, damaged, c), []],
    ["also at the beginning of the next piece", (file) => file.lines(head, a, damaged).lines(c), []],
    ["and in that", (file) => file.lines(head, a).lines(damaged, c), []],
    ["not what is missing before it", (file) => file.lines(head, b, damaged, d), before(2)],
    ["nor what is missing behind the next record", (file) => file.lines(head, damaged, b, d), before(4)],
    ["nor in a later piece", (file) => file.lines(head, damaged, b).lines(d), before(4)],
    ["nor behind facts", (file) => file.lines(head, damaged, a).facts(a, b).lines(d), before(5)],
    ["the last damage of a piece counts for the next", (file) => file.lines(head, damaged, a, damaged).lines(c), []],
  ])("%s", (_, read, where) => {
    expect(read(new File()).where).toEqual(where);
  });

  it("facts name the lines that are broken within them", () => {
    const file = new File().lines(head);
    const facts: Partial<PieceFacts> = {
      records: 3,
      sums: "",
      after: "0".repeat(16),
      firstLine: 1,
      lastSum: "x",
      broken: [3, 5],
    };
    const lastPlace = { offset: 9, length: 1, line: 6 };
    file.check.addFacts({ ...facts, lastPlace } as PieceFacts, { offset: 100, line: 10 });
    expect(file.where).toEqual([...before(11), ...before(13), ...before(15)]);
  });

  it("facts are taken behind the header", () => {
    expect(new File().takes(1)).toBe(false);
    expect(new File().lines(head).takes(1)).toBe(true);
    expect(new File().lines(head, a).takes(1000)).toBe(true);
  });
});

describe("of a file that was written anew,", () => {
  const kept = keptOf(journal(3).slice(1));
  const [, x, y, z] = journal(3) as [string, string, string, string];
  const head = headerLine({ file: "f", createdAt: "2026-01-01T00:00:00.000Z", kept });
  const content = (line: string): string =>
    line
      .trimEnd()
      .slice(line.indexOf('"v":'))
      .replace(/(,"after":"[0-9a-f]{16}")?\}$/, "");
  const behind = seal(content(journal(4)[4]!), sumIn(z));
  const wrong = "problem, journal: lines 2 to 4, which `integ journal prune` kept";

  it.each<[string, (file: File) => File, string[]]>([
    ["what it kept is sound by its digest, in any order of its chain", (file) => file.lines(head, x, y, z), []],
    ["also as facts", (file) => file.lines(head).facts(head, x, y, z), []],
    ["also as both", (file) => file.lines(head, x).facts(x, y, z), []],
    ["also as facts first", (file) => file.lines(head).facts(head, x).lines(y, z), []],
    ["and what was appended behind it", (file) => file.lines(head, x, y, z, behind), []],
    ["and facts behind it", (file) => file.lines(head, x, y, z).facts(z, behind), []],
    ["one that is missing is told", (file) => file.lines(head, x, y), [wrong]],
    ["one that is another is told", (file) => file.lines(head, x, y, y), [wrong]],
    ["also as facts", (file) => file.lines(head).facts(head, x, y, y), [wrong]],
    ["nothing of all is told", (file) => file.lines(head), [wrong]],
    ["one more behind it hangs in the air", (file) => file.lines(head, x, y, z, x), before(5)],
    ["damage explains it", (file) => file.lines(head, x, damaged, z), []],
  ])("%s", (_, read, where) => {
    expect(read(new File()).where).toEqual(where);
  });

  it("facts are taken that are all within what was kept, or all behind it", () => {
    expect(new File().lines(head).takes(3)).toBe(true);
    expect(new File().lines(head).takes(4)).toBe(false);
    expect(new File().lines(head, x).takes(2)).toBe(true);
    expect(new File().lines(head, x).takes(3)).toBe(false);
    expect(new File().lines(head, x, y).takes(2)).toBe(false);
    expect(new File().lines(head, x, y, z).takes(1)).toBe(true);
    expect(new File().lines(head, x, y, z).takes(500)).toBe(true);
  });
});
