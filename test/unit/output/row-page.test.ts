import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonText } from "../../../src/api/json/json-text.ts";
import { joinedRows, pageOf, type RowPage, UniqueRows } from "../../../src/output/row-page.ts";
import { sampled } from "../../support/sample.ts";

/** Text that looks like structure: quotes, backslashes, commas and spaces inside strings. */
const row = fc
  .dictionary(
    fc.string({ maxLength: 3 }),
    fc.oneof(fc.string({ unit: fc.constantFrom(...'ab ,:{}[]"\\é\n'.split("")) }), fc.integer()),
  )
  .map((value) => JSON.stringify(value));
const laidOut = fc.tuple(row, fc.constantFrom("", " ", "\n", "\t", "\r", "indented")).map(([json, how]) => {
  if (how === "indented") return JsonText.of(json).indented();
  return json === "{}" ? json : `{${how}${json.slice(1)}`;
});

function response(rows: readonly string[], between: string): RowPage {
  return (
    JsonText.of(`{"data":[${rows.join(between)}],"has_more":false}`)
      .parts()
      .get("data")
      ?.items() ?? []
  );
}

const joined = (page: RowPage, ...how: ["," | "\n", ("" | "\n")?]): string => joinedRows(page, ...how).toString();

describe("rows of one response", () => {
  it("become compact and keep their order, with any white space", () => {
    fc.assert(
      fc.property(
        fc.array(laidOut, { minLength: 1, maxLength: 5 }),
        fc.constantFrom(",", ", ", ",\n", "\n,"),
        fc.constantFrom("," as const, "\n" as const),
        fc.constantFrom("" as const, "\n" as const),
        (rows, between, separator, end) => {
          const compact = rows.map((json) => JsonText.of(json).compact()).join(separator) + end;
          const page = response(rows, between);
          expect(page.map(({ text }) => text)).toEqual(rows);
          expect(joined(page, separator, end)).toBe(compact);
          expect(joined(pageOf(rows), separator, end)).toBe(compact);
        },
      ),
      { numRuns: sampled(2000) },
    );
  });

  it("keep bytes that JSON would escape differently", () => {
    const rows = ['{"n":1e400,"s":"\\u00e9\\/","__proto__":1,"1":2,"a":0,"a":1}', '{"name":"Doe, John: \\" x\\\\"}'];
    expect(joined(response(rows, ","), "\n")).toBe(rows.join("\n"));
  });

  it("are not copied if they are adjacent", () => {
    const page = response(['{"a":"x y"}', '{"b":"c: d"}'], ",");
    expect(joinedRows(page, "\n", "\n")).toMatchObject({ buffer: page[0]!.source.bytes.buffer });
  });

  it("may be left out", () => {
    const [first, , third] = response(['{"a":1}', '{"b":2}', '{"c":3}'], ",");
    expect(joined([first!, third!], "\n")).toBe('{"a":1}\n{"c":3}');
    expect(joined([], ",")).toBe("");
  });
});

it("rows are deduplicated by id; rows without a text id are never repeats", () => {
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
  expect(unique.of(pageOf(rows)).map(({ text }) => text)).toEqual(kept);
  expect(unique.of(pageOf(rows)).map(({ text }) => text)).toEqual(['{"n":1}', '{"id":1}', '{"id":1}']);
});
