import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Finding } from "../../../../src/journal/journal.ts";
import { newEntry } from "../../../../src/journal/admission.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { headerLine, recordContent, recordLine, sumIn } from "../../../../src/journal/record.ts";
import { testKeys } from "../../../support/file-journal.ts";
import { writeJournal } from "../../../support/long-journal.ts";
import { ada, intent, journalAt, journalPath } from "../intent.ts";

async function aJournal(entries = 1): Promise<string> {
  const path = journalPath();
  const journal = journalAt(path);
  for (let index = 0; index < entries; index += 1) {
    const { lease } = await journal.admit(intent({ fingerprint: `f${index}` }), {});
    await lease.record({ state: "done" });
    await lease.release();
  }
  return path;
}

const textsOf = (found: readonly Finding[], path: string): string[] =>
  found.map(({ severity, where, message }) => `${severity} ${where.replaceAll(dirname(path), "")}: ${message}`);

describe.skipIf(process.platform === "win32")("a journal's file", () => {
  it("is reported with copies of damage next to it, and without unrelated files", async () => {
    const path = await aJournal();
    for (const name of ["damaged-1", "torn-2", "other", "damaged"]) writeFileSync(`${path}.${name}`, "");
    writeFileSync(join(dirname(path), "x.damaged-1"), "");
    const aside = "a file of bytes that were set aside; delete it when you no longer need it";
    expect(textsOf(await journalAt(path).verify(), path)).toEqual([
      `warning /journal.ndjson.damaged-1: ${aside}`,
      `warning /journal.ndjson.torn-2: ${aside}`,
    ]);
  });

  it("that does not exist has no findings", async () => {
    expect(await journalAt(journalPath()).verify()).toEqual([]);
  });
});

describe("a journal's records", () => {
  const linesOf = (path: string): string[] => readFileSync(path, "utf8").trimEnd().split("\n");

  it.each<[string, (lines: string[]) => string, RegExp[]]>([
    ["as they were written", (lines) => `${lines.join("\n")}\n`, []],
    ["none", () => "", [/^warning \/journal.ndjson: it is empty: the next change starts a new one$/]],
    [
      "without the first",
      (lines) => `${lines.slice(1).join("\n")}\n`,
      [/^problem \/journal.ndjson: the first record, which names the format, is damaged$/],
    ],
    [
      "with half a record at the end",
      (lines) => `${lines.join("\n")}\n${lines[1]!.slice(0, 40)}`,
      [/^warning \/journal.ndjson: line 6, offset \d+, 40 bytes: a crash left an incomplete append;/],
    ],
    [
      "with one that is damaged",
      (lines) => `${[lines[0], lines[1]!.replace("POST", "PUSH"), ...lines.slice(2)].join("\n")}\n`,
      [
        /^problem \/journal.ndjson: line 2, offset \d+, \d+ bytes: a record is damaged .*; its bytes are set aside, valid records are kept, /,
      ],
    ],
  ])("%s", async (_what, spoil, expected) => {
    const path = await aJournal(2);
    const lines = linesOf(path);
    expect(lines).toHaveLength(5);
    writeFileSync(path, spoil(lines));
    const found = textsOf(await journalAt(path).verify(), path);
    for (const pattern of expected)
      expect(
        found.filter((text) => pattern.test(text)),
        found.join("\n"),
      ).toHaveLength(1);
    if (expected.length === 0) expect(found).toEqual([]);
  });
});

describe("valid records", () => {
  const id = "01bmzff600";
  const first = newEntry(intent(), { id, key: "k", at: "2026-11-21T00:00:00.000Z" });

  /** Writes a journal in which each record has the checksum of the line before it. */
  function journalOf(...contents: readonly string[]): string {
    const path = journalPath();
    const lines = [headerLine({ file: "x", createdAt: "2026-11-21" })];
    for (const content of contents)
      lines.push(recordLine({ content, mac: testKeys.sign(content) }, sumIn(lines.at(-1)!)));
    writeJournal(path, lines);
    return path;
  }
  const content = (changes: Partial<Entry> = {}): string => recordContent({ ...first, ...changes }, { by: ada });
  const other = "01bmzff601";

  it.each<[string, readonly string[], readonly Finding[]]>([
    ["and their entry too", [content()], []],
    [
      "and name a missing entry",
      [
        content({ parent: other, replaces: other }),
        content({ id: "01bmzff602", idempotency_key: "2", replaced_by: id }),
      ],
      Array.from({ length: 2 }, () => ({
        severity: "warning",
        where: `entry ${id}`,
        message: `it names entry ${other}, which is not in the journal`,
      })),
    ],
    [
      "and contain no entry",
      [content().replace('"attempts":', '"attempt":')],
      [{ severity: "problem", where: `entry ${id}`, message: "its records are complete and do not form an entry" }],
    ],
    [
      "of three entries with one key",
      [
        content(),
        content({ id: other }),
        content({ id: "01bmzff602" }),
        content({ id: "01bmzff603", idempotency_key: null }),
      ],
      [other, "01bmzff602"].map((one) => ({
        severity: "problem" as const,
        where: `entry ${one}`,
        message: `it has the idempotency key of entry ${id}`,
      })),
    ],
    [
      "of two entries with one key at two addresses",
      [content(), content({ id: other, base_url: "https://us.example.com" })],
      [],
    ],
  ])("%s", async (_what, contents, expected) => {
    expect(await journalAt(journalOf(...contents)).verify()).toEqual(expected);
  });
});
