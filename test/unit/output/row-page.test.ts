import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compactJson, indentedJson } from "../../../src/output/json-text.ts";
import { type RowPage, isCompact, joinedRows, pageOf, rowTexts } from "../../../src/output/row-page.ts";
import { sampled } from "../../support/sample.ts";

/** Rows with everything in them that looks like structure: quotes, backslashes, commas and spaces inside strings. */
const row = fc
  .dictionary(
    fc.string({ maxLength: 3 }),
    fc.oneof(fc.string({ unit: fc.constantFrom(...'ab ,:{}[]"\\é\n'.split("")) }), fc.integer()),
  )
  .map((value) => JSON.stringify(value));
const laidOut = fc.tuple(row, fc.constantFrom("", " ", "\n", "\t", "\r", "indented")).map(([json, how]) => {
  if (how === "indented") return indentedJson(json);
  // White space after the first bracket, outside of every string.
  return json === "{}" ? json : `{${how}${json.slice(1)}`;
});

/** The rows as a service might send them: an array in a body, with white space between the rows or not. */
function answer(rows: readonly string[], between: string): RowPage {
  const head = '{"object":"list","data":[';
  let text = head;
  const spans: number[] = [];
  for (const [index, json] of rows.entries()) {
    if (index > 0) text += between;
    spans.push(Buffer.byteLength(text));
    text += json;
    spans.push(Buffer.byteLength(text));
  }
  return { body: Buffer.from(`${text}],"has_more":false}`), spans: Uint32Array.from(spans) };
}

describe("pages of rows", () => {
  it("come out compact and in order, whatever white space they came with", () => {
    fc.assert(
      fc.property(
        fc.array(laidOut, { minLength: 1, maxLength: 5 }),
        fc.constantFrom(",", ", ", ",\n", "\n"),
        fc.constantFrom("," as const, "\n" as const),
        (rows, between, separator) => {
          const page = answer(rows, between);
          expect(rowTexts(page)).toEqual(rows);
          expect(joinedRows(page, separator).toString()).toBe(rows.map(compactJson).join(separator));
        },
      ),
      { numRuns: sampled(2000) },
    );
  });

  it("are called compact exactly when they are", () => {
    fc.assert(
      fc.property(fc.array(laidOut, { minLength: 1, maxLength: 3 }), (rows) => {
        const page = answer(rows, ",");
        expect(isCompact(page, { from: 0, to: rows.length })).toBe(rows.every((json) => json === compactJson(json)));
      }),
      { numRuns: sampled(2000) },
    );
  });

  it("keep bytes that JSON would spell otherwise", () => {
    const rows = ['{"n":1e400,"s":"\\u00e9\\/","__proto__":1,"1":2,"a":0,"a":1}', '{"name":"Doe, John: \\" x\\\\"}'];
    expect(joinedRows(answer(rows, ","), "\n").toString()).toBe(rows.join("\n"));
    expect(joinedRows(pageOf(rows), ",").toString()).toBe(rows.join(","));
  });

  it("need no copy when they stand next to each other", () => {
    const page = answer(['{"a":"x y"}', '{"b":"c: d"}'], ",");
    expect(joinedRows(page, "\n").buffer).toBe(page.body.buffer);
  });

  it.each([true, false])("are told apart by what the page has for that, if it does it: %s", (does) => {
    const page = answer(['{"a":1}', '{"b":","}', '{"c":3}'], ",");
    const asked: number[] = [];
    const separate = (byte: number): boolean => {
      asked.push(byte);
      if (does) for (const row of [0, 1]) page.body[page.spans[row * 2 + 1]!] = 0x3b;
      return does;
    };
    const separator = does ? ";" : "\n";
    expect(joinedRows({ ...page, isTight: true, separate }, "\n").toString()).toBe(
      ['{"a":1}', '{"b":","}', '{"c":3}'].join(separator),
    );
    expect(asked).toEqual([10]);
    const other = answer(["{}", "{}"], ",");
    expect(joinedRows({ ...other, isTight: true, separate }, ",").toString()).toBe("{},{}");
    expect(asked).toEqual([10]);
  });

  it("may leave rows out", () => {
    const { body, spans } = answer(['{"a":1}', '{"b":2}', '{"c":3}'], ",");
    const some = { body, spans: Uint32Array.from([...spans.slice(0, 2), ...spans.slice(4)]) };
    expect(joinedRows(some, "\n").toString()).toBe('{"a":1}\n{"c":3}');
  });
});
