import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BrokenBody, maxNesting } from "../../../../src/api/json/json-text.ts";
import { scanPage } from "../../../../src/api/pages.ts";
import { sampled } from "../../../support/sample.ts";

function rowsOf(body: Buffer): unknown[] {
  return scanPage(body).rows.map(({ text }) => JSON.parse(text) as unknown);
}

function isRow(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The rule of §2.1, after a full parse. */
function isEnvelope(value: unknown): value is { data: unknown[]; next_page_token: string | null; has_more: boolean } {
  if (!isRow(value)) return false;
  const { object, data, next_page_token: token, has_more: more } = value as Record<string, unknown>;
  if (object !== "list" || !Array.isArray(data) || !data.every(isRow)) return false;
  return more === true ? typeof token === "string" && token !== "" : more === false && token === null;
}

function reference(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** The scanner and the full parse must agree, except that only the scanner rejects a repeated key. */
function agree(body: Buffer): boolean {
  const value = reference(body);
  try {
    const rows = rowsOf(body);
    expect(isEnvelope(value)).toBe(true);
    if (!isEnvelope(value)) return false;
    expect(rows).toEqual(value.data);
    const members = scanPage(body).rows.map((row) => {
      const parts = row.parts();
      return parts.names.map((name) => [name, JSON.parse(parts.get(name)!.text)]);
    });
    expect(members.map((row) => Object.fromEntries(row) as unknown)).toEqual(value.data);
    expect(scanPage(body)).toMatchObject({ nextPageToken: value.next_page_token, hasMore: value.has_more });
    return true;
  } catch (error) {
    if (!(error instanceof BrokenBody)) throw error;
    if (!error.message.includes("twice")) expect(isEnvelope(value), error.message).toBe(false);
    return false;
  }
}

const row = fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 });
const envelope = fc
  .record({
    rows: fc.array(row, { maxLength: 6 }),
    token: fc.option(fc.string({ minLength: 1 })),
    extra: fc.jsonValue(),
    order: fc.nat(),
    indent: fc.constantFrom(0, 1, "\t"),
  })
  .map(({ rows, token, extra, order, indent }) => {
    const members: [string, unknown][] = [
      ["object", "list"],
      ["data", rows],
      ["next_page_token", token],
      ["has_more", token !== null],
      ["later", extra],
    ];
    const turned = [...members.slice(order % 5), ...members.slice(0, order % 5)];
    return Buffer.from(JSON.stringify(Object.fromEntries(turned), null, indent));
  });

describe("scanPage", () => {
  test("accepts every envelope, with any order of keys, white space and unknown keys", () => {
    fc.assert(
      fc.property(envelope, (body) => agree(body)),
      { numRuns: sampled(1000) },
    );
  });

  test.each([
    ['[{"a":"b c"},{"d":[1,{"e":" "}]}]', [true, true]],
    ["[]", []],
    ['[{"a":1} ,{}]', [true, true]],
    ['[{"a": 1},{}]', [false, true]],
    ['[ { } ,{"a":[1, 2]},{}]', [false, false, true]],
    ['[{"a":{"b":[ ]}}]', [false]],
    ['[{"a":"\\" "}\n]', [true]],
  ])("gives compact rows of %s: %j", (data, compact) => {
    const body = Buffer.from(`{ "object" : "list", "data": ${data} , "next_page_token": null, "has_more": false }`);
    expect(scanPage(body).rows.map(({ isCompact }) => isCompact)).toEqual(compact);
  });

  const bytes = fc.oneof(
    fc.nat({ max: 255 }),
    ...[...'{}[]",:\\ \n0-9.eEtfnu'].map((c) => fc.constant(c.charCodeAt(0))),
  );
  const damage = fc.tuple(fc.constantFrom("replace", "insert", "remove", "cut", "swap"), fc.nat(), bytes);

  test("refuses every damaged envelope, or reads it like a full parse", () => {
    let refused = 0;
    fc.assert(
      fc.property(envelope, fc.array(damage, { minLength: 1, maxLength: 3 }), (body, damages) => {
        let text = [...body];
        for (const [kind, at, byte] of damages) {
          const i = at % (text.length || 1);
          if (kind === "replace") text[i] = byte;
          else if (kind === "insert") text.splice(i, 0, byte);
          else if (kind === "remove") text.splice(i, 1);
          else if (kind === "cut") text = text.slice(0, i);
          else [text[i], text[text.length - 1]] = [text[text.length - 1]!, text[i]!];
        }
        if (!agree(Buffer.from(text))) refused++;
      }),
      { numRuns: sampled(5000) },
    );
    expect(refused).toBeGreaterThan(1000);
  });

  test("refuses every truncated page", () => {
    const body = Buffer.from(
      '{"object":"list","data":[{"id":"a","n":[1,{"b":null}]},{"id":"é\\u0041"}],"next_page_token":null,"has_more":false}\n',
    );
    for (let n = 0; n < body.length - 1; n++)
      expect(agree(body.subarray(0, n)), `${n} bytes`).toBe(n === body.length - 1);
    expect(agree(body)).toBe(true);
  });

  test("agrees for a typical page with any byte after its rows replaced, added or missing", () => {
    const rows = `{"object":"list","data":[{"a":"x"},{"a":"é"}]`;
    let sound = 0;
    for (const rest of [',"next_page_token":"a ~","has_more":true}', ',"next_page_token":null,"has_more":false}'])
      for (let at = 0; at <= rest.length; at += 1)
        for (const byte of ["", '"', "\\", "]", " ", "\u0007"])
          for (const from of byte === "" ? [at + 1] : [at, at + 1])
            sound += Number(agree(Buffer.from(rows + rest.slice(0, at) + byte + rest.slice(from))));
    expect(sound).toBeGreaterThan(30);
  });

  const page = (data: string, rest = '"next_page_token":null,"has_more":false'): Buffer =>
    Buffer.from(`{"object":"list","data":${data},${rest}}`);

  test.each([
    '[{"a":01}]',
    '[{"a":1.}]',
    '[{"a":.5}]',
    '[{"a":+1}]',
    '[{"a":1e}]',
    '[{"a":-}]',
    '[{"a":NaN}]',
    '[{"a":tru}]',
    '[{"a":nulll}]',
    '[{"a":"\\x"}]',
    '[{"a":"\\u12g4"}]',
    '[{"a":"\n"}]',
    '[{"a":"\t"}]',
    "[{a:1}]",
    "[{'a':1}]",
    '[{"a" 1}]',
    '[{"a":}]',
    '[{"a":1,}]',
    "[{,}]",
    '[{"a":1}{"b":2}]',
    '[{"a":1},]',
    '[,{"a":1}]',
    '[{"a":[1,]}]',
    '[{"a":[,]}]',
    '[{"a":[1 2]}]',
    '[{"a":1]]',
    '[{"a":[1}]}]',
    '[{"a":1}/**/]',
    "[1]",
    '["a"]',
    "[null]",
    "[[]]",
    "{}",
    "null",
    '"x"',
    "[",
  ])("refuses rows %s", (data) => {
    expect(agree(page(data))).toBe(false);
  });

  test.each([
    ['"next_page_token":"t","has_more":false', "has a token for more"],
    ['"next_page_token":null,"has_more":true', "has no token"],
    ['"next_page_token":"","has_more":true', "has no token"],
    ['"next_page_token":5,"has_more":true', "has no token"],
    ['"next_page_token":"","has_more":false', "has a token for more"],
    ['"has_more":false', '"next_page_token"'],
    ['"next_page_token":null', '"has_more"'],
    ['"next_page_token":null,"has_more":"false"', '"has_more"'],
    ['"next_page_token":null,"has_more":false,"data":[]', '"data" twice'],
    ['"next_page_token":"a","next_page_token":null,"has_more":false', "twice"],
    ['"next_page_token":null,"has_more":false,"has_\\u006dore":true', "twice"],
  ])("enforces §2.1: %s", (rest, words) => {
    expect(() => scanPage(page("[]", rest))).toThrow(words);
  });

  test("refuses bodies that are not a list envelope", () => {
    for (const text of [
      "",
      " ",
      "[]",
      "null",
      "<html>",
      "{}",
      '{"object":"entity","data":[],"next_page_token":null,"has_more":false}',
      '{"data":[],"next_page_token":null,"has_more":false}',
      '{"object":"list","next_page_token":null,"has_more":false}',
    ])
      expect(() => scanPage(Buffer.from(text)), text).toThrow(BrokenBody);
    expect(() => scanPage(Buffer.concat([page("[]"), Buffer.from("{}")]))).toThrow(BrokenBody);
    expect(() => scanPage(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), page("[]")]))).toThrow(BrokenBody);
    expect(() => scanPage(Buffer.from(page('[{"a":"\u00e9"}]').toString("utf8"), "latin1"))).toThrow("UTF-8");
  });

  test("accepts nesting up to the limit, and no depth crashes the process", () => {
    const nested = (levels: number): Buffer => page(`[{"a":${"[".repeat(levels)}${"]".repeat(levels)}}]`);
    expect(scanPage(nested(maxNesting - 3)).rows).toHaveLength(1);
    expect(() => scanPage(nested(maxNesting - 2))).toThrow("deeper");
    expect(() => scanPage(nested(1_000_000))).toThrow("deeper");
    const objects = (levels: number): Buffer => page(`[${'{"a":'.repeat(levels)}1${"}".repeat(levels)}]`);
    expect(scanPage(objects(maxNesting - 2)).rows).toHaveLength(1);
    expect(() => scanPage(objects(maxNesting - 1))).toThrow("deeper");
  });

  test("leaves large integers, key order and repeated keys of rows unchanged", () => {
    const text = '{"z":12345678901234567890,"a":1.50,"a":2,"__proto__":{"x":1}}';
    expect(scanPage(page(`[ ${text} ,${text}]`)).rows.map((row) => row.text)).toEqual([text, text]);
  });

  test("accepts more rows than any page should have", () => {
    const { rows } = scanPage(page(`[${Array.from({ length: 5000 }, (_, i) => `{"i":${i}}`).join(",")}]`));
    expect(rows).toHaveLength(5000);
  });
});
