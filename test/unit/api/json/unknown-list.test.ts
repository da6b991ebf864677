import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BrokenBody } from "../../../../src/api/json/json-text.ts";
import { readRows } from "../../../../src/api/json/unknown-list.ts";

const read = (text: string) => readRows(Buffer.from(text));

describe("readRows", () => {
  test.each([
    ['[{"id":1},{"id":2}]', 2],
    ["[]", 0],
    ['{"data":[{"id":1}]}', 1],
    ['{"items":[]}', 0],
    ['{"accessKeys":[{"id":1}],"warnings":[]}', 1],
    ['{"tags":["a"],"keys":[{"id":1}]}', 1],
    ['{"nothing":[]}', 0],
    ['{"data":[],"others":[{"id":1}]}', 0],
  ])("%s", (text, count) => {
    const { rows, ...rest } = read(text);
    expect(rows).toHaveLength(count);
    expect(rest).toEqual({ saysMore: false });
  });

  test.each([
    "{}",
    "null",
    "5",
    '"x"',
    '{"a":[{}],"b":[{}]}',
    "[1]",
    '{"data":[null]}',
    '{"data":{"id":1}}',
    "[[]]",
    "[{}]x",
    '{"data":[{}]}}',
    '[{"a":}]',
    "[{},]",
    "",
    "[{}",
  ])("%s is not a list", (text) => {
    expect(() => read(text)).toThrow(BrokenBody);
  });

  test.each(['{"data":[],"has_more":true}', '{"data":[],"nextPageToken":"x"}', '{"data":[],"next":"/x"}'])(
    "%s means that there are more",
    (text) => {
      expect(read(text).saysMore).toBe(true);
    },
  );

  test("returns the API's text of rows unchanged", () => {
    const text =
      ' { "a\\u0062" : "]" , "rows" : [ {"n":12345678901234567890,"s":"}]\\""} , { "é" : [1,{"x":[]}] } ] , "z":[] } ';
    expect(read(text).rows.map((row) => row.text)).toEqual([
      '{"n":12345678901234567890,"s":"}]\\""}',
      '{ "é" : [1,{"x":[]}] }',
    ]);
  });

  test("refuses a body that is not UTF-8 or nested too deep before it reads a row", () => {
    expect(() => readRows(Buffer.from([0x5b, 0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d, 0x5d]))).toThrow(BrokenBody);
    expect(() => read(`[{"a":${"[".repeat(300)}${"]".repeat(300)}}]`)).toThrow(BrokenBody);
    expect(read('[{"__proto__":{"x":1},"a":1}]').rows.map(({ value }) => Object.keys(value))).toEqual([["a"]]);
  });

  test("gives every row of every list with its value", () => {
    const row = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
    const list = fc.tuple(fc.array(row), fc.constantFrom(undefined, "data", 'x"y'), fc.constantFrom(0, 2, "\t"));
    fc.assert(
      fc.property(list, ([rows, name, indent]) => {
        const { rows: found } = read(
          JSON.stringify(name === undefined ? rows : { first: 1, [name]: rows, last: "[" }, null, indent),
        );
        expect(found.map(({ text }) => JSON.parse(text) as unknown)).toEqual(JSON.parse(JSON.stringify(rows)));
      }),
    );
  });
});
