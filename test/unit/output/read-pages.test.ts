// Lists out of pages whose members are known are the same, byte for byte, as out of pages that are read row by row.
import fc from "fast-check";
import { Failure } from "../../../src/errors.ts";
import { anyCharacter } from "../../support/any-text.ts";
import stringWidth from "string-width";
import { describe, expect, it, vi } from "vitest";
import { scanUsualRows } from "../../../src/api/json/row-scanner.ts";
import { ByteWriter } from "../../../src/output/byte-writer.ts";
import { quickWidth } from "../../../src/output/character-width.ts";
import type { Format, ListView } from "../../../src/output/formats/format.ts";
import { hasMembers, pageOf, type RowPage, rowTexts } from "../../../src/output/row-page.ts";
import { UniqueRows } from "../../../src/output/unique-rows.ts";
import { visibleText } from "../../../src/output/visible-text.ts";
import { sampled } from "../../support/sample.ts";
import { stage } from "./streams.ts";

const view: ListView = {
  columns: [
    { path: "id", heading: "id" },
    { path: "status", heading: "status", kind: "status" },
    { path: "name", heading: "name" },
    { path: "at", heading: "at", kind: "time" },
    { path: "in.deep", heading: "deep" },
  ],
  singular: "entity",
  plural: "entities",
};

const blanks = Buffer.alloc(33_000, " ");

function readPage(rows: readonly string[]): RowPage {
  const body = Buffer.concat([Buffer.from(`[${rows.join(",")}]`), blanks]);
  const found = scanUsualRows(body, 1);
  if (found === undefined) throw new Error("not taken");
  return { body, spans: found.spans, isTight: true, members: found.members };
}

interface Printed {
  readonly format: Format;
  readonly fields?: readonly string[] | undefined;
  readonly unique?: boolean;
}

async function printed(
  pages: readonly (readonly string[])[],
  how: Printed,
  page: (rows: readonly string[]) => RowPage,
) {
  const { format, fields, unique = false } = how;
  const { output, stdout, stderr } = stage({ format, ...(fields && { fields }) });
  const seen = unique ? new UniqueRows() : undefined;
  const writer = output.list(view);
  // Fields that no row has end a list before its first row.
  let refusal: unknown;
  try {
    for (const rows of pages) await writer.page(seen?.of(page(rows)) ?? page(rows));
    await writer.end({ nextPageToken: null, hasMore: false });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    refusal = error.message;
  }
  // The names of what is not shown stand in the order of the members, which an object does not keep for numbers.
  const notes = stderr.text
    .split(/[\s,.]+/)
    .filter((word) => word !== "")
    .toSorted();
  return { out: stdout.text, notes, rows: writer.rowsWritten, refusal };
}

const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({
    unit: fc.constantFrom(...'ab ,:"\\é\n山🙂ʼ=+-@＝Z_.'.split(""), "e\u0301", "\u200d", "\u3164"),
    maxLength: 8,
  }),
  fc.constantFrom(
    "true",
    "No",
    "null",
    "y",
    "",
    "active",
    "a b",
    "a  b",
    "ends ",
    "Zoë Ångström",
    "2026-11-18T12:00:00.000Z",
    "=1",
    "-1",
    "off",
    "FALSE",
    "falsey",
    "a@b.c/d_e+f-g.2026",
  ),
  // Longer than what is read in one step, with something that matters at any place of it.
  fc
    .tuple(fc.nat({ max: 40 }), fc.nat({ max: 40 }), fc.constantFrom(...', \\"é山:"', "  ", "\x7f", "_"))
    .map(([before, after, some]) => "w".repeat(before) + some + "x".repeat(after)),
);
const value = fc.oneof(
  { weight: 5, arbitrary: text },
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -5,
    1.5,
    [],
    {},
    ["a", "b"],
    [1, { x: "y" }],
    { deep: "d, e" },
    { deep: null },
    { deep: [1, "z"] },
  ),
  fc.jsonValue({ maxDepth: 2 }),
);
const key = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom("id", "status", "name", "at", "in", "in.deep", "more") },
  fc.string({ maxLength: 4 }),
);
/** Members in any order, the same name more than once. */
const row = fc
  .array(fc.tuple(key, value), { maxLength: 6 })
  .map((members) => `{${members.map(([name, of]) => `${JSON.stringify(name)}:${JSON.stringify(of)}`).join(",")}}`);
/** Rows as a service sends them: most alike, the members of all in one order. */
const alike = fc
  .array(fc.record({ id: text, status: text, name: text, at: text, in: fc.oneof(fc.constant({ deep: "x" }), value) }))
  .map((rows) => rows.map((of) => JSON.stringify(of)));
const pages = fc.array(
  fc.oneof(
    fc.array(row, { minLength: 1, maxLength: 4 }),
    alike.filter((rows) => rows.length > 0),
  ),
  {
    minLength: 1,
    maxLength: 3,
  },
);

const fieldSets = [
  undefined,
  ["id", "name"],
  ["at", "status", "nowhere", "id", "name"],
  ["name"],
  ["in.deep", "id", "nowhere"],
  ["in", "in.deep.x", "more"],
];

describe.each(["ndjson", "json", "csv", "yaml", "table"] as const)("%s", (format) => {
  it("is the same, whatever fields are asked for, with repeated rows or without", async () => {
    await fc.assert(
      fc.asyncProperty(pages, fc.constantFrom(...fieldSets), fc.boolean(), async (given, fields, unique) => {
        const how = { format, fields, unique };
        expect(await printed(given, how, readPage)).toEqual(await printed(given, how, pageOf));
      }),
      { numRuns: sampled(1200) },
    );
  });

  it("is the same of rows that are more than their bytes, one after the other and now and then", async () => {
    const rows = Array.from({ length: 60 }, (_, index) => {
      const name = index < 20 || index % 3 === 0 ? `a\t${index}` : `Zoë ${"山".repeat(index % 4)} ${index}`;
      return JSON.stringify({ id: `e${index}`, status: "active", name, at: null });
    });
    const how = { format, fields: ["id", "name", "status", "at"] };
    // A page of a table before it, so that the widths are fixed.
    const given = [rows.slice(0, 2), rows, rows.toReversed()];
    expect(await printed(given, how, readPage)).toEqual(await printed(given, how, pageOf));
  });
});

it("a processor that cannot run the code leaves every row to its format", async () => {
  const page = readPage(['{"a":1}', '{"a":2}', '{"b":3}']);
  if (!hasMembers(page)) throw new Error("no members");
  vi.resetModules();
  const refuse = vi.fn(() => {
    throw new Error("no SIMD");
  });
  vi.stubGlobal("WebAssembly", { Module: refuse });
  const { writeRows } = await import("../../../src/output/row-writer.ts");
  const left: number[] = [];
  for (let time = 0; time < 2; time += 1)
    writeRows(page, new ByteWriter(), {
      parts: () => [{ before: Buffer.from("never"), slot: 0, kind: 1 }],
      row: ({ row: number }) => left.push(number),
    });
  vi.unstubAllGlobals();
  expect(left).toEqual([0, 1, 2, 0, 1, 2]);
  expect(refuse).toHaveBeenCalledOnce();
});

describe("rows without repetitions", () => {
  it("are the first of each id, in every kind of page", () => {
    const rows = [
      '{"id":"a"}',
      '{"id":"\\u0061"}',
      '{"n":1}',
      '{"id":1}',
      '{"id":1}',
      '{"id":"é"}',
      '{"id":"\\u00e9"}',
      '{"id":"a","id":"b"}',
    ];
    const kept = ['{"id":"a"}', '{"n":1}', '{"id":1}', '{"id":1}', '{"id":"é"}', '{"id":"a","id":"b"}'];
    const unique = new UniqueRows();
    expect(rowTexts(unique.of(readPage(rows)))).toEqual(kept);
    expect(rowTexts(unique.of(pageOf(rows)))).toEqual(['{"n":1}', '{"id":1}', '{"id":1}']);
  });
});

describe("characters that stand alone", () => {
  it("are as wide together as string-width says", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 12 }), (given) => {
        const width = quickWidth(given, stringWidth);
        if (width === undefined) return;
        expect(width).toBe(stringWidth(given));
        expect(visibleText(given)).toBe(given);
      }),
      { numRuns: sampled(20_000) },
    );
  });

  it("are letters of every script that does not join them, and nothing that is not shown", () => {
    for (const sure of ["Zoë Ångström", "Łukasz Żółć", "山田 太郎", "Дмитрий Орлов", "Ανδρέας Παππάς", "ﾊﾝｶｸ", "「」"])
      expect(quickWidth(sure, stringWidth), sure).toBe(stringWidth(sure));
    for (const unsure of ["e\u0301", "\u200b", "\u202e", "🙂", "\u3164", "\ufe0f", "한\u11a8", "\u00ad", "©\ufe0f"])
      expect(quickWidth(unsure, stringWidth), unsure).toBeUndefined();
  });
});
