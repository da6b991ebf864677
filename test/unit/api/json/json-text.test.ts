import * as fc from "fast-check";
import { anyCharacter } from "../../../support/any-text.ts";
import { describe, expect, it } from "vitest";
import { fieldPaths, projected } from "../../../../src/output/fields.ts";
import { BrokenBody, maxNesting, JsonText, type Parts } from "../../../../src/api/json/json-text.ts";
import { sampled } from "../../../support/sample.ts";

const compactJson = (json: string): string => JsonText.of(json).compact();
const indentedJson = (json: string): string => JsonText.of(json).indented();

const space = fc.constantFrom("", "", " ", "\n", "\t ", "\r\n  ");
const number = fc.constantFrom("0", "-0", "1.10", "12345678901234567890123", "1e400", "-1.5E-7", "0.1000");
const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 8 }).map((value) => JSON.stringify(value)),
  fc.constantFrom('"\\u0041\\/"', '"\\ud83d"', '"\\\\"', '"\\\\\\""', '"a: {[ ,]} b"', '" "', '""'),
);
interface TwoLayouts {
  readonly loose: string;
  readonly tight: string;
}
const { value: anyJson } = fc.letrec<{ value: TwoLayouts; array: TwoLayouts; object: TwoLayouts }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.oneof(number, text, fc.constantFrom("true", "false", "null")).map((token) => ({ loose: token, tight: token })),
    tie("array"),
    tie("object"),
  ),
  array: fc.tuple(fc.array(fc.tuple(tie("value"), space, space), { maxLength: 4 }), space).map(([items, inside]) => ({
    loose: `[${inside}${items.map(([item, before, after]) => before + item.loose + after).join(",")}]`,
    tight: `[${items.map(([item]) => item.tight).join(",")}]`,
  })),
  object: fc
    .tuple(
      fc.array(fc.tuple(fc.oneof(text, fc.constantFrom('"__proto__"', '"1"', '"a"')), tie("value"), space, space), {
        maxLength: 4,
      }),
      space,
    )
    .map(([members, inside]) => ({
      loose: `{${inside}${members.map(([key, { loose }, a, b]) => `${a}${key}${b}:${a}${loose}${b}`).join(",")}}`,
      tight: `{${members.map(([key, { tight }]) => `${key}:${tight}`).join(",")}}`,
    })),
}));

describe("reading and laying out", () => {
  it("removes only white space outside of strings", () => {
    fc.assert(
      fc.property(anyJson, space, ({ loose, tight }, around) => {
        expect(compactJson(around + loose + around)).toBe(tight);
        const indented = indentedJson(loose);
        expect(compactJson(indented)).toBe(tight);
        expect(JSON.parse(indented)).toEqual(JSON.parse(tight));
      }),
      { numRuns: sampled(1000) },
    );
  });

  it("indents like JSON.stringify, as far as that loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const json = JSON.stringify(value);
        expect(indentedJson(json)).toBe(JSON.stringify(JSON.parse(json), undefined, 2));
      }),
    );
  });

  it("accepts exactly the texts that JSON.parse accepts", () => {
    const broken = fc.tuple(
      anyJson,
      fc.nat(),
      fc.constantFrom("", ",", "}", '"', "\\", "0", "\u0001", "tru", "-", "."),
    );
    fc.assert(
      fc.property(broken, ([{ loose }, at, junk]) => {
        const place = at % (loose.length + 1);
        const damaged = loose.slice(0, place) + junk + loose.slice(place + (at % 2));
        let isJson = true;
        try {
          JSON.parse(damaged);
        } catch {
          isJson = false;
        }
        // Skips half a surrogate pair, which only string generators produce and UTF-8 cannot encode.
        fc.pre(Buffer.from(damaged).toString() === damaged);
        if (isJson) expect(JsonText.of(damaged).text).toBe(damaged.trim());
        else expect(() => JsonText.of(damaged)).toThrow(BrokenBody);
      }),
      { numRuns: sampled(3000) },
    );
  });

  it("accepts 200 levels and refuses the next, long before the stack ends", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect(compactJson(nested(maxNesting))).toBe(nested(maxNesting));
    expect(() => JsonText.of(nested(maxNesting + 1))).toThrow(/nested deeper than 200/);
    expect(() => JsonText.of('{"a":'.repeat(1_000_000))).toThrow(/nested deeper than 200/);
    expect(compactJson(`[${"[],".repeat(1000)}[]]`)).toContain("[],[]");
  });

  it("reads a very long string and a very long number", () => {
    const long = `["${"x\\\\".repeat(1_000_000)}",${"7".repeat(1_000_000)}]`;
    expect(compactJson(` ${long} `)).toBe(long);
  });

  it("uses the last of duplicate keys, and treats keys like __proto__ as data", () => {
    const parts = JsonText.of('{"a":1,"__proto__":{"x":2},"\\u0061":3,"b":4}').parts();
    expect(parts.names.map((name) => [name, parts.get(name)?.text])).toEqual([
      ["a", "3"],
      ["__proto__", '{"x":2}'],
      ["b", "4"],
    ]);
    expect(parts.get("toString")).toBeUndefined();
  });

  it("reads the same parts, whatever row came before", () => {
    const name = fc.constantFrom("a", "b", "ab", "\\u0061", "\\\\u0061", "é");
    const object = fc
      .array(fc.tuple(name, fc.integer()))
      .map((all) => `{${all.map(([key, value]) => `"${key}": ${value}`).join(",")}}`);
    const partsOf = (parts: Parts): unknown => parts.names.map((one) => [one, parts.get(one)?.text]);
    fc.assert(
      fc.property(object, object, (before, json) => {
        const row = JsonText.of(json);
        expect(partsOf(row.parts(JsonText.of(before).parts()))).toEqual(partsOf(row.parts()));
      }),
    );
    const plain = JsonText.of('{"a":1,"b":2}').parts();
    const same = JsonText.of('{"a":3,"b":4}').parts(plain);
    expect([same.names === plain.names, partsOf(same)]).toEqual([
      true,
      [
        ["a", "3"],
        ["b", "4"],
      ],
    ]);
  });
});

const withNulls = (json: string, keys: readonly string[]): string => JsonText.of(json).withNulls(keys);

describe("withNulls", () => {
  it("sets the named keys to null and changes no other byte", () => {
    const json =
      '{ "id" : 12345678901234567890 ,\n "client_secret" : "s3\\"cret" , "__proto__": {"client_secret": "x"} }\n';
    expect(withNulls(json, ["client_secret"])).toBe(
      '{ "id" : 12345678901234567890 ,\n "client_secret" : null , "__proto__": {"client_secret": "x"} }\n',
    );
  });

  it("finds a key in every escape and at every occurrence", () => {
    expect(withNulls('{"secr\\u0065t":"a","secret":["b"],"Secret":1}', ["secret"])).toBe(
      '{"secr\\u0065t":null,"secret":null,"Secret":1}',
    );
  });

  it("masks a value that other strings and names repeat, except short words", () => {
    const json =
      '{"note": "x s3cr\\u0065t-1 y", "secret":"s3cret-1", "all":[{"s3cret-1":1.0}], "text":"word", "status":"word"}';
    expect(withNulls(json, ["secret"])).toBe(
      '{"note": "x [secret] y", "secret":null, "all":[{"[secret]":1.0}], "text":"word", "status":"word"}',
    );
    expect(withNulls(json, ["text"])).toBe(json.replace('"text":"word"', '"text":null'));
  });

  it("adds nothing", () => {
    expect(withNulls('{"a":1}', ["b"])).toBe('{"a":1}');
    expect(withNulls('["client_secret"]', ["client_secret"])).toBe('["client_secret"]');
  });

  it("leaves no trace of a secret, wherever its key is", () => {
    fc.assert(
      fc.property(fc.array(anyJson, { maxLength: 5 }), fc.nat(), (values, at) => {
        const members = values.map(({ loose }, index) => `"k${index}":${loose}`);
        members.splice(at % (values.length + 1), 0, '"secret" : "CANARY"');
        const blanked = withNulls(`{${members.join(",")}}`, ["secret"]);
        expect(blanked).not.toContain("CANARY");
        expect(blanked).toBe(`{${members.join(",")}}`.replace('"CANARY"', "null"));
      }),
    );
  });
});

describe("--fields", () => {
  const row = '{"id":"e1","n":1.10,"b":{"c":[{"d":"x"},2]},"a.b":"dotted","z":null}';
  const pick = (...names: string[]): string => projected(JsonText.of(row), fieldPaths(names));

  it("keeps the requested fields in the requested order, each under its path as typed", () => {
    expect(pick("n", "b.c", "id")).toBe('{"n":1.10,"b.c":[{"d":"x"},2],"id":"e1"}');
    expect(pick("b.c.0.d", "b.c.1", "a.b", "z")).toBe('{"b.c.0.d":"x","b.c.1":2,"a.b":"dotted","z":null}');
  });

  it("gives null for missing fields", () => {
    expect(projected(JsonText.of(row), fieldPaths(["nope", "id.x", "b.c.9", "toString", "z"]))).toBe(
      '{"nope":null,"id.x":null,"b.c.9":null,"toString":null,"z":null}',
    );
  });

  it("refuses empty and repeated names", () => {
    expect(() => fieldPaths(["a", ""])).toThrow(/empty name/);
    expect(() => fieldPaths(["a..b"])).toThrow(/empty name/);
    expect(() => fieldPaths(["a", " a"])).toThrow(/twice/);
  });
});
