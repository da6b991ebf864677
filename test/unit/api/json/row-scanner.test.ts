// Rows found by WebAssembly: the code is what its text says, it takes every usual page, and it gives the members of every row.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import wabt from "wabt";
import { scanUsualRows } from "../../../../src/api/json/row-scanner.ts";
import { parseJson, textOf } from "../../../../src/output/json-text.ts";
import { sampled } from "../../../support/sample.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

test.each(["src/api/json/row-scanner", "src/output/row-writer"])("%s-code.ts is what its text says", async (name) => {
  const { parseWat } = await wabt();
  const module = parseWat(`${basename(name)}.wat`, readFileSync(`${name}.wat`), { simd: true });
  module.validate();
  const { buffer } = module.toBinary({});
  const lines = (
    Buffer.from(buffer)
      .toString("base64")
      .match(/.{1,110}/g) ?? []
  ).map((line) => `  "${line}"`);
  const text = `// Printed from ${basename(name)}.wat by \`npm run docs\`.\n\n/** The module in base64. */\nexport const code =\n${lines.join(" +\n")};\n`;
  await expect(text).toMatchFileSnapshot(`../../../../${name}-code.ts`);
});

const blanks = " ".repeat(33_000);

/** @param rows without white space outside of strings */
function scan(rows: string): ReturnType<typeof scanUsualRows> & { readonly body: Buffer } {
  const body = Buffer.from(`[${rows}]${blanks}`);
  const found = scanUsualRows(body, 1);
  if (found === undefined) throw new Error("not taken");
  return { ...found, body };
}

/** Names and values of each row, as they stand there. */
function membersOf(rows: string): string[][] {
  const { body, members, count, spans, end } = scan(rows);
  expect(end).toBe(Buffer.byteLength(rows) + 2);
  expect(spans.length).toBe(count * 2);
  return Array.from({ length: count }, (_, row) => {
    const first = (members.ranges[row * 2] ?? 0) & 0x7fffffff;
    const after = members.ranges[row * 2 + 1] ?? 0;
    const texts: string[] = [];
    for (let at = first * 4; at < after * 4; at += 4)
      texts.push(
        `"${body.toString("utf8", members.places[at], members.places[at + 1])}"`,
        body.toString("utf8", members.places[at + 2], members.places[at + 3]),
      );
    return texts;
  });
}

/** The same by the parser that keeps every text. */
function expectedOf(rows: string): string[][] {
  const tree = parseJson(`[${rows}]`);
  if (tree.root.kind !== "array") throw new Error("no array");
  return tree.root.items.map((row) =>
    row.kind === "object"
      ? row.members.flatMap(({ keyNode, value }) => [textOf(tree, keyNode), textOf(tree, value)])
      : [],
  );
}

const row = fc.dictionary(fc.string({ maxLength: 40 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });

test("every usual page is taken, and each member stands where a full parse has it", () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (rows) => {
      const text = rows.map((value) => JSON.stringify(value)).join(",");
      expect(membersOf(text)).toEqual(expectedOf(text));
    }),
    { numRuns: sampled(2000) },
  );
});

test.each([
  "{}",
  '{"a":1},{},{"a":1}',
  '{"a":"","a":"b","":0}',
  `{"${"k".repeat(100)}":"${"v".repeat(1000)}"},{"${"k".repeat(99)}l":-0.5e-7}`,
  ...[1, 12, 13, 14, 15, 16, 29, 30, 31].map((length) => {
    const name = "n".repeat(length);
    return `{"${name}":"","b":1},{"${name}":"x","b":2},{"${name}":{},"b":"y"},{"${name}n":1,"b":2},{"${name}":1},{"${name}":"\\"","c":2}`;
  }),
  '{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D","b":[{},[],[[1]],{"c":{}}]}',
  '{"a":true,"b":false,"c":null,"d":0,"e":-1,"f":10.25,"g":1E5,"h":2e+3}',
])("the members of %s", (rows) => {
  expect(membersOf(rows)).toEqual(expectedOf(rows));
});

test("a row says whether its names are those of the row before", () => {
  const key = "k".repeat(40);
  const rows = `{"a":1,"b":2},{"a":"x","b":{}},{"b":1,"a":2},{"b":1},{"b":1,"a":2},{},{},{"${key}":1},{"${key}":2},{"${key}x":1},{"${key.slice(1)}l":1},{"${key.slice(1)}l":1}`;
  const { members, count } = scan(rows);
  const differs = Array.from({ length: count }, (_, at) => (members.ranges[at * 2] ?? 0) >>> 31);
  expect(differs).toEqual([1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0]);
});

test.each([
  ["white space between rows", '[{"a":1} ,{}]'],
  ["white space in a row", '[{"a": 1}]'],
  ["no row", "[]"],
  ["more rows than a page has", `[${"{},".repeat(5000)}{}]`],
  ["more members than rows have", `[{${'"a":1,'.repeat(70_000)}"a":1}]`],
])("%s: left to the other scanner", (_, text) => {
  expect(scanUsualRows(Buffer.from(text + blanks), 1)).toBeUndefined();
});

test.each([
  '[{"a":"',
  '[{"a":1',
  '[{"a":tru',
  '[{"a":"\\',
  '[{"a":"\\u12',
  '[{"a":',
  "[{",
  '[{"a":[',
  '[{"a":1},',
  '[{"a":1}',
])("%s is not read beyond its end, whatever an earlier page left there", (text) => {
  const filler = "x".repeat(33_000);
  const before = Buffer.from(`[{"a":"${filler}${'"}]'.repeat(50)}`);
  scanUsualRows(before, 1);
  const cut = Buffer.from(`[{"b":"${filler}"},${text.slice(1)}`);
  expect(scanUsualRows(cut, 1)).toBeUndefined();
});

test("a control character is seen at every place of a string, and nothing else is taken for one", () => {
  for (let place = 0; place < 40; place += 1)
    for (let byte = 0; byte < 256; byte += 1) {
      const text = Buffer.from(`[{"a":"${"x".repeat(40)}"}]${blanks}`);
      text[7 + place] = byte;
      const isTaken = byte >= 0x20 && byte !== 0x22 && byte !== 0x5c;
      expect(scanUsualRows(text, 1) !== undefined, `${byte} at ${place}`).toBe(isTaken);
    }
});

test("pages of every length up to a large one, each longer or shorter than the one before", () => {
  for (const length of [40_000, 3_000_000, 33_000, 7_000_000, 50_000]) {
    const { count, end } = scan(`{"a":"${"é".repeat(length / 2)}"},{"b":1}`);
    expect([count, end]).toEqual([2, length + 18]);
  }
  expect(scanUsualRows(Buffer.from(`[{"a":"${"x".repeat(9_000_000)}"}]`), 1)).toBeUndefined();
});

test("two have a place to receive bodies in once there was a long page: there they are read as elsewhere", async () => {
  vi.resetModules();
  const { createBodyPlace, scanUsualRows: scanRows } = await import("../../../../src/api/json/row-scanner.ts");
  const places = [createBodyPlace(), createBodyPlace(), createBodyPlace()];
  expect(places.map((place) => place())).toEqual([undefined, undefined, undefined]);
  scanRows(Buffer.from(`[{"a":1}]${blanks}`), 1);
  const [first, second, third] = places.map((place) => place());
  expect(third).toBeUndefined();
  expect(places[0]!()).toBe(first);
  expect(second!.byteOffset - first!.byteOffset).not.toBe(0);
  for (const place of [first!, second!]) {
    const other = place === first ? second! : first!;
    other.fill(1);
    // All of it, up to its last byte, and from anywhere in it.
    for (const from of [0, 1, 333, place.length - 40_000]) {
      place.fill(0x22);
      const length = from === 1 ? place.length - 1 : 40_000;
      const body = place.subarray(from, from + length);
      const text = `[{"a":"${"x".repeat(length - 40)}"},{"b":[1,true]}]`;
      body.fill(" ");
      body.write(text);
      const there = scanRows(body, 1);
      const [spans, members] = [there?.spans.slice(), there?.members.places.slice()];
      const elsewhere = scanRows(Buffer.from(body), 1);
      expect(elsewhere?.count).toBe(2);
      expect([there?.end, spans, members]).toEqual([elsewhere!.end, elsewhere!.spans, elsewhere!.members.places]);
      expect(body.toString().trimEnd()).toBe(text);
    }
    expect(other.every((byte) => byte === 1)).toBe(true);
  }
  // A string that does not end is not read on into what an earlier page left behind it.
  first!.fill("x");
  first!.write('"}]', 50_000);
  first!.write('[{"a":"');
  expect(scanRows(first!.subarray(0, 40_000), 1)).toBeUndefined();
});

test("what is behind each row but the last is overwritten where the body was received, until another page is scanned", async () => {
  vi.resetModules();
  const { createBodyPlace, scanUsualRows: scanRows } = await import("../../../../src/api/json/row-scanner.ts");
  const place = createBodyPlace();
  expect(scanRows(Buffer.from(`[{"a":1},{}]${blanks}`), 1)?.separate).toBeUndefined();
  for (const count of [1, 2, 3, 500, 4000]) {
    const rows = Array.from({ length: count }, (_, row) => `{"a":"},{","b":[1,${row}]}`);
    const body = place()!.subarray(7, 7 + 200_000);
    body.fill(" ");
    body.write(`[${rows.join(",")}]`);
    const found = scanRows(body, 1);
    expect(found?.separate?.(10)).toBe(true);
    expect(body.toString().trimEnd()).toBe(`[${rows.join("\n")}]`);
    scanRows(Buffer.from(`[{"a":1},{}]${blanks}`), 1);
    expect(found?.separate?.(44)).toBe(false);
    expect(body.toString().trimEnd()).toBe(`[${rows.join("\n")}]`);
  }
});

test("a processor that cannot run the code reads pages the other way", async () => {
  const refuse = vi.fn(() => {
    throw new Error("no SIMD");
  });
  vi.stubGlobal("WebAssembly", { Module: refuse });
  const { scanPage } = await import("../../../../src/api/json/page-scanner.ts");
  const body = Buffer.from(
    `{"object":"list","data":[{"a":1},{"b":2}],"next_page_token":null,"has_more":false}${blanks}`,
  );
  for (let time = 0; time < 2; time += 1)
    expect(scanPage(body)).toMatchObject({ count: 2, members: undefined, isTight: true });
  expect(refuse).toHaveBeenCalledOnce();
});
